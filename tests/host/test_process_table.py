"""Processes are known by number and start time, and a command's family is found wherever it went."""

from __future__ import annotations

import asyncio
import os
import pathlib
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes_agent.host.process_table import Identity, family, is_alive, parse_stat, row_of

pytestmark = pytest.mark.skipif(not pathlib.Path("/proc/self").is_dir(), reason="this machine has no /proc")


@asynccontextmanager
async def shell(text: str, mark: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A shell in a session of its own that has printed `ready`, ended with everything it left behind."""
    child = subprocess.Popen(  # noqa: ASYNC220 - a fork takes no time worth a thread
        ["sh", "-c", text],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={"PATH": os.environ["PATH"], "MARK": mark},
    )
    assert child.stdout is not None
    try:
        assert await asyncio.to_thread(child.stdout.readline) == b"ready\n"
        yield child
    finally:
        for row in family(child.pid, f"MARK={mark}".encode()):
            os.kill(row.pid, 9)
        child.wait()
        child.stdout.close()


def test_this_process_is_alive_and_is_itself() -> None:
    me = row_of(os.getpid())

    assert is_alive(Identity(pid=me.pid, started=me.started))
    assert me.parent == os.getppid()


def test_a_later_process_of_the_same_number_is_another() -> None:
    me = row_of(os.getpid())

    assert not is_alive(Identity(pid=me.pid, started=me.started + 1))


def test_a_dead_child_that_nobody_collected_is_dead() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert not is_alive(Identity(pid=child.pid))
    assert row_of(child.pid) is None
    child.wait()


@pytest.mark.parametrize("text", ["", "nonsense", "1 (sh) S 2 3"])
def test_what_is_no_line_of_the_table_is_nobody(text: str) -> None:
    assert parse_stat(text) is None


def test_a_name_with_brackets_and_spaces_is_no_trouble() -> None:
    row = parse_stat(f"7 (a) b (c) S 1 2 3 {'0 ' * 15}99 0")

    assert (row.pid, row.parent, row.group, row.session, row.started) == (7, 1, 2, 3, 99)


async def test_children_that_left_the_session_are_family() -> None:
    text = "setsid sleep 60 & setsid sh -c 'sleep 61 & exec sleep 62' & sleep 0.1; echo ready; exec sleep 63"
    async with shell(text, "a1") as child:
        found = family(child.pid, b"MARK=a1")

    assert len(found) == 4


async def test_a_daemon_whose_parents_are_gone_is_found_by_its_mark() -> None:
    text = "(setsid setsid sleep 60 >/dev/null &) ; sleep 0.1; echo ready; exec sleep 0.01"
    async with shell(text, "a2") as child:
        child.wait()

        assert [row.parent for row in family(0, b"MARK=a2")] != []
        assert family(0, b"MARK=a3") == []


async def test_a_child_without_environment_is_found_by_its_group() -> None:
    async with shell("env -i sleep 60 & sleep 0.1; echo ready; exec sleep 61", "a4") as child:
        found = family(child.pid, b"MARK=a4")

    assert len(found) == 2


@pytest.mark.parametrize("leader", [0, 1])
def test_nobody_has_no_family(leader: int) -> None:
    assert family(leader, b"MARK=nobody-has-this") == []


@pytest.mark.parametrize(("variables", "told"), [({"HERMES_EXEC": "/r"}, "True"), ({}, "False")])
def test_a_process_knows_that_it_descends_from_a_command_of_the_agent(variables: dict[str, str], told: str) -> None:
    asks = "from hermes_agent.host.process_table import below_agent; print(below_agent())"

    done = subprocess.run(
        ["sh", "-c", 'env -u HERMES_EXEC "$@"; exit', "sh", sys.executable, "-c", asks],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == f"{told}\n"
