"""Presence beside a file: a death is noticed at once, and waiting costs nothing."""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.store.database import open_store
from hermes_agent.store.sqlite.presence import Bell, SqlitePresence, bell_folder, listen
from tests.store.made import QUEUES, claimed


@pytest.fixture
async def pair(tmp_path: Path):
    here, there = SqlitePresence(tmp_path, SystemClock()), SqlitePresence(tmp_path, SystemClock())
    await here.arrive("aaaaaaaaaaaa", 1)
    await there.arrive("bbbbbbbbbbbb", 2)
    yield here, there
    await here.leave()
    await there.leave()


PEER = """
import asyncio, pathlib, sys
from hermes_agent.core.clock import SystemClock
from hermes_agent.store.sqlite.presence import SqlitePresence
async def be():
    await SqlitePresence(pathlib.Path(sys.argv[1]), SystemClock()).arrive("cccccccccccc", 3)
    print("here", flush=True)
    await asyncio.sleep(60)
asyncio.run(be())
"""


@contextmanager
def peer(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a process of its own."""
    words = [sys.executable, "-c", PEER, str(home)]
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": "src"}, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"
            yield process
        finally:
            process.kill()


async def noticed(here: SqlitePresence, seconds: float) -> bool:
    """Whether a death is noticed in that time."""
    until = time.monotonic() + seconds
    while not here.suspicious():
        if time.monotonic() > until:
            return False
        await here.wait(until - time.monotonic())
    return True


BOTH = [("aaaaaaaaaaaa", 1), ("bbbbbbbbbbbb", 2)]


async def test_the_living_are_not_dead(pair: tuple[SqlitePresence, SqlitePresence]):
    here, _there = pair

    assert await here.dead(BOTH) == []
    assert await here.dead([("cccccccccccc", 3)]) == ["cccccccccccc"]


async def test_a_death_ends_the_wait_of_whoever_came_before(pair: tuple[SqlitePresence, SqlitePresence]):
    here, there = pair
    assert await here.wait(5.0) is True  # The other one arrived.

    await there.leave()

    async with asyncio.timeout(5):
        while not here.suspicious():
            await here.wait(5.0)
    assert await here.dead(BOTH) == ["bbbbbbbbbbbb"]
    assert not here.suspicious()


async def test_a_death_ends_the_wait_of_whoever_came_later(pair: tuple[SqlitePresence, SqlitePresence]):
    here, there = pair

    await here.leave()

    async with asyncio.timeout(5):
        while not there.suspicious():
            await there.wait(5.0)


async def test_what_a_dead_worker_left_is_removed(tmp_path: Path, pair: tuple[SqlitePresence, SqlitePresence]):
    here, _there = pair
    (tmp_path / "locks" / "worker-cccccccccccc").touch()

    await here.buried("cccccccccccc")

    assert not (tmp_path / "locks" / "worker-cccccccccccc").exists()


async def test_waiting_takes_no_time_of_the_processor(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db")
    await store.workers.register()
    while await store.workers.wait(0.05):
        pass
    began = time.process_time()

    await store.workers.wait(0.5)

    assert time.process_time() - began < 0.02
    await store.close()


async def test_leaving_twice_is_leaving(tmp_path: Path):
    presence = SqlitePresence(tmp_path, SystemClock())
    await presence.arrive("aaaaaaaaaaaa", 1)
    await presence.leave()
    await presence.leave()


async def test_two_rings_at_once_are_one(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db")
    waiting = asyncio.create_task(store.workers.wait(5.0))
    await asyncio.sleep(0.05)
    await claimed(store)
    await store.lanes.stop("s1")

    assert await waiting is True
    assert await store.lanes.claim(QUEUES) is None
    await store.close()


async def test_a_ring_in_the_moment_in_which_a_wait_ends_is_heard(
    pair: tuple[SqlitePresence, SqlitePresence], tmp_path: Path
):
    here, _there = pair
    while await here.wait(0.01):  # until the arrivals are heard
        pass
    bell = Bell(bell_folder(tmp_path))
    asyncio.get_running_loop().call_soon(bell.ring, ["aaaaaaaaaaaa"])

    rung = await here.wait(0.0) or await here.wait(0.0)

    bell.close()
    assert rung


async def test_peers_take_no_threads(tmp_path: Path):
    threads = set(threading.enumerate())
    peers = [SqlitePresence(tmp_path, SystemClock()) for _ in range(20)]
    for number, each in enumerate(peers):
        await each.arrive(f"peer{number:08}", number)
    for each in peers:
        await each.wait(0.1)

    new = set(threading.enumerate()) - threads
    for each in peers:
        await each.leave()
    assert new == set()


async def test_a_process_that_is_killed_is_noticed_at_once_and_one_that_is_stopped_lives(tmp_path: Path):
    here = SqlitePresence(tmp_path, SystemClock())
    await here.arrive("aaaaaaaaaaaa", 1)
    with peer(tmp_path) as process:
        assert await here.wait(5.0)
        process.send_signal(signal.SIGSTOP)
        assert not await noticed(here, 0.3)
        assert await here.dead([("cccccccccccc", 3)]) == []

        process.kill()
        assert await noticed(here, 5.0)
        assert await here.dead([("cccccccccccc", 3)]) == ["cccccccccccc"]
        assert not await noticed(here, 0.1)  # What it left is told once.
    await here.leave()


GONE = 1 << 22  # no process has this number: the kernel's are below it


@pytest.mark.parametrize("pid", [None, os.getpid, lambda: GONE], ids=["says nothing", "is another by now", "is gone"])
async def test_a_peer_whose_process_is_not_to_be_seen_is_looked_at(tmp_path: Path, pid: Callable[[], int] | None):
    here = SqlitePresence(tmp_path, SystemClock())
    path = tmp_path / "locks" / "worker-cccccccccccc"
    path.parent.mkdir()
    path.write_text(json.dumps({"pid": pid(), "started": 1, "since": 1, "name": ""}) if pid else "")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        await here.arrive("aaaaaaaaaaaa", 1)
        assert not await noticed(here, 1.2)
    assert await noticed(here, 5.0)
    await here.leave()


def test_a_worker_may_leave_in_another_event_loop(tmp_path: Path):
    here = SqlitePresence(tmp_path, SystemClock())
    with peer(tmp_path):
        asyncio.run(here.arrive("aaaaaaaaaaaa", 1))
        asyncio.run(here.leave())


WORKER = "0123456789ab"


@pytest.fixture
def folder() -> Path:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder) / "run"


@pytest.fixture
def bell(folder: Path):
    bell = Bell(folder)
    yield bell
    bell.close()


def heard(bell) -> bool:
    try:
        bell.recv(1)
    except BlockingIOError:
        return False
    return True


def test_one_worker_or_all_are_rung(folder: Path, bell: Bell):
    ears = [listen(folder, f"{number}{WORKER[1:]}") for number in range(2)]

    bell.ring([f"1{WORKER[1:]}"])
    assert [heard(ear) for ear in ears] == [False, True]
    bell.ring(["", "nobody"])
    assert [heard(ear) for ear in ears] == [True, True]

    for ear in ears:
        ear.close()


def test_ringing_where_nobody_is_is_no_error(bell: Bell):
    bell.ring(["", "nobody"])
    bell.ring(["nobody"])


def test_a_dead_workers_name_is_taken_away(folder: Path, bell: Bell):
    listen(folder, WORKER).close()

    bell.ring([""])

    assert list(folder.iterdir()) == []


def test_a_bell_that_was_rung_a_thousand_times_is_rung(folder: Path, bell: Bell):
    ear = listen(folder, WORKER)

    for _ in range(2000):
        bell.ring([WORKER])

    assert heard(ear)
    ear.close()


def test_a_long_home_gets_a_short_name():
    short, long = Path("/home/ann/.hermes"), Path("/home") / ("x" * 200)

    assert bell_folder(short) == short / "run"
    assert str(bell_folder(long)).startswith("/tmp/hermes-"), "a process with another TMPDIR must meet the same sockets"
    assert bell_folder(long) == bell_folder(long) != bell_folder(long / "y")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_not_trusted(folder: Path):
    folder.mkdir()
    os.chown(folder, 65534, 65534)

    with pytest.raises(PermissionError):
        listen(folder, WORKER)


def test_what_cannot_be_rung_keeps_nobody_else_from_being_woken(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "0.sock").mkdir()
    (tmp_path / f"{'1' * 120}.sock").touch()
    socket = listen(tmp_path, "2")
    bell = Bell(tmp_path)

    bell.ring([""])

    assert socket.recv(1) == b""
    assert "cannot be woken" in caplog.text
    bell.close()
    socket.close()


def test_a_folder_that_cannot_be_read_wakes_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "run").touch()

    Bell(tmp_path / "run").ring([""])

    assert "nobody can be woken" in caplog.text
