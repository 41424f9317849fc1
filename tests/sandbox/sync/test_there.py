"""A folder in a place: what its tools say of it is read as it was meant, and no more of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.here import Found, Rules, unpacked
from hermes_agent.sandbox.sync.there import Shell, There
from tests.sandbox.sync.local_shell import LocalShell


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
    await there(tmp_path, shell).mark("id")
    found = await there(tmp_path, shell).scan()

    assert found == await there(tmp_path).scan()
    assert list(found.files) == ["x/a"]
    assert found.which.startswith("id:")
    assert len(list(unpacked(await there(tmp_path, shell).fetch(found.which, ["x/a"]), ["x/a"]))) == 1


async def test_a_folder_that_is_missing_is_made_and_one_that_cannot_be_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert await there(tmp_path / "new").scan() == Found(rules=Rules())
    assert (tmp_path / "new").is_dir()
    assert (await there(tmp_path / "file/below").scan()).which == ""


async def test_a_marker_tells_a_folder_from_its_copies(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    await there(tmp_path / "one").mark("id")
    before = await there(tmp_path / "one").scan()
    await there(tmp_path / "one").mark("another")
    shutil.copytree(tmp_path / "one", tmp_path / "copy")

    assert (await there(tmp_path / "one").scan()).which == before.which
    assert (await there(tmp_path / "copy").scan()).which not in ("", before.which)
    with pytest.raises(PlaceFailed, match="gone, or another one"):
        await there(tmp_path / "copy").fetch(before.which, ["a"])


@pytest.mark.parametrize("folder", ["/", "/proc", "/usr/bin/x", "/home", "/home/me", "/root", "/me", "/lib/x"])
async def test_more_than_a_project_is_refused_wherever_a_link_leads(folder: str) -> None:
    said = f"{folder}\0/me/home\0:\0\0000".encode()

    with pytest.raises(PlaceFailed, match=f"there is {folder}, which is too much to copy to"):
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

    with pytest.raises(PlaceFailed, match=f"there is {real}, which is too much to copy to"):
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
    await there(tmp_path).mark("id")
    which = (await there(tmp_path).scan()).which

    with pytest.raises(PlaceFailed):
        await there(tmp_path).send(which, b"no archive at all" * 100)
    with pytest.raises(PlaceFailed, match="gone, or another one"):
        await there(tmp_path / "nope").remove(which, ["a"])
