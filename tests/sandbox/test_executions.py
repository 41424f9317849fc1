"""A record says who runs a command and how it ended, and what a place cannot carry is refused in a sentence."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_agent.host.process_table import MARK, Identity, family, is_alive
from hermes_agent.sandbox.executions import (
    ENFORCER,
    FILES,
    NOBODY,
    TimeLimits,
    check_text,
    claim,
    identity_in,
    is_beginning,
    noted_end,
    start_note,
    void,
)
from hermes_agent.sandbox.place import PlaceFailed
from tests.architecture.source import ROOT
from tests.sandbox.beats import beating, seen, silent


def test_a_claim_whose_shell_said_nothing_yet_is_beginning_until_it_is_void(tmp_path: Path):
    (tmp_path / "a").mkdir()
    assert is_beginning(tmp_path / "a")

    assert void(tmp_path / "a")
    assert not void(tmp_path / "a")


def test_a_jailed_command_whose_starter_died_first_never_began(tmp_path: Path):
    (tmp_path / "exit").touch()
    starter = start_note(tmp_path)
    assert not void(tmp_path)  # its starter lives, and may stand still

    os.close(starter)
    assert void(tmp_path)


@pytest.mark.parametrize(("file", "text"), [("exit", "\n"), ("exit", "0\n"), ("pid", "42\n")])
def test_what_began_is_never_void(tmp_path: Path, file: str, text: str):
    (tmp_path / "exit").touch()
    os.close(start_note(tmp_path))
    (tmp_path / file).write_text(text)

    assert not void(tmp_path)


def test_what_carries_the_mark_of_its_record_is_never_void(tmp_path: Path):
    (tmp_path / "exit").touch()
    os.close(start_note(tmp_path))

    with subprocess.Popen(["sleep", "60"], env={MARK: str(tmp_path)}, start_new_session=True) as child:
        assert not void(tmp_path)
        child.kill()


def test_who_runs_it_is_read_from_its_own_line_or_its_number():
    line = Path(f"/proc/{os.getpid()}/stat").read_text()

    assert identity_in(line).pid == os.getpid()
    assert identity_in("42\n").pid == 42
    assert identity_in("") == identity_in("nonsense") == NOBODY


@pytest.mark.parametrize(
    ("written", "code", "left"),
    [
        ("0\n", 0, None),
        ("143 3\n", 143, 3),
        ("0\n7\n", 0, None),
        ("", None, None),
        ("0", None, None),
        ("x y\n", None, None),
        ("1 \u00b2\n", None, None),
    ],
)
def test_how_it_ended_is_read_and_nonsense_is_none(written: str, code: int | None, left: int | None):
    assert noted_end(written) == (code, left)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_no_shell_reads_is_refused(text: str):
    with pytest.raises(PlaceFailed):
        check_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_record_is_claimed_once(tmp_path: Path) -> None:
    record = tmp_path / "g" / "a"
    claim(record)

    with pytest.raises(FileExistsError):
        claim(record)
    assert names(record) == sorted(FILES)


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    claim(tmp_path / "a")

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a").iterdir()} == {0o600}


def test_where_none_can_be_made_that_is_told_by_the_claim(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OSError, match="Not a directory"):
        claim(tmp_path / "file" / "a")


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
