"""What systemd is told by a service: a real socket listens in its place."""

import asyncio
import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_agent.host.systemd import Supervisor
from hermes_agent.host.tasks import spawn


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        yield listening


def told(listening: socket.socket) -> list[str]:
    lines: list[str] = []
    while select.select([listening], [], [], 0)[0]:
        lines.append(listening.recv(4096).decode())
    return lines


def test_it_is_told_what_is_said(systemd: socket.socket):
    Supervisor({"NOTIFY_SOCKET": systemd.getsockname()}).notify("READY=1", "STATUS=At work.")

    assert told(systemd) == ["READY=1\nSTATUS=At work."]


def test_an_abstract_name_is_one():
    name = f"hermes-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        Supervisor({"NOTIFY_SOCKET": f"@{name}"}).notify("READY=1")

        assert told(listening) == ["READY=1"]


def test_where_nobody_listens_nothing_breaks(tmp_path: Path):
    Supervisor({}).notify("READY=1")
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "nowhere")}).notify("READY=1")


async def well() -> bool:
    return True


async def test_who_does_not_get_on_gives_no_sign_until_it_does(systemd: socket.socket):
    ill = asyncio.Event()

    async def gets_on() -> bool:
        return not ill.is_set()

    supervisor = Supervisor({"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "60000"})
    signs = spawn(supervisor.reassure(gets_on), name="signs")
    await asyncio.sleep(0.1)
    ill.set()
    before = told(systemd)
    await asyncio.sleep(0.1)
    meanwhile = told(systemd)
    ill.clear()
    await asyncio.sleep(0.1)
    after = told(systemd)
    signs.cancel()

    assert (bool(before), meanwhile, bool(after)) == (True, [], True)


async def test_a_loop_that_turns_gives_signs_of_life_and_one_that_hangs_none(systemd: socket.socket):
    supervisor = Supervisor({"NOTIFY_SOCKET": systemd.getsockname(), "WATCHDOG_USEC": "60000"})
    signs = spawn(supervisor.reassure(well), name="signs")
    await asyncio.sleep(0.2)
    turning = told(systemd)
    select.select([], [], [], 0.3)  # The loop hangs: longer than systemd waits.
    hanging = told(systemd)
    signs.cancel()

    assert set(turning) == {"WATCHDOG=1"}
    assert len(turning) >= 3
    assert hanging == []


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "soon"}, 0.0),
        ({}, 0.0),
    ],
)
async def test_it_is_watched_where_systemd_says_so(variables: dict[str, str], seconds: float):
    supervisor = Supervisor({"NOTIFY_SOCKET": "/nowhere", **variables})

    assert supervisor.seconds == seconds
    if not seconds:
        await supervisor.reassure(well)  # It ends at once.
