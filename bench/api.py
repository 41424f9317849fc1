"""The API under load: short runs a second, on new connections and on kept ones, a thousand sessions, memory; and one
client alone.

The floor is aiohttp, which hands each request on to the same model, and commits two rows of it by apsw. The model is a
double that takes 200 ms, in a process of its own; the clients are as cheap as they can be.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import apsw
from aiohttp import web

from bench.answering import HEAD, events
from bench.figures import Figure

MODEL_SECONDS = 0.2
SIDE_BY_SIDE = 100
RUNS = 600
KEPT = (50, 200)
"""Connections that are kept, each asking again when it was answered."""
ALONE, SETTLED, BLOCKS = 20, 5, 3
SESSIONS = 1000
SPREAD_SECONDS = 10.0
KEY = "a-key-of-the-bench-of-the-api"
REQUEST = (
    b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer " + KEY.encode() + b"\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
)
CHAT = b"/v1/chat/completions"


def measure() -> list[Figure]:
    """The figures of this module."""
    with child("--model") as (model, _), tempfile.TemporaryDirectory() as folder:
        with child("--floor", model, folder) as (port, process):
            bare = asyncio.run(_load(int(port), process.pid))
        with hermes(Path(folder), model) as (port, process):
            ours = asyncio.run(_load(int(port), process.pid))
        with hermes(Path(folder), model) as (port, _):
            whole, streamed = asyncio.run(_alone(int(port)))
    return [*_throughput(ours, bare), *_sessions(ours, bare), *_one_client(whole, streamed)]


def _throughput(ours: Load, bare: Load) -> list[Figure]:
    figures = [
        Figure(name=f"short runs a second, {SIDE_BY_SIDE} at once", value=ours.rate, unit="/s"),
        Figure(name="the same of the floor", value=bare.rate, unit="/s"),
        Figure(name="150 runs a second, by ours", value=150 / ours.rate, unit="x", limit=1.0),
        Figure(name="CPU of the server for a run", value=ours.cpu, floor=bare.cpu, unit="ms"),
    ]
    for count in KEPT:
        kept, least = ours.kept[count], bare.kept[count]
        figures += [
            Figure(name=f"the same over {count} kept connections", value=kept.rate, unit="/s"),
            Figure(name="the same of the floor", value=least.rate, unit="/s"),
            Figure(name="CPU of the server for a run", value=kept.cpu, floor=least.cpu, unit="ms"),
        ]
    return figures


def _sessions(ours: Load, bare: Load) -> list[Figure]:
    added = {name: (getattr(ours, name) - MODEL_SECONDS) * 1000 for name in ("median", "slowest", "burst")}
    floor = {name: (getattr(bare, name) - MODEL_SECONDS) * 1000 for name in ("median", "burst")}
    spread = f"{SESSIONS} sessions in {SPREAD_SECONDS:.0f} s"
    return [
        Figure(name=f"{spread}: median added", value=added["median"], unit="ms", limit=100),
        Figure(name="the same of the floor", value=floor["median"], unit="ms"),
        Figure(name=f"{spread}: 99 % added", value=added["slowest"], unit="ms", limit=1000),
        Figure(name=f"{SESSIONS} sessions at one moment: median added", value=added["burst"], unit="ms"),
        Figure(name="the same of the floor", value=floor["burst"], unit="ms"),
        Figure(name="most memory of the server", value=ours.memory, unit="MB", limit=250),
    ]


def _one_client(whole: list[float], streamed: list[float]) -> list[Figure]:
    """A whole answer is one piece; nothing in it may wait for anything that the first piece of a stream does not."""
    both = [(statistics.median(each) - MODEL_SECONDS) * 1000 for each in (whole, streamed)]
    return [
        Figure(name="one client, kept connection: a whole answer adds", value=both[0], unit="ms"),
        Figure(name="the first words of a streamed one add", value=both[1], unit="ms"),
        Figure(name="a whole answer after a streamed one's first words", value=both[0] - both[1], unit="ms", limit=5),
    ]


@dataclass
class Rate:
    """Runs a second, and milliseconds of the server's CPU for each."""

    rate: float = 0.0
    cpu: float = 0.0


@dataclass
class Load(Rate):
    """What one server did. Seconds, but for `cpu` (milliseconds) and `memory` (megabytes)."""

    kept: dict[int, Rate] = field(default_factory=dict)
    median: float = 0.0
    slowest: float = 0.0
    burst: float = 0.0
    memory: float = 0.0
    taken: list[float] = field(default_factory=list)


