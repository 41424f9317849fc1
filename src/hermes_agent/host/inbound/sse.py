"""Server-sent events: encoding, and keep-alive comments during silence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping

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
    """One encoded event."""
    head = f"event: {name}\n" if name else ""
    place = "" if number is None else f"id: {number}\n"
    return b"%b%bdata: %b\n\n" % (place.encode(), head.encode(), written(value))


def streamed(
    events: AsyncGenerator[bytes, None],
    headers: Mapping[str, str] | None = None,
    *,
    ended: asyncio.Event | None = None,
) -> Response:
    """Events as a response, with keep-alives."""
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
    """The items as they come, and `silence` (a comment or an event) after each `seconds` without one; none once
    `ended` is set."""
    over = None if ended is None else spawn(ended.wait(), name="end of a response's events")
    coming: asyncio.Task[bytes | None] | None = None
    try:
        while True:
            coming = coming or spawn(_next(items), name="event of a response")
            waited_for = {coming} if over is None else {coming, over}
            await asyncio.wait(waited_for, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if over is not None and over.done():
                return
            item = coming.result() if coming.done() else silence
            if item is None:
                return
            coming = None if coming.done() else coming
            yield item
    finally:
        tasks = {task for task in (coming, over) if task is not None and not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await items.aclose()


async def _next(items: AsyncGenerator[bytes, None]) -> bytes | None:
    return await anext(items, None)
