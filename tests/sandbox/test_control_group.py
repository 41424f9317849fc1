"""A control group is made where this machine lets it be, and nothing is left where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_agent.host.process import Child
from hermes_agent.host.process_table import Identity
from hermes_agent.sandbox.control_group import ControlGroup


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "own").write_text("4:memory:/box\n8:pids:/\n0::/user.slice/app.slice/hermes.scope\n")
    return tmp_path


def group(root: Path, processes: int = 100, memory_mb: int = 64) -> ControlGroup:
    return ControlGroup(processes, memory_mb, root / "fs", root / "own")


def test_without_control_groups_nothing_is_held(root: Path) -> None:
    (root / "fs").mkdir()

    assert group(root).held == frozenset()
    assert list((root / "fs").iterdir()) == []


def first_version(root: Path, *, with_threads: bool = True) -> list[Path]:
    made = [root / "fs" / "pids" / "hermes-wall-100-64", root / "fs" / "memory" / "hermes-wall-100-64"]
    for each in made:
        each.mkdir(parents=True)
        (each.parent / "cgroup.procs").touch()
        if with_threads:
            (each / "tasks").touch()
        else:
            (each / "tasks").mkdir()
    return made


def test_version_one_takes_a_thread_in(root: Path) -> None:
    pids, memory = first_version(root)

    assert group(root).held == {"pids", "memory"}
    assert (pids / "pids.max").read_text() == "100\n"
    assert (memory / "memory.limit_in_bytes").read_text() == f"{64 << 20}\n"
    assert [(each / "tasks").read_text() for each in (pids, memory)] == ["0", "0"]


def test_a_group_that_takes_no_threads_holds_nothing(root: Path) -> None:
    first_version(root, with_threads=False)

    assert group(root).held == frozenset()


def test_version_two_is_joined_by_a_shell_in_the_nearest_group_that_is_ours(root: Path) -> None:
    slice_ = root / "fs" / "user.slice" / "app.slice"
    (slice_ / "hermes-wall-100-64").mkdir(parents=True)
    (slice_ / "cgroup.procs").touch()
    lines: list[list[str]] = []

    made = group(root)
    made.start(["echo", "x"], lambda argv: lines.append(list(argv)) or Child(Identity(pid=0)))

    procs = slice_ / "hermes-wall-100-64" / "cgroup.procs"
    assert made.held == {"pids", "memory"}
    assert (procs.parent / "memory.max").read_text() == f"{64 << 20}\n"
    assert procs.read_text().strip().isdecimal()
    assert lines[0][-3:] == [str(procs), "echo", "x"]