async def _load(port: int, pid: int) -> Load:
    load, number = Load(), iter(range(10**9))
    await asyncio.gather(*(_ask(port, next(number), load) for _ in range(20)))
    used, began = _cpu(pid), time.perf_counter()

    async def again() -> None:
        for _ in range(RUNS // SIDE_BY_SIDE):
            await _ask(port, next(number), load)

    await asyncio.gather(*(again() for _ in range(SIDE_BY_SIDE)))
    load.rate = RUNS / (time.perf_counter() - began)
    load.cpu = (_cpu(pid) - used) / RUNS * 1000
    for count in KEPT:
        load.kept[count] = await _kept(port, pid, count, number)
    load.taken.clear()

    async def later(index: int) -> None:
        await asyncio.sleep(index * SPREAD_SECONDS / SESSIONS)
        await _ask(port, next(number), load)

    await asyncio.gather(*(later(index) for index in range(SESSIONS)))
    load.taken.sort()
    load.median, load.slowest = statistics.median(load.taken), load.taken[int(SESSIONS * 0.99)]
    load.taken.clear()
    await asyncio.gather(*(_ask(port, next(number), load) for _ in range(SESSIONS)))
    load.burst, load.memory = statistics.median(load.taken), _memory(pid)
    return load


async def _kept(port: int, pid: int, count: int, number: Iterator[int]) -> Rate:
    """The same on so many connections, which are made before."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    used, began = _cpu(pid), time.perf_counter()
    each = max(3, RUNS // count)

    async def again(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(each):
            writer.write(_request(next(number)))
            assert b"Done." in await _whole(reader)

    await asyncio.gather(*(again(*pair) for pair in opened))
    runs = count * each
    found = Rate(rate=runs / (time.perf_counter() - began), cpu=(_cpu(pid) - used) / runs * 1000)
    for _, writer in opened:
        writer.close()
    return found


async def _alone(port: int) -> tuple[list[float], list[float]]:
    """Seconds to a whole answer, and to the first words of a streamed one, each on a kept connection that never rests:
    after a pause the kernel confirms at once what it otherwise confirms late."""
    whole, streamed = [], []
    for _ in range(BLOCKS):
        whole += await _again(port, stream=False)
        streamed += await _again(port, stream=True)
    return whole, streamed


async def _again(port: int, *, stream: bool) -> list[float]:
    taken = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(ALONE):
        began = time.perf_counter()
        writer.write(_request(number, stream=stream))
        if stream:
            await reader.readuntil(b"Done.")
            taken.append(time.perf_counter() - began)
            await reader.readuntil(b"0\r\n\r\n")
        else:
            await _whole(reader)
            taken.append(time.perf_counter() - began)
    writer.close()
    return taken[SETTLED:]


def _request(number: int, *, stream: bool = False) -> bytes:
    words = {"model": "hermes", "messages": [{"role": "user", "content": f"Number {number}"}], "stream": stream}
    body = json.dumps(words).encode()
    return REQUEST % (CHAT, len(body), body)


async def _whole(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head, head
    return await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))


async def _ask(port: int, number: int, load: Load) -> None:
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request(number))
    answer = await _whole(reader)
    load.taken.append(time.perf_counter() - began)
    writer.close()
    assert b"Done." in answer, answer


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    """The most memory that a process held, in megabytes."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1000


@contextlib.contextmanager
def child(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """This file as a server in a process of its own, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.api", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process
    finally:
        process.stdin.close()
        process.wait(10)


@contextlib.contextmanager
def hermes(home: Path, model: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`hermes api run` on a fresh home, and its port."""
    (home / "config.yaml").write_text(
        f"model:\n  default: custom/m\n  base_url: http://127.0.0.1:{model}/v1\napi:\n  port: 0\n  max_waiting: 5000\n"
    )
    (home / ".env").write_text(f"API_SERVER_KEY={KEY}\nCUSTOM_API_KEY={KEY}\n")
    (home / ".env").chmod(0o600)
    environment = {**os.environ, "HERMES_HOME": str(home)}
    command = [sys.executable, "-m", "hermes_agent", "api", "run"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().removesuffix("/v1").rpartition(":")[2], process
    finally:
        process.terminate()
        process.wait(20)


class Model(asyncio.Protocol):
    """Answers every request with the same words, after a while."""

    body = events(0, [])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.received, self.wanted = transport, bytearray(), 0

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.wanted and (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.received[:end]).lower()
            self.wanted = end + 4 + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        if self.wanted and len(self.received) >= self.wanted:
            self.received.clear()
            self.wanted = 0
            asyncio.get_running_loop().call_later(MODEL_SECONDS, self.answer)

    def answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(HEAD % len(self.body) + self.body)


async def serve_model() -> None:
    """The double, until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Model, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


async def serve_floor(model: str, folder: str) -> None:
    """The floor: aiohttp takes a request, a row says so, aiohttp asks the model and reads its stream, a row has the
    answer, and it goes back."""
    rows = apsw.Connection(f"{folder}/floor.db")
    rows.pragma("journal_mode", "wal")
    rows.pragma("synchronous", "full")
    rows.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    address = f"http://127.0.0.1:{model}/v1/chat/completions"

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        rows.execute("INSERT INTO row (body) VALUES (?)", (json.dumps(body),))
        async with client.post(address, json={**body, "stream": True}) as answer:
            lines = (await answer.read()).splitlines()
        chunks = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
        words = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
        rows.execute("INSERT INTO row (body) VALUES (?)", (words,))
        message = {"role": "assistant", "content": words}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
    await site.start()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=5000)) as client:
        print(runner.addresses[0][1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve_model() if sys.argv[1] == "--model" else serve_floor(*sys.argv[2:]))
