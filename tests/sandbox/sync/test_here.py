"""What of a folder is copied, and writing into it."""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.here import Rules, digest_of, has_room, look, packed, remove, unpacked, write


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


def test_what_is_found_has_a_stamp_that_changes_with_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    before = look(tmp_path, Rules())
    (tmp_path / "a").write_text("yy")

    assert list(before.stamps) == ["a"]
    assert look(tmp_path, Rules()).stamps != before.stamps


def test_files_are_packed_in_parts_and_one_that_is_gone_is_left_out(tmp_path: Path) -> None:
    names = [str(number) for number in range(501)]
    for name in names:
        (tmp_path / name).write_text(name)

    parts = list(packed(tmp_path, [*names, "gone"], frozenset({"7"})))
    arrived = {path: content for part in parts for path, content, _ in unpacked(part, names)}

    assert len(parts) == 2
    assert arrived == {name: name.encode() for name in names}


def test_what_was_not_asked_for_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (part,) = packed(tmp_path, ["a"], frozenset())

    assert list(unpacked(part, ["b"])) == []
    with pytest.raises(PlaceFailed, match="could not be copied"):
        list(unpacked(b"no archive", ["a"]))


def test_a_link_in_an_archive_is_no_file(tmp_path: Path) -> None:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("./a")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)

    assert list(unpacked(buffer.getvalue(), ["a"])) == []


def test_a_file_is_written_with_its_time_and_the_mode_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o640)

    assert write(tmp_path, "a", b"new", program=False, changed=1_000_000)
    assert write(tmp_path, "x/run", b"new", program=True, changed=1)
    assert ((tmp_path / "a").read_text(), (tmp_path / "a").stat().st_mode & 0o777) == ("new", 0o640)
    assert (tmp_path / "a").stat().st_mtime == 1_000_000
    assert (tmp_path / "x/run").stat().st_mode & 0o111
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "x"]


def test_nothing_is_written_or_removed_through_a_link_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a").write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "file").write_text("x")

    assert not write(root, "out/a", b"y", program=False, changed=1)
    assert not write(root, "file/a", b"y", program=False, changed=1)
    remove(root, "out/a")
    assert (tmp_path / "outside/a").read_text() == "x"


def test_folders_that_a_removal_leaves_empty_go_too(tmp_path: Path) -> None:
    write(tmp_path, "x/y/a", b"1", program=False, changed=1)
    write(tmp_path, "x/b", b"1", program=False, changed=1)
    remove(tmp_path, "x/y/a")

    assert [path.name for path in (tmp_path / "x").iterdir()] == ["b"]


def test_what_cannot_be_read_has_no_hash_and_a_disk_has_some_room(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")

    assert digest_of(tmp_path, "nope") == ""
    assert digest_of(tmp_path, "link") == ""
    assert has_room(tmp_path, 1)
    assert not has_room(tmp_path, 1 << 60)
