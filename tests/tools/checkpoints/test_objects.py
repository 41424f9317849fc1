"""What is written without git is what git would have written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hermes_agent.tools.checkpoints.objects import FILE, FOLDER, LINK, Loose, Pack, commit, tree


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
