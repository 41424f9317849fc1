"""What the harness adds to the first token: ours, with its committed ledger row, beside a bare httpx2 stream.

Both ask the same server over a warm connection, in turn; what is told is the median time to the first word.
"""

import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from bench.chunks import NoBook
from bench.figures import Figure
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session as View
from hermes_agent.cli.main import QUIET
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.messages import ModelRequest, Prefix, TextDelta, said
from hermes_agent.host.http import Http
from hermes_agent.host.tasks import spawn
from hermes_agent.providers.broker import Broker, Ledger
from hermes_agent.providers.route import choose
from hermes_agent.providers.routing.chain import single
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.replay.seam import Book, RunLedger, StoredLedger
from hermes_agent.store.database import open_store
from hermes_agent.store.sessions import Session

TIMES = 200
MOST = 1.0  # milliseconds that the harness may add
PREFIX = Prefix(system="You are a careful assistant.", tools=(), hash="0")


async def bare(client: httpx2.AsyncClient, url: str, _number: int) -> float:
    began = time.perf_counter()
    async with client.stream("POST", f"{url}/chat/completions", json={"messages": []}) as response:
        first = 0.0
        async for _ in response.aiter_bytes():
            first = first or time.perf_counter() - began
    return first * 1e3


async def ours(broker: Broker, call: str) -> float:
    request = ModelRequest(
        call_id=call, session="s", run="r", turn=1, purpose="chat", prefix=PREFIX, messages=[said("Hi")]
    )
    began, first = time.perf_counter(), 0.0
    async for item in broker.ask(request):
        if isinstance(item, TextDelta):
            first = first or time.perf_counter() - began
    return first * 1e3


async def figures(url: str, folder: Path) -> list[Figure]:
    settings, http, clock = ModelSettings(default="openai/gpt-5.2", base_url=url), Http(), SystemClock()
    store = await open_store(folder / "hermes.db")
    route = choose(settings, lambda _: "key")

    def broker(ledger: Ledger) -> Broker:
        return Broker(single(route, http, clock, settings), ledger)

    book = Book(store=store, clock=clock)
    alone, booked, within = (broker(each) for each in (NoBook(), StoredLedger(book, "bench"), await in_a_run(book)))
    plain = httpx2.AsyncClient(timeout=None, trust_env=False)
    floor, without, whole, running = [], [], [], []
    for number in range(TIMES + 10):
        floor.append(await bare(plain, url, number))
        without.append(await ours(alone, f"a{number}"))
        whole.append(await ours(booked, f"b{number}"))
        running.append(await ours(within, f"r{number}"))
    await plain.aclose()
    await http.close()
    await store.close()
    base = statistics.median(floor[10:])
    added = [statistics.median(each[10:]) - base for each in (without, whole, running)]
    return [
        Figure(name="bare httpx2 to the first word", value=base, unit="ms"),
        Figure(name="the harness adds to the first word, without a book", value=added[0], unit="ms", limit=MOST),
        Figure(name="the harness adds to the first word, row committed", value=added[1], unit="ms", limit=MOST),
        Figure(name="the harness adds to the first word, in a run", value=added[2], unit="ms", limit=MOST),
    ]


async def in_a_run(book: Book) -> Ledger:
    """The ledger of a run: its rows go through the journal of a session that this process holds."""
    now, store = book.clock.now(), book.store
    record = Session(id="s", principal="bench", conversation="bench", surface="cli", created=now, updated=now)
    await store.write(lambda tx: store.sessions.create(tx, record))
    lease = await store.lanes.hold(record.id, "cli")
    assert lease is not None
    journal = Journal(store, lease, View(id=record.id), clock=book.clock, show=lambda _: None, spawn=spawn)
    return RunLedger(book, journal, record)


def measure() -> list[Figure]:
    """The figures of this module."""
    gc.set_threshold(QUIET, 20, 20)
    command = [sys.executable, "-m", "bench.chunks", "--serve", "1", "0"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        found = asyncio.run(figures(f"http://127.0.0.1:{int(server.stdout.readline())}/v1", Path(folder)))
        server.terminate()
    return found
