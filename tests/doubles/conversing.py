"""A loopback server of a protocol that is spoken in lines, one conversation for each client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from hermes_agent.host.inbound.listener import accept_no_more

LOOPBACK = "127.0.0.1"
LARGEST = 50_000_000
"""Bytes of one mail, with its files as text."""
Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def conversing(converse: Converse) -> AsyncIterator[int]:
    """Serve until the block ends, which cuts every client off; gives the port."""
    writers: set[asyncio.StreamWriter] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await converse(reader, writer)
        writers.discard(writer)
        writer.close()

    server = await asyncio.start_server(connected, LOOPBACK, 0, limit=LARGEST)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await accept_no_more(server)
        for writer in list(writers):
            writer.transport.abort()
        await server.wait_closed()
