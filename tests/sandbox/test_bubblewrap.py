"""What bwrap is told: parents before what is in them, what is closed covered, links as they are."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hermes_agent.sandbox.bubblewrap import Bubblewrap
from hermes_agent.sandbox.jail import Cell
from hermes_agent.sandbox.seccomp import Watcher
from hermes_agent.sandbox.walls import Walls


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    (tmp_path / "work" / "a" / ".ssh").mkdir(parents=True)
    return Cell(
        folder=tmp_path / "record",
        files=(),
        kept=None,
        workspace=str(tmp_path / "work"),
        session=tmp_path / "records" / "session",
        launch=partial(Watcher().launch, tmp_path),
    )


def arguments(walls: Walls, cell: Cell | None = None) -> str:
    return " ".join(Bubblewrap("bwrap", walls).arguments(cell))


def test_nothing_is_shown_that_no_list_names(cell: Cell, tmp_path: Path) -> None:
    said = arguments(Walls(readable=("/usr",)), cell)

    assert "--ro-bind-try /usr /usr" in said
    assert f"--bind-try {tmp_path}/work {tmp_path}/work" in said
    assert f"--bind {cell.session}/tmp /tmp" in said
    assert "/etc" not in said
    assert "bind / " not in said


def test_a_closed_folder_is_covered_after_it_is_opened_and_the_way_to_it_cannot_be_moved(
    cell: Cell, tmp_path: Path
) -> None:
    said = arguments(Walls(closed=(f"{tmp_path}/work/a/.ssh",)), cell)

    opened = said.index(f"--bind-try {tmp_path}/work {tmp_path}/work")
    way = said.index(f"--bind-try {tmp_path}/work/a {tmp_path}/work/a")
    assert opened < way < said.index(f"--tmpfs {tmp_path}/work/a/.ssh")


def test_what_is_shown_in_a_closed_folder_comes_after_it(cell: Cell, tmp_path: Path) -> None:
    shown = f"{tmp_path}/work/a/.ssh/shown"
    Path(shown).mkdir()

    said = arguments(Walls(readable=(shown,), closed=(f"{tmp_path}/work/a/.ssh",)), cell)

    assert said.index(f"--tmpfs {tmp_path}/work/a/.ssh") < said.index(f"--ro-bind-try {shown} {shown}")


def test_a_closed_file_is_empty_and_what_is_not_there_or_not_shown_needs_nothing(cell: Cell, tmp_path: Path) -> None:
    for name in ("work/key", "hidden"):
        (tmp_path / name).touch()
    closed = tuple(f"{tmp_path}/{name}" for name in ("work/key", "work/gone", "hidden"))

    said = arguments(Walls(closed=closed), cell)

    assert f"--ro-bind /dev/null {tmp_path}/work/key" in said
    assert "gone" not in said
    assert "hidden" not in said


def test_a_link_on_the_way_to_what_is_shown_is_there_too(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(tmp_path / "real")

    said = Bubblewrap("bwrap", Walls(readable=(f"{tmp_path}/one",)))._mounts(None)

    assert f"{tmp_path}/real" in said
    if str(tmp_path).startswith("/tmp/"):
        return  # the jail's own /tmp stands there
    assert said[f"{tmp_path}/one"] == ["--symlink", "two", f"{tmp_path}/one"]


def test_the_home_of_the_session_stands_where_the_person_s_is(cell: Cell, tmp_path: Path) -> None:
    person = f"{tmp_path}/me"

    assert f"--bind {cell.session}/home {person}" in arguments(Walls(person=person), cell)
    assert "session/home" not in arguments(Walls(person=cell.workspace), cell)


def test_the_network_is_closed_unless_it_is_allowed() -> None:
    assert "--unshare-net" in arguments(Walls())
    assert "--unshare-net" not in arguments(Walls(network=True))
