"""Starting a command so that a stop in that very moment ends it too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from hermes_agent.core.tool import CallContext
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import Place, Running

PATIENCE = 2.0  # seconds in which a person is told nothing


async def started(
    start: Coroutine[Any, Any, Running], end: Callable[[Running], Awaitable[object]], *, name: str
) -> Running:
    """What `start` gives. Where the caller is cancelled meanwhile, the command is waited for and given to `end`."""
    starting = spawn(start, name=f"start {name}")
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.shield(spawn(_ended(starting, end), name=f"stop {name}"))
        raise


@contextmanager
def told_meanwhile(place: Place, context: CallContext, after: float = PATIENCE) -> Iterator[None]:
    """While the block lasts, a person is told every few seconds what the place is waiting for, where it is anything."""
    timers: list[asyncio.TimerHandle] = []

    def wait() -> None:
        timers[:] = [asyncio.get_running_loop().call_later(after, tell)]

    def tell() -> None:
        if words := place.waits_for(context.workspace):
            context.progress(words)
        wait()

    wait()
    try:
        yield
    finally:
        timers[0].cancel()


async def _ended(starting: asyncio.Task[Running], end: Callable[[Running], Awaitable[object]]) -> None:
    await asyncio.wait([starting])
    if not starting.cancelled() and starting.exception() is None:
        await end(starting.result())
