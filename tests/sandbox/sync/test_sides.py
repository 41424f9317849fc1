"""What of a folder is copied, and writing into it."""

from __future__ import annotations

import os
import shutil
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.sides import (
    FETCH,
    MARK,
    REMOVE,
    SEND,
    Found,
    Here,
    Rules,
    Shell,
    There,
    is_too_much,
    unpacked,
)
from tests.sandbox.sync.local_shell import LocalShell


@pytest.fixture
def here(tmp_path: Path) -> Here:
    (tmp_path / "here").mkdir()
    return Here(root=Path(os.path.realpath(tmp_path / "here")), rules=Rules())


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        (".git", True),
        ("a/.git/config", True),
        ("keys/id_rsa", True),
        ("a/id_rsa.pub.txt", False),
        ("build/x", False),
        ("docs/build", True),
        ("docs/build/deep/x", True),
        ("x/docs/build", False),
        ("a.log", True),
        ("logs", False),
    ],
)
def test_globs_are_for_names_and_those_with_a_slash_for_paths(path: str, left_out: bool) -> None:
    assert Rules(exclude=("*.log", "/docs/build/")).leaves_out(path) is left_out


@pytest.mark.parametrize(
    ("folder", "home", "is_it"),
    [
        ("/home/me/x", "/home/me", False),
        ("/srv/x/y", "/root", False),
        ("/home/you", "/home/me", True),
        ("/a", "", True),
    ],
)
def test_more_than_a_project_is_a_home_or_a_folder_of_the_system(folder: str, home: str, is_it: bool) -> None:
    assert is_too_much(folder, home) is is_it


def test_what_is_found_looks_different_when_it_changed(here: Here) -> None:
    (here.root / "a").write_text("x")
    before = here.scan()
    (here.root / "a").write_text("y")

    assert list(before.files) == ["a"]
    assert here.scan().files != before.files


def test_a_folder_that_cannot_be_read_is_not_whole(here: Here) -> None:
    assert here.scan().is_whole
    here.root.rmdir()
    assert not here.scan().is_whole


def test_files_are_packed_and_one_that_is_gone_is_left_out(here: Here) -> None:
    for name in ("a", "b"):
        (here.root / name).write_text(name)
    arrived = {path: content for path, _, content in unpacked(here.packed(["a", "gone", "b"]), ["a", "c"])}

    assert arrived == {"a": b"a"}
    with pytest.raises(PlaceFailed, match="could not be copied"):
        list(unpacked(b"no archive", ["a"]))
    with pytest.raises(PlaceFailed, match="could not be copied"):
        list(unpacked(here.packed(["a"])[:512], ["a"]))


def test_a_link_in_an_archive_is_no_file(tmp_path: Path) -> None:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("./a")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)

    assert list(unpacked(buffer.getvalue(), ["a"])) == []


def test_a_file_is_written_with_its_time_and_the_mode_that_was_there(here: Here) -> None:
    (here.root / "a").write_text("old")
    (here.root / "a").chmod(0o640)

    assert here.write("a", info(1_000_000), b"new", over=here.stamp("a")) == here.stamp("a")
    assert here.write("x/run", info(1, 0o755), b"new", over="")
    assert ((here.root / "a").read_text(), (here.root / "a").stat().st_mode & 0o777) == ("new", 0o640)
    assert (here.root / "a").stat().st_mtime == 1_000_000
    assert (here.root / "x/run").stat().st_mode & 0o111
    assert sorted(path.name for path in here.root.iterdir()) == ["a", "x"]
    assert here.holds("a", info(1), b"new")
    assert not here.holds("a", info(1, 0o755), b"new")


def test_what_looks_different_by_now_is_neither_written_over_nor_deleted(here: Here) -> None:
    (here.root / "a").write_text("old")
    before = here.stamp("a")
    (here.root / "a").write_text("newer")

    assert not here.write("a", info(), b"theirs", over=before)
    assert not here.write("a", info(), b"theirs", over="")
    assert not here.delete("a", before)
    assert (here.root / "a").read_text() == "newer"


def test_nothing_is_written_or_deleted_through_a_link_or_a_file(here: Here) -> None:
    outside = here.root.with_name("outside")
    outside.mkdir()
    (outside / "a").write_text("x")
    (here.root / "out").symlink_to(outside)
    (here.root / "file").write_text("x")

    assert not here.write("out/a", info(), b"y", over=here.stamp("out/a"))
    assert not here.write("file/a", info(), b"y", over="")
    assert not here.delete("out/a", here.stamp("out/a"))
    assert (outside / "a").read_text() == "x"


def test_folders_that_a_deletion_leaves_empty_go_too(here: Here) -> None:
    for name in ("x/y/a", "x/b"):
        here.write(name, info(), b"1", over="")

    assert here.delete("x/y/a", here.stamp("x/y/a"))
    assert [path.name for path in (here.root / "x").iterdir()] == ["b"]


