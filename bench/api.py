"""The API under load: short runs a second, a thousand sessions, memory; beside a bare proxy in front of the same model.

The model is a double that takes 200 ms, in a process of its own; the clients are as cheap as they can be.
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

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.answering import HEAD, events
from bench.figures import Figure
from hermes_agent.api.server import listening

MODEL_SECONDS = 0.2
SIDE_BY_SIDE = 100
RUNS = 600
SESSIONS = 1000
SPREAD_SECONDS = 10.0
KEY = "a-key-of-the-bench-of-the-api"
REQUEST = (
    b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer " + KEY.encode() + b"\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
)


def measure() -> list[Figure]:
    """The figures of this module."""
    with child("--model") as (model, _), tempfile.TemporaryDirectory() as folder:
        with child("--proxy", model) as (port, process):
            bare = asyncio.run(_load(int(port), process.pid))
        with hermes(Path(folder), model) as (port, process):
            ours = asyncio.run(_load(int(port), process.pid))
    added = {name: (getattr(ours, name) - MODEL_SECONDS) * 1000 for name in ("median", "slowest", "burst")}
    floor = {name: (getattr(bare, name) - MODEL_SECONDS) * 1000 for name in ("median", "slowest", "burst")}
    return [
        Figure(name=f"short runs a second, {SIDE_BY_SIDE} side by side", value=ours.rate, unit="/s", limit=None),
        Figure(name="the same through the bare proxy", value=bare.rate, unit="/s", limit=None),
        Figure(name="time of a run at that rate, by the proxy's", value=1 / ours.rate, floor=1 / bare.rate, unit="s"),
        Figure(name="150 runs a second, by ours", value=150 / ours.rate, unit="x", limit=1.0),
        Figure(name="CPU of the server for a run", value=ours.cpu, floor=bare.cpu, unit="ms"),
        Figure(
            name=f"{SESSIONS} sessions in {SPREAD_SECONDS:.0f} s: median added",
            value=added["median"],
            unit="ms",
            limit=100,
        ),
        Figure(name="the same through the bare proxy", value=floor["median"], unit="ms"),
        Figure(
            name=f"{SESSIONS} sessions in {SPREAD_SECONDS:.0f} s: 99 % added",
            value=added["slowest"],
            unit="ms",
            limit=1000,
        ),
        Figure(name=f"{SESSIONS} sessions at one moment: median added", value=added["burst"], unit="ms"),
        Figure(name="the same through the bare proxy", value=floor["burst"], unit="ms"),
        Figure(name="most memory of the server", value=ours.memory, unit="MB", limit=250),
    ]


@dataclass
class Load:
    """What one server did. Seconds, but for `cpu` (milliseconds) and `memory` (megabytes)."""

    rate: float = 0.0
    cpu: float = 0.0
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


async def _ask(port: int, number: int, load: Load) -> None:
    body = json.dumps({"model": "hermes", "messages": [{"role": "user", "content": f"Number {number}"}]}).encode()
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST % (b"/v1/chat/completions", len(body), body))
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head, head
    answer = await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
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


async def serve_proxy(model: str) -> None:
    """The floor: starlette takes a request, httpx2 sends it on and reads the stream, a completion goes back."""
    limits = httpx2.Limits(max_connections=5000, max_keepalive_connections=200)
    client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{model}", trust_env=False, timeout=None, limits=limits)

    async def chat(request: Request) -> JSONResponse:
        body = await request.json()
        async with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as answer:
            chunks = [json.loads(line[6:]) async for line in answer.aiter_lines() if line.startswith("data: {")]
        words = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
        message = {"role": "assistant", "content": "".join(words)}
        return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
    async with listening(app, "127.0.0.1", 0) as place:
        print(place.port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve_model() if sys.argv[1] == "--model" else serve_proxy(sys.argv[2]))
