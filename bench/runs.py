"""Runs as a person meets them: calls side by side, sessions that wait for another program, sessions at rest."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from bench.answering import answering
from bench.figures import Figure
from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Seen, ToolEnded, ToolStarted
from hermes_agent.core.messages import Text
from hermes_agent.core.tool import Tool
from hermes_agent.host.paths import Home
from hermes_agent.tools.schema import from_function
from tests.host.test_lock_file import other_holder

KEY = "a-key-of-the-bench"
PLACE = Conversation(platform="bench")
SESSIONS = 1000
IDLE_SECONDS = 10.0
WAITING, CHATS, CYCLES = 12, 12, 5
WAIT_SECONDS = 2.5
"""Until those who wait have said so."""


def measure() -> list[Figure]:
    """The figures of this module."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Figure]:
    sleeps = [("terminal", json.dumps({"command": "sleep 0.2", "read_only": True}))] * 8
    waits = [("wait", "{}")] * 8
    figures = [
        Figure(name="8 x `sleep 0.2`, read_only, in one turn", value=await _calls(folder, sleeps), unit="s", limit=0.3),
        Figure(name="8 reads of 100 ms in one turn", value=await _calls(folder, waits) * 1000, unit="ms", limit=150),
    ]
    return [*figures, await _beside_waiting(folder), *await _at_rest(folder)]


@asynccontextmanager
async def system(folder: Path, url: str, extra: tuple[Tool, ...] = ()) -> AsyncIterator[System]:
    """A whole system whose model is at this address."""
    home = Home(root=folder / "home", base=folder / "home").ensure()
    home.config_file.write_text(f"model:\n  default: custom/m\n  base_url: {url}\n")
    home.env_file.write_text(f"CUSTOM_API_KEY={KEY}\n")
    home.env_file.chmod(0o600)
    async with open_system(home, Options(attended=False, extra_tools=extra)) as runtime:
        yield runtime


async def ask(runtime: System, folder: Path, text: str = "Go.", session: str = "") -> list[Seen]:
    """Submit a message and collect the events of its run."""
    if not session:
        session = (await runtime.hermes.open_session(PLACE, runtime.owner, workspace=str(folder), new=True)).id
    after = await runtime.store.history.last_number(session)
    inbound = Inbound(
        source="bench",
        source_id=runtime.ids.short(),
        principal=runtime.owner,
        conversation=PLACE,
        parts=(Text(text=text),),
        received=0.0,
    )
    await runtime.hermes.submit(inbound, session)
    async with aclosing(runtime.hermes.follow(session, after)) as events:
        return [seen async for seen in events]


async def _calls(folder: Path, calls: list[tuple[str, str]]) -> float:
    """Seconds from the start of the first call to the end of the last one, the median of five runs."""

    async def wait() -> str:
        await asyncio.sleep(0.1)
        return "ok"

    tool = from_function("wait", wait, "Wait for a moment.", ("fs.read",), effect=Effect.READS)
    samples = []
    for _ in range(5):
        with answering([calls]) as server:
            async with system(folder, server.url, (tool,)) as runtime:
                events = await ask(runtime, folder)
        began = min(seen.at for seen in events if isinstance(seen.event, ToolStarted))
        samples.append(max(seen.at for seen in events if isinstance(seen.event, ToolEnded)) - began)
        assert not any(seen.event.is_error for seen in events if isinstance(seen.event, ToolEnded))
    return statistics.median(samples)


async def _beside_waiting(folder: Path) -> Figure:
    """Chats without tools, by turns alone and beside sessions that wait for a lock whose holder is stopped."""
    note = [("memory", json.dumps({"action": "add", "target": "memory", "content": "A note."}))]
    plain: list[list[tuple[str, str]]] = [[]] * CHATS
    with answering([*plain, *[note] * WAITING, *plain, *[[]] * WAITING] * CYCLES) as server:
        async with system(folder, server.url) as runtime:
            pairs = [await _by_turns(runtime, folder) for _ in range(CYCLES)]
    alone, beside = (statistics.median(taken for part in parts for taken in part) for parts in zip(*pairs, strict=True))
    name = f"a chat beside {WAITING} that wait for a stopped program's lock adds"
    return Figure(name=name, value=(beside - alone) * 1000, unit="ms", limit=10)


async def _by_turns(runtime: System, folder: Path) -> tuple[list[float], list[float]]:
    alone = [await _chat(runtime, folder) for _ in range(CHATS)]
    with other_holder(folder / "home" / "locks" / "memories.lock") as holder:
        os.killpg(holder.pid, signal.SIGSTOP)
        waiting = [asyncio.ensure_future(ask(runtime, folder)) for _ in range(WAITING)]
        await asyncio.sleep(WAIT_SECONDS)
        beside = [await _chat(runtime, folder) for _ in range(CHATS)]
        assert not any(each.done() for each in waiting)
    await asyncio.wait(waiting)
    return alone, beside


async def _chat(runtime: System, folder: Path) -> float:
    began = time.perf_counter()
    await ask(runtime, folder)
    return time.perf_counter() - began


async def _at_rest(folder: Path) -> list[Figure]:
    """What 1,000 sessions cost while nobody speaks."""
    with answering([]) as server:
        async with system(folder, server.url) as runtime:
            await ask(runtime, folder)
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(SESSIONS):
                await ask(runtime, folder)
            gc.collect()
            memory = (tracemalloc.get_traced_memory()[0] - before) / SESSIONS / 1000
            tracemalloc.stop()
            used = time.process_time()
            await asyncio.sleep(IDLE_SECONDS)
            busy = (time.process_time() - used) / IDLE_SECONDS * 100
    return [
        Figure(name="memory of a session at rest", value=memory, unit="kB", limit=20),
        Figure(name="CPU of 1,000 sessions at rest", value=busy, unit="% of a core", limit=0.2),
    ]
