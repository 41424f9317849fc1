"""Reads of a session with very many events: a run over HTTP, and how long any read holds the event loop."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bench.figures import Figure
from hermes_agent.core.chat import Conversation, Inbound, Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Entry, Notice
from hermes_agent.runs.front import check_answer
from hermes_agent.testing.scripted import Say
from tests.api.served import Server, served, until

EVENTS, BATCH = 100_000, 2_000
ASKED = 200
MILLISECONDS = 1000.0
TICK = 0.001


class Lag:
    """The longest time for which the event loop did nothing else."""

    def __init__(self) -> None:
        self.longest = 0.0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        probe = asyncio.create_task(self._look())
        try:
            yield
        finally:
            probe.cancel()

    async def _look(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(TICK)
            self.longest = max(self.longest, time.perf_counter() - began - TICK)


async def run(server: Server, session: str) -> str:
    answer = await server.ask("POST", "/v1/runs", {"input": "Hi", **({"session": session} if session else {})})
    facts = await until(server, answer.json()["id"], "answered")
    return str(facts["id"])


async def fill(server: Server, session: str) -> None:
    """Events that no model is shown."""
    store = server.runtime.store
    lease = await store.lanes.hold(session, "bench")
    assert lease is not None
    first = await store.history.last_number(session) + 1
    for start in range(first, first + EVENTS, BATCH):
        entries = [
            Entry(number=number, run="r", at=0.0, event=Notice(text="Something that happened." * 5))
            for number in range(start, start + BATCH)
        ]
        await store.write(lambda tx, entries=entries: store.history.append(tx, lease, entries))
    await store.lanes.release(lease)


async def held(read: Awaitable[object]) -> float:
    lag = Lag()
    async with lag.watched():
        await asyncio.sleep(5 * TICK)
        await read
        await asyncio.sleep(2 * TICK)
    return lag.longest * MILLISECONDS


async def refused(server: Server, session: str) -> None:
    """An answer to what nobody asks."""
    owner = Principal(platform="api", user="owner", standing=Standing.OWNER)
    inbound = Inbound(
        source="bench",
        source_id="1",
        principal=owner,
        conversation=Conversation(platform="api"),
        parts=(),
        received=0.0,
        answers="q",
    )
    with suppress(HermesError):
        await check_answer(server.runtime.store, inbound, session)


async def measure_in(folder: Path) -> list[Figure]:
    async with served(folder, [Say("Hello.")] * 2) as server:
        early = await run(server, "")
        session = early.removeprefix("run_").rpartition("_")[0]
        await fill(server, session)
        late = await run(server, session)
        taken: list[float] = []
        lag = Lag()
        await held(server.ask("GET", f"/v1/runs/{late}/events"))  # Some of the program is loaded then.
        async with lag.watched():
            for name in (early, late) * (ASKED // 2):
                began = time.perf_counter()
                await server.ask("GET", f"/v1/runs/{name}")
                taken.append(time.perf_counter() - began)
        hermes = server.runtime.hermes
        reads = {
            "GET /v1/runs/ID": lag.longest * MILLISECONDS,
            "its events": await held(server.ask("GET", f"/v1/runs/{late}/events")),
            "a view of all": await held(hermes.view(session)),
            "an answer checked": await held(refused(server, session)),
        }
    return [
        Figure(
            name=f"GET /v1/runs/ID, {EVENTS} events, median",
            value=statistics.median(taken) * MILLISECONDS,
            unit="ms",
            limit=5.0,
        ),
        *(
            Figure(name=f"event loop held by: {name}", value=each, unit="ms", limit=20.0)
            for name, each in reads.items()
        ),
    ]


def measure() -> list[Figure]:
    """On SQLite, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measure_in(Path(folder)))
