"""Starting a command so that a stop in that very moment ends it too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import Running


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


async def _ended(starting: asyncio.Task[Running], end: Callable[[Running], Awaitable[object]]) -> None:
    await asyncio.wait([starting])
    if not starting.cancelled() and starting.exception() is None:
        await end(starting.result())
