"""Lanes: from accepting a message to the start of its run, one step of a run, a peer's take-over of a killed worker."""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import apsw
import asyncpg

from bench.figures import Figure
from hermes_agent.core.chat import Conversation, Inbound, Principal
from hermes_agent.core.events import Entry, MessageTaken
from hermes_agent.core.messages import Text, said
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.inbox import Ending
from hermes_agent.store.leases import Lease
from hermes_agent.store.sessions import Session
from hermes_agent.store.workers import Timings
from tests.doubles.postgres import PostgresCluster, binaries

QUEUES = ("bench",)
ROUNDS = 300
DEATHS = 5
READY_LANES, CLAIMS = 200_000, 2_000
FILL = (
    "INSERT INTO lane (id, queue, pending, queued, ready_at, epoch, stop_epoch, attempts, crashes, error) "
    f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {READY_LANES}) "
    "SELECT 's' || i, CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END, 1, i, 0, 0, 0, 0, 0, '' FROM n"
)
MILLISECONDS = 1000.0
# Claims the lane and sleeps until it is killed.
VICTIM = """
import asyncio, sys
from hermes_agent.store.database import open_store
async def main():
    store = await open_store(sys.argv[1])
    while not await store.lanes.claim(("bench",)):
        await store.workers.wait(1.0)
    print("claimed", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def mail(number: int) -> Inbound:
    return Inbound(
        source="bench",
        source_id=str(number),
        principal=Principal(platform="bench", user="1"),
        conversation=Conversation(platform="bench"),
        parts=(Text(text="hello"),),
        received=0.0,
    )


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    # A server that has just started must wait with its judgement of the dead (10 s); here nobody lost a lock by that.
    store = await open_store(url, timings=Timings(grace=0.0))
    record = Session(id="s", principal="bench:1", conversation="bench", surface="bench", created=0.0, updated=0.0)
    await store.write(lambda tx: store.sessions.create(tx, record))
    await store.workers.register()
    try:
        yield store
    finally:
        await store.close()


async def rounds(store: Store) -> tuple[list[float], list[float]]:
    """Seconds from `accept` to the claimed lane, and of one step, each round."""
    starts, steps = [], []
    for number in range(1, ROUNDS + 1):
        began = time.perf_counter()
        await store.inbox.accept(mail(number), "s", "bench")
        lease = await claimed(store)
        starts.append(time.perf_counter() - began)
        began = time.perf_counter()
        await step(store, lease, number)
        steps.append(time.perf_counter() - began)
        await finish(store, lease)
    return starts, steps


async def claim_time(store: Store) -> float:
    """Milliseconds a claim, one after the other, where very many lanes of two queues are ready."""
    await store.write(lambda tx: tx.run(FILL))
    began = time.perf_counter()
    for _ in range(CLAIMS):
        assert await store.lanes.claim(("even", "odd")) is not None
    return (time.perf_counter() - began) / CLAIMS * MILLISECONDS


async def claimed(store: Store) -> Lease:
    """What a worker does until it has a lane."""
    while True:
        pause = await store.workers.tend(())
        await store.workers.wait(pause)
        if lease := await store.lanes.claim(QUEUES):
            return lease


async def step(store: Store, lease: Lease, number: int) -> None:
    entry = Entry(number=number, run="r", at=0.0, event=MessageTaken(message=said("a result of some words" * 10)))
    await store.write(lambda tx: store.history.append(tx, lease, [entry]))


async def finish(store: Store, lease: Lease) -> None:
    await store.write(lambda tx: store.inbox.finish(tx, lease, lease.pending, Ending.ANSWERED))


async def take_overs(store: Store, url: str) -> list[float]:
    """Seconds from the kill of a worker to its lane in a peer's hands."""
    took = []
    for number in range(DEATHS):
        source = str(Path(sys.modules[Store.__module__].__file__ or "").parents[2])
        environment = {"PATH": os.defpath, "PYTHONPATH": source}
        victim = await asyncio.create_subprocess_exec(
            sys.executable, "-c", VICTIM, url, stdout=asyncio.subprocess.PIPE, env=environment
        )
        await store.inbox.accept(mail(-number - 1), "s", "bench")
        assert victim.stdout is not None
        await victim.stdout.readline()
        began = time.perf_counter()
        victim.kill()
        lease = await claimed(store)
        took.append(time.perf_counter() - began)
        await victim.wait()
        await finish(store, lease)
    return took


def bare_commit(folder: Path) -> float:
    """The disk's part: the median of a durable commit of one row with apsw alone, in milliseconds."""
    connection = apsw.Connection(str(folder / "bare.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE t (a)")
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 300,))
        taken.append(time.perf_counter() - began)
    connection.close()
    return statistics.median(taken) * MILLISECONDS


async def bare_transaction(url: str) -> float:
    """The server's part: the median of BEGIN, a row, COMMIT with asyncpg alone, in milliseconds."""
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE bare (a text)")
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await connection.execute("BEGIN")
        await connection.execute("INSERT INTO bare VALUES ($1)", "x" * 300)
        await connection.execute("COMMIT")
        taken.append(time.perf_counter() - began)
    await connection.close()
    return statistics.median(taken) * MILLISECONDS


async def measure_on(dialect: str, url: str, start_limit: float) -> list[Figure]:
    async with opened(url) as store:
        starts, steps = await rounds(store)
        took = await take_overs(store, url)
        claim = await claim_time(store)
    return [
        Figure(name=f"{dialect}: a claim, {READY_LANES} lanes of two queues", value=claim, unit="ms", limit=1 / 1.5),
        Figure(
            name=f"{dialect}: accept to start, median",
            value=statistics.median(starts) * MILLISECONDS,
            unit="ms",
            limit=start_limit,
        ),
        Figure(name=f"{dialect}: a step, median", value=statistics.median(steps) * MILLISECONDS, unit="ms", limit=0.5),
        Figure(name=f"{dialect}: take-over, longest of {DEATHS}", value=max(took), unit="s", limit=1.0),
    ]


@contextmanager
def server() -> Iterator[PostgresCluster | None]:
    programs = binaries()
    if programs is None:
        yield None
        return
    cluster = PostgresCluster(programs)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


def measure() -> list[Figure]:
    """Both dialects; PostgreSQL only where it is installed."""
    with tempfile.TemporaryDirectory() as folder:
        disk = bare_commit(Path(folder))
        found = asyncio.run(measure_on("sqlite", str(Path(folder) / "hermes.db"), 1.0))
    found.append(Figure(name="the disk: a bare durable commit", value=disk, unit="ms", limit=None))
    with server() as cluster:
        if cluster is not None:
            server_part = asyncio.run(bare_transaction(cluster.fresh_url()))
            found.append(Figure(name="the server: a bare transaction", value=server_part, unit="ms", limit=None))
            found += asyncio.run(measure_on("postgres", cluster.fresh_url(), 3.0))
    return found