def info(changed: int = 1, mode: int = 0o644) -> tarfile.TarInfo:
    found = tarfile.TarInfo()
    found.mtime, found.mode = changed, mode
    return found


class Says:
    """A shell that says what a test wants."""

    def __init__(self, words: bytes) -> None:
        self.words = words

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes:
        return self.words


def there(folder: Path, shell: Shell | None = None) -> There:
    return There(shell=shell or LocalShell(), folder=str(folder), rules=Rules())


async def test_files_are_listed_with_what_tells_that_they_changed(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("12345")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "link").symlink_to("run")
    before = await there(tmp_path).scan()
    (tmp_path / "run").chmod(0o644)
    after = await there(tmp_path).scan()

    assert before.files["run"].split()[:2] == ["81ed", "5"]
    assert before.files["run"] != after.files["run"]
    assert list(before.others) == ["link"]
    assert before.is_whole


@pytest.mark.skipif(shutil.which("busybox") is None, reason="no busybox here")
async def test_programs_of_busybox_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x/a").write_text("a")
    shell = LocalShell(programs=("busybox", "sh"))
    await there(tmp_path, shell).run(MARK, "id")
    found = await there(tmp_path, shell).scan()

    assert found == await there(tmp_path).scan()
    assert list(found.files) == ["x/a"]
    assert found.which.startswith("id:")
    assert len(list(unpacked(await there(tmp_path, shell).run(FETCH, found.which, ["x/a"]), ["x/a"]))) == 1


async def test_a_folder_that_is_missing_is_made_and_one_that_cannot_be_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert await there(tmp_path / "new").scan() == Found(rules=Rules())
    assert (tmp_path / "new").is_dir()
    assert (await there(tmp_path / "file/below").scan()).which == ""


async def test_a_marker_tells_a_folder_from_its_copies(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    await there(tmp_path / "one").run(MARK, "id")
    before = await there(tmp_path / "one").scan()
    await there(tmp_path / "one").run(MARK, "another")
    shutil.copytree(tmp_path / "one", tmp_path / "copy")

    assert (await there(tmp_path / "one").scan()).which == before.which
    assert (await there(tmp_path / "copy").scan()).which not in ("", before.which)
    with pytest.raises(PlaceFailed, match="gone, or another one"):
        await there(tmp_path / "copy").run(FETCH, before.which, ["a"])


@pytest.mark.parametrize("folder", ["/", "/proc", "/usr/bin/x", "/home", "/home/me", "/root", "/me", "/lib/x"])
async def test_more_than_a_project_is_refused_wherever_a_link_leads(folder: str) -> None:
    said = f"{folder}\0/me/home\0:\0\0000".encode()

    with pytest.raises(PlaceFailed, match=f"there is too much to copy to: {folder}"):
        await there(Path("/srv/projects/link"), Says(said)).scan()


@pytest.mark.parametrize("folder", ["/", "/usr", "~"])
@pytest.mark.parametrize("programs", [("sh",), ("busybox", "sh")])
async def test_a_link_to_more_than_a_project_is_refused_and_nothing_is_listed(
    tmp_path: Path, programs: tuple[str, ...], folder: str
) -> None:
    real, said = os.environ["HOME"] if folder == "~" else folder, list[bytes]()
    (tmp_path / "link").symlink_to(real)

    def heard(_: str, out: bytes) -> bytes:
        said.append(out)
        return out

    shell = LocalShell(programs=programs, after=heard)
    if shutil.which(programs[0]) is None:
        pytest.skip(f"no {programs[0]} here")

    with pytest.raises(PlaceFailed, match=f"there is too much to copy to: {real}"):
        await there(tmp_path / "link", shell).scan()

    assert said[0].split(b"\0")[3:] == [b"", b"0"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a//b", ".", "a/../b", ".git/hooks/x", "id_rsa"])
async def test_names_that_lead_out_or_stay_there_are_passed_by(tmp_path: Path, name: str) -> None:
    said = f"/srv/work/x\0/home/me\0id:1\x0081a4 5 1 1 ./{name}//\nwhat is this//\n81a4 5 1 1 ./good//\n\0000"
    found = await there(tmp_path, Says(said.encode())).scan()

    assert list(found.files) == ["good"]


@pytest.mark.parametrize("said", [b"/srv/work/x", b"/srv/work/x\0/home/me\0id:1\x0081a4 5 1 1 ./go"])
async def test_a_list_that_is_cut_short_is_none(tmp_path: Path, said: bytes) -> None:
    with pytest.raises(PlaceFailed, match="cut short"):
        await there(tmp_path, Says(said)).scan()


async def test_what_fails_there_is_told(tmp_path: Path) -> None:
    await there(tmp_path).run(MARK, "id")
    which = (await there(tmp_path).scan()).which

    with pytest.raises(PlaceFailed):
        await there(tmp_path).run(SEND, which, data=b"no archive at all" * 100)
    with pytest.raises(PlaceFailed, match="gone, or another one"):
        await there(tmp_path / "nope").run(REMOVE, which, ["a"])
