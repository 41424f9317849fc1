"""Answers as server-sent events: how they are written, and how silence is bridged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TypeVar

import msgspec

from hermes_agent.host.tasks import spawn

T = TypeVar("T")
ALIVE = b": still here\n\n"
DONE = b"data: [DONE]\n\n"
SILENCE = 15.0
"""Seconds without an event after which a comment is sent, so that nobody on the way takes the connection for dead."""

_encoder = msgspec.json.Encoder()


def written(value: object) -> bytes:
    """A value as JSON; any text survives, also a lone surrogate."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()


def event(value: object, *, name: str = "", number: int | None = None) -> bytes:
    """One event."""
    head = f"event: {name}\n" if name else ""
    place = "" if number is None else f"id: {number}\n"
    return b"%b%bdata: %b\n\n" % (place.encode(), head.encode(), written(value))


async def with_pauses(
    items: AsyncGenerator[T, None], seconds: float = SILENCE, *, ended: asyncio.Event | None = None
) -> AsyncGenerator[T | None, None]:
    """The items as they come, and None after each so many seconds without one; no more once `ended` is set."""
    waiting: asyncio.Queue[T] = asyncio.Queue(1)

    async def pump() -> None:
        async with aclosing(items) as source:
            async for item in source:
                await waiting.put(item)

    pumping = spawn(pump(), name="events of a response")
    ending = None if ended is None else spawn(ended.wait(), name="end of a response's events")
    if ending is not None:
        ending.add_done_callback(lambda _: pumping.cancel())
    try:
        while not (pumping.done() and waiting.empty()):
            item = await _next(waiting, pumping, seconds)
            if item is not None or not pumping.done():
                yield item
        if ended is None or not ended.is_set():
            pumping.result()
    finally:
        pumping.cancel()
        if ending is not None:
            ending.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait((pumping,))


async def _next(waiting: asyncio.Queue[T], pumping: asyncio.Task[None], seconds: float) -> T | None:
    """The next item; None after so many seconds, or where there are no more."""
    if not waiting.empty():
        return waiting.get_nowait()
    getting = spawn(waiting.get(), name="event of a response")
    await asyncio.wait((getting, pumping), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if getting.done():
        return getting.result()
    getting.cancel()
    return None if waiting.empty() else waiting.get_nowait()
