"""Server-sent events: how they are written, and how silence is bridged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress

import msgspec

from hermes_agent.host.inbound.message import Response
from hermes_agent.host.tasks import spawn

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


def streamed(
    events: AsyncGenerator[bytes, None],
    headers: Mapping[str, str] | None = None,
    *,
    ended: asyncio.Event | None = None,
) -> Response:
    """Events as an answer, silence between them bridged."""
    return Response(
        headers={"content-type": "text/event-stream", **(headers or {})}, body=with_pauses(events, ended=ended)
    )


async def with_pauses(
    items: AsyncGenerator[bytes, None],
    seconds: float = SILENCE,
    *,
    silence: bytes = ALIVE,
    ended: asyncio.Event | None = None,
) -> AsyncGenerator[bytes, None]:
    """The items as they come, and `silence`, a comment or an event, after each so many seconds without one; no more
    once `ended` is set."""
    waiting: asyncio.Queue[bytes] = asyncio.Queue(1)

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
                yield silence if item is None else item
        if ended is None or not ended.is_set():
            pumping.result()
    finally:
        pumping.cancel()
        if ending is not None:
            ending.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait((pumping,))


async def _next(waiting: asyncio.Queue[bytes], pumping: asyncio.Task[None], seconds: float) -> bytes | None:
    """The next item; None after so many seconds, or where there are no more."""
    if not waiting.empty():
        return waiting.get_nowait()
    getting = spawn(waiting.get(), name="event of a response")
    await asyncio.wait((getting, pumping), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if getting.done():
        return getting.result()
    getting.cancel()
    return None if waiting.empty() else waiting.get_nowait()
