"""Presence beside a file: a death is noticed at once, and waiting costs nothing."""

import asyncio
import time
from pathlib import Path

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.store.database import open_store
from hermes_agent.store.sqlite.bell import Bell, bell_folder
from hermes_agent.store.sqlite.presence import SqlitePresence
from tests.store.made import QUEUES, claimed


@pytest.fixture
async def pair(tmp_path: Path):
    here, there = SqlitePresence(tmp_path, SystemClock()), SqlitePresence(tmp_path, SystemClock())
    await here.arrive("aaaaaaaaaaaa", 1)
    await there.arrive("bbbbbbbbbbbb", 2)
    yield here, there
    await here.leave()
    await there.leave()


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
