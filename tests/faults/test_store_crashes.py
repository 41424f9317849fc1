"""Workers are killed, stopped and cut off at work: nothing is lost, nothing finished runs again, order holds."""

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hermes_agent.core.events import MessageTaken, RunEnded, ToolEnded
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.leases import Lease
from tests.databases import OpenAnother
from tests.doubles.postgres import PostgresCluster
from tests.faults.programs.store_worker import HANG, QUEUES, STEPS, timings
from tests.store.made import QUEUE, add, answer, mail, session

WORKER = Path(__file__).parent / "programs" / "store_worker.py"
ROOT = Path(__file__).parents[2]
LANES = 12
DRAIN_SECONDS = 25.0


@dataclass
class Fleet:
    """Worker processes on one database, and the mail that was sent to them."""

    store: Store
    url: str
    log: Path
    ttl: float = 30.0
    loss: float = 0.0
    workers: list[asyncio.subprocess.Process] = field(default_factory=list)
    sent: dict[str, list[int]] = field(default_factory=dict)
    count: int = 0

    async def start(self) -> asyncio.subprocess.Process:
        command = [sys.executable, str(WORKER), self.url, str(self.log), str(self.ttl), str(self.loss)]
        environment = {"PATH": os.defpath, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        worker = await asyncio.create_subprocess_exec(*command, env=environment)
        self.workers.append(worker)
        return worker

    async def kill(self, worker: asyncio.subprocess.Process) -> None:
        self.workers.remove(worker)
        worker.kill()
        await worker.wait()

    async def send(self) -> None:
        """One message to a random lane; one of ten is delivered twice."""
        self.count += 1
        lane, inbound = f"s{random.randrange(LANES)}", mail(self.count)
        row = await self.store.inbox.accept(inbound, lane, QUEUE)
        assert row is not None
        self.sent.setdefault(lane, []).append(row)
        if random.random() < 0.1:
            assert await self.store.inbox.accept(inbound, lane, QUEUE) is None

    async def keep_sending(self, pause: float, until: float) -> None:
        while time.monotonic() < until:
            await self.send()
            await asyncio.sleep(pause)

    async def drained(self) -> None:
        async def query(tx):
            return await tx.row("SELECT count(*) FROM inbox WHERE ended IS NULL")

        async with asyncio.timeout(DRAIN_SECONDS):
            while await self.store.read(query) != (0,):
                await asyncio.sleep(0.05)

    async def judge(self) -> None:
        """Nothing lost, doubled or out of order; nothing that had its result was run again."""
        for lane, rows in self.sent.items():
            events = [entry.event for entry in await self.store.history.entries(lane)]
            assert [event.inbox for event in events if isinstance(event, MessageTaken)] == rows
            assert sum(isinstance(event, RunEnded) for event in events) == len(rows)
            steps = [event.turn for event in events if isinstance(event, ToolEnded)]
            assert steps == [*range(1, STEPS + 1)] * len(rows)
            assert await self.store.effects.open(lane) == []
        assert self.ran_again() == []

    def ran_again(self) -> list[str]:
        """Effects that began after their result was committed."""
        done: set[str] = set()
        again: list[str] = []
        for line in self.log.read_text().splitlines():
            what, _, key = line.partition(" ")
            if what == "D":
                done.add(key)
            elif key in done:
                again.append(key)
        return again

    @property
    def effects(self) -> Counter[str]:
        """How often each kind of line was written."""
        return Counter(line[0] for line in self.log.read_text().splitlines())


@asynccontextmanager
async def fleet(url: str, folder: Path, *, ttl: float = 30.0, loss: float = 0.0) -> AsyncIterator[Fleet]:
    store = await open_store(url, timings=timings(ttl))
    for number in range(LANES):
        await add(store, session(f"s{number}"))
    made = Fleet(store, url, folder / "effects.log", ttl, loss)
    made.log.touch()
    try:
        for _ in range(3):
            await made.start()
        yield made
    finally:
        for worker in list(made.workers):
            await made.kill(worker)
        await store.close()


async def disturb(made: Fleet, seconds: float, fault: Callable[[], Awaitable[None]]) -> None:
    """Send mail for so long while the fault happens again and again; then let everything be answered."""
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        group.create_task(made.keep_sending(0.01, until))
        while time.monotonic() < until:
            await fault()
    await made.drained()
    await made.judge()
    assert made.effects["E"] >= made.count * STEPS


@pytest.mark.timeout(300)
async def test_killed_workers_lose_nothing_and_repeat_nothing(database_url: str, tmp_path: Path, loop_seconds: float):
    async with fleet(database_url, tmp_path) as made:

        async def kill_one() -> None:
            await asyncio.sleep(random.uniform(0.1, 0.4))
            await made.kill(random.choice(made.workers))
            await made.start()

        await disturb(made, loop_seconds, kill_one)


@pytest.mark.timeout(300)
async def test_stopped_workers_that_come_back_write_nothing(database_url: str, tmp_path: Path, loop_seconds: float):
    async with fleet(database_url, tmp_path, ttl=0.8) as made:

        async def stop_one() -> None:
            zombie = random.choice(made.workers)
            zombie.send_signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(1.4)
            finally:
                zombie.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.3)

        await disturb(made, loop_seconds, stop_one)


@pytest.mark.timeout(300)
async def test_commits_whose_answer_is_lost_count_once(cluster: PostgresCluster, tmp_path: Path, loop_seconds: float):
    async with fleet(cluster.fresh_url(), tmp_path, loss=0.03) as made:
        await disturb(made, loop_seconds, lambda: asyncio.sleep(0.2))


@pytest.mark.timeout(300)
async def test_a_server_that_crashes_and_returns_loses_nothing(
    cluster: PostgresCluster, tmp_path: Path, loop_seconds: float
):
    async with fleet(cluster.fresh_url(), tmp_path) as made:

        async def restart() -> None:
            await asyncio.sleep(1.0)
            await asyncio.shield(asyncio.to_thread(crash, cluster))

        await disturb(made, loop_seconds, restart)


def crash(cluster: PostgresCluster) -> None:
    cluster.stop("immediate")
    cluster.start()


@pytest.mark.timeout(60)
async def test_a_peer_takes_over_within_a_second(database_url: str, tmp_path: Path, open_another: OpenAnother):
    # The server may have started a moment ago, after another test: then nobody is judged for a while.
    peer = await open_another(timings=replace(timings(30.0), grace=0.0))
    await add(peer, session("s0"))
    await peer.workers.register()
    made = Fleet(peer, database_url, tmp_path / "effects.log")
    took = []
    for number in range(3):
        worker = await made.start()
        await peer.inbox.accept(mail(number, HANG), "s0", QUEUE)
        while not await is_owned(peer):
            await peer.workers.wait(0.05)
        killed = time.monotonic()
        await made.kill(worker)
        lease = await claimed_by(peer)
        took.append(time.monotonic() - killed)
        await answer(peer, lease)

    assert max(took) < 1.0


async def is_owned(store: Store) -> bool:
    async def query(tx):
        return await tx.row("SELECT 1 FROM lane WHERE owner IS NOT NULL")

    return await store.read(query) is not None


async def claimed_by(store: Store) -> Lease:
    """What a worker does all day, until it has a lane."""
    while True:
        pause = await store.workers.tend(())
        if lease := await store.lanes.claim(QUEUES):
            return lease
        await store.workers.wait(pause)
