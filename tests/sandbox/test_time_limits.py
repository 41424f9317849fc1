"""Limits hold whatever becomes of the process that asked for them, and nobody stays when they are not needed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.host.process_table import Identity, family, is_alive
from hermes_agent.sandbox.time_limits import ENFORCER, TimeLimits
from tests.architecture.source import ROOT
from tests.sandbox.beats import beating, seen, silent

STARTER = """
import asyncio, sys
from pathlib import Path
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.place import Command

async def start():
    place = LocalPlace(folder=Path(sys.argv[1], "exec"), env={"PATH": "/usr/bin:/bin"})
    await place.start("g/a", Command(text=sys.argv[2], folder=sys.argv[1], limit=float(sys.argv[3])))
    print("started", flush=True)
    await asyncio.sleep(60)

asyncio.run(start())
"""


def starter(folder: Path, text: str, limit: float) -> subprocess.Popen[bytes]:
    """A process that has started the command."""
    child = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder), text, str(limit)],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"started\n"
    return child


def enforcers(parent: int) -> list[int]:
    """The enforcers that this process started, as long as it lives."""
    table = subprocess.run(
        ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(parent)], capture_output=True, text=True
    ).stdout
    return [int(line.split()[0]) for line in table.splitlines() if str(ENFORCER) in line]


async def gone(pid: int) -> None:
    """Return when that process has ended."""
    async with asyncio.timeout(5):
        while is_alive(Identity(pid=pid)):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP, signal.SIGTERM])
async def test_a_command_ends_in_its_time_whatever_becomes_of_its_starter(tmp_path: Path, number: signal.Signals):
    loop = asyncio.get_running_loop()
    text = f"{beating(tmp_path)}trap '' TERM; sleep 60; sleep 61"
    began = loop.time()
    child = starter(tmp_path, text, 1.5)
    await seen(tmp_path)

    child.send_signal(number)
    await silent(tmp_path, 10)

    assert 1.5 < loop.time() - began < 10
    assert (tmp_path / "exec/g/a/exit").read_text() == "137\n"
    child.kill()
    child.communicate()
    assert family(0, f"HERMES_EXEC={tmp_path}/exec/g/a".encode()) == []


async def test_an_enforcer_goes_with_its_starter_when_no_command_runs(tmp_path: Path):
    child = starter(tmp_path, f"{beating(tmp_path)}sleep 0.3", 60.0)
    await seen(tmp_path)
    await silent(tmp_path, 5)
    (enforcer,) = enforcers(child.pid)

    child.kill()
    child.communicate()

    await gone(enforcer)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_an_enforcer_that_is_gone_or_stands_still_has_another_one_in_its_place(
    tmp_path: Path, number: signal.Signals
):
    others = enforcers(os.getpid())
    limits = TimeLimits()
    limits.hold(tmp_path / "none", 60.0)
    (first,) = {*enforcers(os.getpid())} - {*others}
    os.kill(first, number)
    if number == signal.SIGKILL:
        await gone(first)
    for _ in range(2000 if number == signal.SIGSTOP else 1):
        limits.hold(tmp_path / "none", 60.0)
    record = tmp_path / "record"
    record.mkdir()
    environment = {"HERMES_EXEC": str(record), "PATH": os.environ["PATH"]}
    child = await asyncio.to_thread(subprocess.Popen, ["sleep", "60"], env=environment, start_new_session=True)

    limits.hold(record, 0.1)

    assert await asyncio.to_thread(child.wait, 10) == -signal.SIGTERM
    if number == signal.SIGSTOP:
        os.kill(first, signal.SIGKILL)
    limits.close()


def test_without_a_process_to_start_the_reason_is_told(tmp_path: Path):
    with pytest.raises(OSError, match="No such file"):
        TimeLimits(str(tmp_path / "gone")).hold(tmp_path, 1.0)
