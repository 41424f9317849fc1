"""The shadow repository sees nothing of the person's own git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hermes_agent.tools.checkpoints.shadow import (
    FILE,
    FOLDER,
    LINK,
    CheckpointFailed,
    Loose,
    Pack,
    commit,
    shadow_of,
    tree,
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "--bare", ".")
    return tmp_path


def git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", *words],
        cwd=folder,
        input=given,
        check=True,
        capture_output=True,
        env={"PATH": os.defpath, "HOME": "/x"},
    ).stdout


CONTENTS = [b"", b"one\n", bytes(15), b"x" * 16, os.urandom(300_000), b"y" * 2047, b"z" * 2048]


def test_contents_have_the_names_that_git_gives_them(repository: Path):
    loose = Loose(repository)

    for content in CONTENTS:
        name = loose.write("blob", content).hex()

        assert name == git(repository, "hash-object", "--stdin", given=content).decode().strip()
        assert git(repository, "cat-file", "blob", name) == content
    git(repository, "fsck", "--strict")


def test_a_pack_holds_each_once_and_git_takes_it_in(repository: Path):
    with (repository / "p").open("w+b") as file:
        pack = Pack(file)
        names = [pack.write("blob", content).hex() for content in CONTENTS * 2]
        pack.finish()

    git(repository, "index-pack", "--stdin", given=(repository / "p").read_bytes())

    for name, content in zip(names, CONTENTS, strict=False):
        assert git(repository, "cat-file", "blob", name) == content
    assert git(repository, "count-objects", "-v").split(b"in-pack: ")[1].split()[0] == b"%d" % len(CONTENTS)


def test_a_tree_is_sorted_as_git_sorts_it(repository: Path):
    loose = Loose(repository)
    blob, inner = loose.write("blob", b"x"), loose.write("tree", b"")
    rows = [
        (b"a", FOLDER, inner),
        (b"a.txt", FILE, blob),
        (b"a-b", FILE, blob),
        (b"l", LINK, blob),
        (b"\xff\n", FILE, blob),
    ]

    name = loose.write("tree", tree(rows)).hex()

    listed = git(repository, "ls-tree", "-z", name)
    assert git(repository, "mktree", "-z", given=listed).decode().strip() == name


def test_a_commit_says_when_it_was_made_and_why(repository: Path):
    loose = Loose(repository)
    root = loose.write("tree", b"").hex()

    name = loose.write("commit", commit(root, 1_700_000_000.4, b"why")).hex()

    assert git(repository, "log", "-1", "--format=%T %ct %s", name).decode().strip() == f"{root} 1700000000 why"
    git(repository, "fsck", "--strict", name)


def test_a_file_that_a_crash_left_empty_is_written_again(repository: Path):
    loose = Loose(repository)
    name = loose.write("blob", b"x").hex()
    path = repository / "objects" / name[:2] / name[2:]
    path.write_bytes(b"")

    loose.write("blob", b"x")

    assert git(repository, "cat-file", "blob", name) == b"x"


async def test_it_is_made_private_and_apart(tmp_path: Path):
    root = tmp_path / "work"
    root.mkdir()
    shadow = shadow_of(root, tmp_path / "checkpoints", "git")

    async with shadow.turn():
        (shadow.folder / "paths.left").touch()
        (shadow.folder / "packed-refs.lock").touch()
        shadow.sweep()
        config = (await shadow.run("config", "--list", "--show-origin", "--no-includes")).decode()

    assert list(root.iterdir()) == []
    assert not [*shadow.folder.glob("paths.*"), *shadow.folder.glob("*.lock")]
    assert shadow.folder.stat().st_mode & 0o077 == 0
    assert all(str(shadow.folder) in line or line.startswith("command line") for line in config.splitlines())


async def test_a_failure_is_told_in_gits_words(tmp_path: Path):
    shadow = shadow_of(tmp_path, tmp_path / "checkpoints", "git")

    async with shadow.turn():
        with pytest.raises(CheckpointFailed, match="git ls-tree failed: fatal: Not a valid object name nothing"):
            await shadow.run("ls-tree", "nothing")


def test_a_link_to_a_folder_has_the_folders_own_checkpoints(tmp_path: Path):
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to("work")

    assert shadow_of(tmp_path / "link", tmp_path, "git") == shadow_of(tmp_path / "work", tmp_path, "git")


async def test_git_says_which_names_its_rules_leave_out(tmp_path: Path):
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / ".gitignore").write_text("*.log\n!keep.log\n/sub\n")
    shadow = shadow_of(root, tmp_path / "checkpoints", "git")

    async with shadow.turn():
        found = await shadow.ignored([b"a.log", b"keep.log", b"sub", b":(top)x.log", b"new\nline.log", b"b.txt"])

    assert found == {b"a.log", b"sub", b":(top)x.log", b"new\nline.log"}
