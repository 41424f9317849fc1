"""What the tests of checkpoints share."""

from __future__ import annotations

from pathlib import Path

from hermes_agent.tools.checkpoints.checkpoints import Cause

TOLD = Cause(why="write_file: a.txt", session="s1")


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
