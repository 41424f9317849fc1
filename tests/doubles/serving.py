"""A web application of a double on loopback, and the connection that it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def served(application: web.Application) -> AsyncIterator[str]:
    """An application on a free port; gives its address."""
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0)
    await site.start()
    assert runner.addresses
    try:
        yield f"http://{LOOPBACK}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def dripping(content: bytes, seconds: float) -> AsyncGenerator[bytes, None]:
    """A file that takes so long to come."""
    pieces = 100 if seconds else 1
    for number in range(pieces):
        await asyncio.sleep(seconds / pieces)
        yield content[number * len(content) // pieces : (number + 1) * len(content) // pieces]


async def given_out(request: web.Request, content: bytes, seconds: float) -> web.StreamResponse:
    """A file as an answer."""
    response = web.StreamResponse(headers={"Content-Length": str(len(content))})
    await response.prepare(request)
    async for piece in dripping(content, seconds):
        await response.write(piece)
    return response


def cut(request: web.Request) -> web.Response:
    """Break the connection instead of answering."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
