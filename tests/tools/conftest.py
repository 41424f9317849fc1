"""A workspace beside the home, and the file tools over both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.sandbox.walls import Walls
from hermes_agent.tools.files.guard import Guard, ReadLog
from hermes_agent.tools.files.tools import FileTools
from hermes_agent.tools.files.writing import Writer
from hermes_agent.tools.schema import collect
from tests.tools.bench import Bench


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def make_files(workspace: Path, home: Path, tmp_path: Path) -> Callable[..., Bench]:
    """Makes file tools; those of one test share the home and what it keeps on disk, not what is in memory."""

    def make(*, session: str = "s1", ripgrep: str = "") -> Bench:
        guard = Guard(home=home, person=tmp_path, walls=lambda: Walls(closed=(str(tmp_path / "closed"),)))
        log = ReadLog(home / "cache" / "reads")
        tools, aside = collect([FileTools(guard=guard, log=log, writer=Writer(), ripgrep=ripgrep)])
        assert not aside
        return Bench(tools, workspace, session)

    return make


@pytest.fixture
def files(make_files: Callable[..., Bench]) -> Bench:
    return make_files()
