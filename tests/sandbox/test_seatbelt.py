"""The profile of seatbelt as text: later rules stand over earlier ones, and nothing is allowed that is not named."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hermes_agent.sandbox.jail import CannotJail, Cell
from hermes_agent.sandbox.seatbelt import Seatbelt, build, profile
from hermes_agent.sandbox.seccomp import Watcher
from hermes_agent.sandbox.walls import Walls


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    work = tmp_path / 'wo"rk'
    (work / ".ssh").mkdir(parents=True)
    return Cell(
        folder=tmp_path / "record",
        files=("exit",),
        kept=None,
        workspace=str(work),
        folders=(f"{tmp_path}/other",),
        session=tmp_path / "session",
        launch=partial(Watcher().launch, tmp_path),
    )


def test_what_is_closed_stands_behind_what_holds_it(cell: Cell) -> None:
    work = cell.workspace.replace('"', '\\"')
    said = profile(cell, Walls(readable=("/usr",), closed=(f"{cell.workspace}/.ssh",)))

    assert said.startswith("(version 1)\n(deny default)\n")
    assert '(allow file-read* (subpath "/usr"))' in said
    written = said.index(f'(allow file-read* file-write* (subpath "{work}"))')
    assert f'(allow file-read* file-write* (subpath "{cell.folders[0]}"))' in said
    assert written < said.index(f'(deny file* (subpath "{work}/.ssh"))')
    assert f'(allow file-read* file-write-data (literal "{cell.folder}/exit"))' in said


def test_the_network_is_named_where_it_is_allowed(cell: Cell) -> None:
    assert "(allow network" not in profile(cell, Walls())
    assert "(allow network* system-socket)" in profile(cell, Walls(network=True))


def test_where_there_is_no_seatbelt_it_says_so_and_nothing_holds_memory(cell: Cell) -> None:
    with pytest.raises(CannotJail, match="macOS has it"):
        build(Walls())
    assert Seatbelt("sandbox-exec", Walls(memory_mb=5)).unheld == (512, 5)
    assert Seatbelt("sandbox-exec", Walls(memory_mb=5)).limits == "ulimit -d 5120 || exit 125\n"
