"""The gateway: from an update at a channel's double to the request on the model's wire, sessions at rest, and how long
its event loop is ever held; beside the API's floor in front of the same model.

The double of Telegram and the model are in this process, the gateway in one of its own; clocks are the machine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from bench.answering import HEAD, events
from bench.api import MODEL_SECONDS, child
from bench.figures import Figure
from hermes_agent.app.opening import Options, open_system
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.gateway.opening import open_gateway
from hermes_agent.host.inbound.listener import serve
from hermes_agent.host.loops import SETTLED_SECONDS, run
from hermes_agent.host.paths import Home
from tests.doubles.telegram import TOKEN, TelegramDouble

UPDATES = 200
CHATS = 40
APART = 0.06
LOAD, LOAD_SECONDS = 1000, 10.0
IDLE, IDLE_SECONDS = 10_000, 10.0
AT_ONCE = 500
BEAT = 0.002
"""Seconds between two looks at the event loop's clock."""
MARKED = re.compile(rb"update-(\d+)-")
LONG = b"never-ending"
CONFIG = """model:
  default: custom/m
  base_url: http://127.0.0.1:{model}/v1
gateway:
  messages_per_minute: 100000
  channels:
    telegram:
      enabled: true
      guests: ['*']
      options:
        api_url: {platform}
"""


def measure() -> list[Figure]:
    """The figures of this module."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Figure]:
    double = TelegramDouble()
    async with serve(double.handle) as double.server, model() as wire:
        empty, filled = (home(folder / name, wire, double) for name in ("empty", "filled"))
        await fill(filled)
        rests = await at_rest(empty), await at_rest(filled)
        async with gateway(empty, watched=True) as served:
            arrivals = await one_by_one(double, wire)
            before = memory(served.pid)
            await load(double, wire)
            grown = (memory(served.pid) - before) / LOAD
        bare = await through_floor(wire)
    return [
        Figure(
            name="update to the model's wire, beside a running one",
            value=statistics.median(arrivals) * 1000,
            unit="ms",
            limit=15,
        ),
        Figure(
            name="the same, by a request through the API's floor",
            value=statistics.median(arrivals) * 1000,
            floor=statistics.median(bare) * 1000,
            unit="ms",
        ),
        Figure(name="the same, 95 %", value=sorted(arrivals)[int(len(arrivals) * 0.95)] * 1000, unit="ms"),
        Figure(
            name=f"memory with {IDLE:,} sessions at rest", value=rests[1][0], floor=rests[0][0], unit="MB", limit=1.1
        ),
        Figure(name=f"CPU of {IDLE:,} sessions at rest", value=rests[1][1], unit="% of a core", limit=0.2),
        Figure(name="memory of a session that was served and rests", value=grown * 1000, unit="kB"),
        Figure(name=f"longest hold of the loop, {LOAD} messages", value=served.held["wall"], unit="ms", limit=50),
        Figure(name="the same, of its own CPU", value=served.held["cpu"], unit="ms"),
    ]


# The model


@dataclass
class Wire:
    """The model's side: where it is, when each update was first heard of, and whether it thinks for a while."""

    port: int = 0
    slow: bool = False
    long: bool = True
    arrived: dict[int, float] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def heard(self, number: int) -> float:
        """When the request about that update began to arrive."""
        async with asyncio.timeout(60):
            while number not in self.arrived:
                self.came.clear()
                await self.came.wait()
        return self.arrived[number]


class Model(asyncio.Protocol):
    """Answers with the same words; one conversation never ends."""

    body = events(0, [])

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.received, self.wanted, self.began = bytearray(), 0, 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.received:
            self.began = time.perf_counter()
        self.received += data
        if not self.wanted and (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.received[:end]).lower()
            self.wanted = end + 4 + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        if self.wanted and len(self.received) >= self.wanted:
            asked, self.wanted = bytes(self.received), 0
            self.received.clear()
            self.asked(asked)

    def asked(self, asked: bytes) -> None:
        """Note whom it is about, and answer."""
        if found := MARKED.findall(asked):
            self.wire.arrived.setdefault(max(map(int, found)), self.began)
            self.wire.came.set()
        elif LONG in asked and self.wire.long:
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            self.go_on()
            return
        asyncio.get_running_loop().call_later(MODEL_SECONDS if self.wire.slow else 0.0, self.answer)

    def answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(HEAD % len(self.body) + self.body)

    def go_on(self) -> None:
        """One more word of the conversation that goes on, twenty in a second."""
        if self.transport.is_closing():
            return
        if not self.wire.long:
            self.transport.write(self.body)
            self.transport.close()
            return
        choice = {"index": 0, "delta": {"content": "word "}, "finish_reason": None}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        self.transport.write(f"data: {json.dumps(chunk)}\n\n".encode())
        asyncio.get_running_loop().call_later(0.05, self.go_on)


@contextlib.asynccontextmanager
async def model() -> AsyncIterator[Wire]:
    """The model, in this process."""
    wire = Wire()
    server = await asyncio.get_running_loop().create_server(lambda: Model(wire), "127.0.0.1", 0, backlog=4096)
    wire.port = server.sockets[0].getsockname()[1]
    yield wire
    wire.long = False
    server.close()


