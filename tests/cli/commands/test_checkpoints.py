"""`hermes checkpoints`: what files were, and putting them back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.testing.clock import FakeClock
from hermes_agent.tools.checkpoints.checkpoints import Cause, Checkpoints
from hermes_agent.tools.settings import CheckpointSettings
from tests.cli.shell import typed


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    kept = Checkpoints(tmp_path / "home/checkpoints", CheckpointSettings(), FakeClock())
    asyncio.run(kept.save(folder, Cause(why="terminal: make", session="s1")))
    (folder / "a.txt").write_text("two\n")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_they_are_listed_and_shown(home: Path, work: Path) -> None:
    listed = typed(home, "checkpoints", "list", "--root", str(work)).out
    plain = json.loads(typed(home, "checkpoints", "list", "--root", str(work), "--json").out)
    shown = typed(home, "checkpoints", "show", "1", "--root", str(work)).out
    folders = json.loads(typed(home, "checkpoints", "list", "--all", "--json").out)

    assert "terminal: make" in listed
    assert [(each["number"], each["before"], each["session"], each["whole"]) for each in plain] == [
        (1, "terminal: make", "s1", True)
    ]
    assert shown.splitlines()[1:] == ["  a.txt"]
    assert folders == [{"root": str(work), "checkpoints": 1}]


def test_the_difference_is_shown_and_the_file_put_back(home: Path, work: Path) -> None:
    assert "-one\n+two" in typed(home, "checkpoints", "diff", "1", "--root", str(work)).out

    said = typed(home, "checkpoints", "restore", "1", "a.txt", "--root", str(work)).out

    assert said.startswith("Restored checkpoint 1:\n  a.txt\nTo undo this, restore checkpoint 2.")
    assert (work / "a.txt").read_text() == "one\n"
    again = json.loads(typed(home, "checkpoints", "restore", "2", "--root", str(work), "--json").out)
    assert again["written"] == ["a.txt"]
    assert (work / "a.txt").read_text() == "two\n"
    assert "Nothing changed" in typed(home, "checkpoints", "restore", "2", "--root", str(work)).out


def test_older_ones_and_those_of_folders_that_are_gone_are_forgotten(home: Path, work: Path) -> None:
    typed(home, "checkpoints", "restore", "1", "--root", str(work))

    pruned = json.loads(typed(home, "checkpoints", "prune", "--keep", "1", "--root", str(work), "--json").out)
    assert pruned == {"forgotten": 1, "text": "1 forgotten."}
    (work / "a.txt").unlink()
    work.rmdir()
    typed(home, "checkpoints", "prune", "--all")
    assert typed(home, "checkpoints", "list", "--all").out == "No checkpoints.\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("show", "7"), "no checkpoint 7"),
        (("diff", "1", "../b"), "is not below"),
        (("restore", "1", "none.txt"), "not in checkpoint 1"),
    ],
)
def test_what_is_not_there_is_told(home: Path, work: Path, line: tuple[str, ...], words: str) -> None:
    with pytest.raises(HermesError, match=words):
        typed(home, "checkpoints", *line, "--root", str(work))


def test_a_folder_that_is_none_is_told(home: Path, tmp_path: Path) -> None:
    with pytest.raises(HermesError, match="is not a folder"):
        typed(home, "checkpoints", "list", "--root", str(tmp_path / "none"))
