"""A web application of a double on loopback, and the connection that it breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
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


def cut(request: web.Request) -> web.Response:
    """Break the connection instead of answering."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()
