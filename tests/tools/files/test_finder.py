"""The walk, the globs and the search that need no other program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.tools.files import finder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "b.py",
        "a/x.py",
        "a/y.txt",
        "a.txt",
        ".hidden",
        "node_modules/m.js",
        "a/.git/config",
        "z/deep/er/f.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\nfind me\n")
    return tmp_path


def test_files_come_in_the_order_of_their_names_without_what_tools_make(tree: Path) -> None:
    assert list(finder.walk(str(tree))) == [".hidden", "a/x.py", "a/y.txt", "a.txt", "b.py", "z/deep/er/f.py"]


def test_links_and_pipes_are_not_entered(tree: Path) -> None:
    (tree / "loop").symlink_to(tree)
    (tree / "linked.py").symlink_to(tree / "b.py")
    os.mkfifo(tree / "pipe")

    assert {"linked.py", "pipe", "loop/b.py"}.isdisjoint(finder.walk(str(tree)))


def test_a_single_file_is_a_tree_of_its_own(tree: Path) -> None:
    assert list(finder.walk(str(tree / "b.py"))) == [""]


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "a.py/x"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["srcs/a.py"]),
        ("**/test_*", ["test_a", "x/test_b"], ["x/a_test"]),
        ("*.{js,ts}", ["a.js", "b/a.ts"], ["a.jsx", "a.{js,ts}"]),
        ("[a-c]?.txt", ["a1.txt", "x/b2.txt"], ["d1.txt", "a.txt"]),
        ("[!a]*", ["b"], ["a", "ab"]),
        ("a+(b).c", ["a+(b).c"], ["aab.c"]),
        ("a,b", ["a,b"], ["a", "b"]),
    ],
)
def test_globs_mean_what_people_expect(glob: str, yes: list[str], no: list[str]) -> None:
    pattern = finder.glob_pattern(glob)

    assert [name for name in yes if not pattern.match(name)] == []
    assert [name for name in no if pattern.match(name)] == []


def found(root: Path, **query: object) -> list[list[object]]:
    """What the script prints, run as it is run."""
    asked = {"root": str(root), "pattern": "", "glob": "", "context": 0, "most": 100} | query
    command = [sys.executable, "-I", "-S", finder.__file__, json.dumps(asked)]
    ended = subprocess.run(command, capture_output=True, env={}, check=True, timeout=20)
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_matching_lines_come_with_their_numbers(tree: Path) -> None:
    assert found(tree, pattern="find", glob="*.txt") == [
        ["a/y.txt", 2, "find me", True],
        ["a.txt", 2, "find me", True],
    ]


def test_lines_around_are_marked_as_such_and_shown_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1\nhit\n3\nhit\n5\n6\n")

    assert [(row[1], row[3]) for row in found(tmp_path, pattern="hit", context=1)] == [
        (1, False),
        (2, True),
        (3, False),
        (4, True),
        (5, False),
    ]


def test_binary_files_are_passed_over_and_odd_bytes_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"find\0me")
    (tmp_path / "latin").write_bytes(b"f\xe4nd find\r\n")
    (tmp_path / os.fsdecode(b"n\xe4me")).write_text("find")

    assert [row[1:] for row in found(tmp_path, pattern="find$")] == [[1, "f\ufffdnd find", True], [1, "find", True]]


def test_it_stops_at_the_most_that_was_asked_for(tree: Path) -> None:
    assert len(found(tree, most=3)) == 3
