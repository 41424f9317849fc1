"""A control group is made where this machine lets it be, and nothing is left where it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_agent.core.section import short_hash
from hermes_agent.host.process import Child, start_detached
from hermes_agent.host.process_table import Identity
from hermes_agent.sandbox.control_group import NAME as PREFIX, ControlGroup

HOME = "/home/me/.hermes"
NAME = f"hermes-wall-{short_hash(HOME)}-100-64"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "own").write_text("4:memory:/box\n8:pids:/\n0::/user.slice/app.slice/hermes.scope\n")
    return tmp_path


def group(root: Path, processes: int = 100, memory_mb: int = 64) -> ControlGroup:
    return ControlGroup(processes, memory_mb, HOME, root / "fs", root / "own")


def test_without_control_groups_nothing_is_held(root: Path) -> None:
    (root / "fs").mkdir()

    assert group(root).held == frozenset()
    assert list((root / "fs").iterdir()) == []


def first_version(root: Path, *, with_threads: bool = True) -> list[Path]:
    made = [root / "fs" / "pids" / NAME, root / "fs" / "memory" / NAME]
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
    (slice_ / NAME).mkdir(parents=True)
    (slice_ / "cgroup.procs").touch()
    lines: list[list[str]] = []

    made = group(root)
    made.start(["echo", "x"], lambda argv: lines.append(list(argv)) or Child(Identity(pid=0)))

    procs = slice_ / NAME / "cgroup.procs"
    assert made.held == {"pids", "memory"}
    assert (procs.parent / "memory.max").read_text() == f"{64 << 20}\n"
    assert procs.read_text().strip().isdecimal()
    assert lines[0][-3:] == [str(procs), "echo", "x"]


def groups_of(home: str) -> list[Path]:
    """What the machine has of a home's groups, in any hierarchy."""
    roots = (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*"))
    return [found for root in roots for found in root.glob(f"{PREFIX}{short_hash(home)}-*")]


def test_each_home_has_a_group_of_its_own_that_goes_with_its_last_process_and_command(tmp_path: Path) -> None:
    ours, also_ours = (ControlGroup(64, 32, str(tmp_path)) for _ in range(2))
    if not ours.held:
        pytest.skip("this user may make no control group here")
    theirs = ControlGroup(64, 32, f"{tmp_path}/other")
    left = groups_of(str(tmp_path))[0] / "999999999.01234567"
    left.mkdir()
    running = ours.start(
        ["sleep", "60"], lambda argv: start_detached(argv, cwd="/", env={"PATH": os.environ["PATH"]}, stdin=None, out=1)
    )

    ours.close()
    assert groups_of(str(tmp_path))
    also_ours.close()
    assert groups_of(str(tmp_path)), "a command is in it"
    running.signal(9)
    assert running.ends_within(5)
    sleeping = ours.start(
        ["sleep", "60"], lambda argv: start_detached(argv, cwd="/", env={"PATH": os.environ["PATH"]}, stdin=None, out=1)
    )
    assert PREFIX in Path(f"/proc/{sleeping.identity.pid}/cgroup").read_text(), "it is made again after its end"
    sleeping.signal(9)
    assert sleeping.ends_within(5)
    ours.close()

    assert groups_of(str(tmp_path)) == []
    assert groups_of(f"{tmp_path}/other")
    theirs.close()
    assert groups_of(f"{tmp_path}/other") == []