# The gateway


@dataclass
class Served:
    """A gateway's process, and, once it has ended, the milliseconds for which its loop was held at most."""

    pid: int
    held: dict[str, float] = field(default_factory=dict)


def home(folder: Path, wire: Wire, double: TelegramDouble) -> Path:
    """A home whose gateway listens to the double and asks the model."""
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG.format(model=wire.port, platform=double.url))
    return folder


@contextlib.asynccontextmanager
async def gateway(folder: Path, *, watched: bool = False) -> AsyncIterator[Served]:
    """The gateway of a home in a process of its own, once it listens."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.gateway", str(folder), *(["watched"] if watched else [])),
        env={**os.environ, "TELEGRAM_BOT_TOKEN": TOKEN, "CUSTOM_API_KEY": "a-key-of-the-bench"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    served = Served(pid=process.pid)
    try:
        await process.stdout.readline()
        yield served
    finally:
        process.stdin.close()
        served.held = json.loads(await process.stdout.readline() or b"{}")
        await process.wait()


async def serve_gateway(folder: Path, *, watched: bool) -> None:
    """The gateway, until standard input ends."""
    held, changed = {"wall": 0.0, "cpu": 0.0}, asyncio.Event()
    async with open_gateway(Home(root=folder, base=folder), changed=changed.set):
        await changed.wait()
        if watched:
            beat(held)
        print("listening", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        print(json.dumps(held), flush=True)


def beat(held: dict[str, float]) -> None:
    """Look at the clock again and again: how late a look comes is how long something held the loop, or the machine."""
    loop, then, used = asyncio.get_running_loop(), time.perf_counter(), time.thread_time()

    def look() -> None:
        nonlocal then, used
        now, cpu = time.perf_counter(), time.thread_time()
        held["wall"] = max(held["wall"], (now - then - BEAT) * 1000)
        held["cpu"] = max(held["cpu"], (cpu - used) * 1000)
        then, used = now, cpu
        loop.call_later(BEAT, look)

    loop.call_later(BEAT, look)


# What is measured


async def one_by_one(double: TelegramDouble, wire: Wire) -> list[float]:
    """Seconds from an update to its request on the wire, in conversations that rest, beside one that goes on."""
    await double.say(LONG.decode(), chat="9999", user="9999")
    taken = []
    for number in range(1, UPDATES + CHATS + 1):
        chat = str(number % CHATS + 1)
        began = time.perf_counter()
        await double.say(f"update-{number}-", chat=chat, user=chat)
        taken.append(await wire.heard(number) - began)
        await asyncio.sleep(APART)
    return taken[CHATS:]


async def load(double: TelegramDouble, wire: Wire) -> None:
    """So many people, one message each, of a model that thinks."""
    wire.slow = True
    first = UPDATES + CHATS + 1
    for number in range(first, first + LOAD):
        await double.say(f"update-{number}-", chat=str(number), user=str(number))
        await asyncio.sleep(LOAD_SECONDS / LOAD)
    for number in range(first, first + LOAD):
        await wire.heard(number)
    wire.slow = False
    await asyncio.sleep(1)


async def through_floor(wire: Wire) -> list[float]:
    """Seconds from a request to the API's floor to its request on the wire."""
    taken, first = [], 100_000
    with tempfile.TemporaryDirectory() as folder, child("--floor", str(wire.port), folder) as (port, _):
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            for number in range(first, first + UPDATES):
                began = time.perf_counter()
                message = {"role": "user", "content": f"update-{number}-"}
                await client.post("/v1/chat/completions", json={"model": "m", "messages": [message]})
                taken.append(await wire.heard(number) - began)
    return taken


async def fill(folder: Path) -> None:
    """10,000 conversations in the store of a home."""
    options = Options(attended=False)
    async with open_system(Home(root=folder, base=folder), options) as runtime:

        async def one(number: int) -> None:
            who = Principal(platform="telegram", user=str(number), standing=Standing.GUEST)
            place = Conversation(platform="telegram", chat=str(number))
            await runtime.hermes.open_session(place, who, workspace=str(folder))

        for first in range(0, IDLE, AT_ONCE):
            await asyncio.gather(*(one(number) for number in range(first, first + AT_ONCE)))


async def at_rest(folder: Path) -> tuple[float, float]:
    """Megabytes and per cent of a core of a gateway to which nobody speaks, once its start has settled."""
    async with gateway(folder) as served:
        await asyncio.sleep(SETTLED_SECONDS + 1)
        used = cpu(served.pid)
        await asyncio.sleep(IDLE_SECONDS)
        return memory(served.pid), (cpu(served.pid) - used) / IDLE_SECONDS * 100


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used, more finely than its clock ticks."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def memory(pid: int) -> float:
    """Megabytes that a process holds."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


if __name__ == "__main__":
    run(serve_gateway(Path(sys.argv[1]), watched="watched" in sys.argv[2:]))
