"""Connections of one HTTP client, spread over small pools: each request makes its pool look at all that are in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx2

WIDTH = 16
"""Connections of one pool: few, since what a request costs in its pool grows with them."""


class Pool:
    """One pool, and how many requests it has under way."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self.transport = transport
        self.busy = 0


class Spread(httpx2.AsyncBaseTransport):
    """A transport over at most `most` pools of `WIDTH` connections. A pool is made when those before it are full, so
    that a quiet program keeps to the connections of the first."""

    def __init__(self, make: Callable[[], httpx2.AsyncBaseTransport], most: int) -> None:
        self._make = make
        self._most = most
        self.pools: list[Pool] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request on a connection of the first pool that has room; where none has, it waits in the least
        busy one."""
        pool = self._pool()
        pool.busy += 1
        try:
            response = await pool.transport.handle_async_request(request)
        except BaseException:
            pool.busy -= 1
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Counted(response.stream, pool)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self.pools:
            await pool.transport.aclose()

    def _pool(self) -> Pool:
        for pool in self.pools:
            if pool.busy < WIDTH:
                return pool
        if len(self.pools) < self._most:
            self.pools.append(Pool(self._make()))
            return self.pools[-1]
        return min(self.pools, key=lambda pool: pool.busy)


class _Counted(httpx2.AsyncByteStream):
    """An answer's body; once it is closed, its pool has room for another."""

    def __init__(self, stream: httpx2.AsyncByteStream, pool: Pool) -> None:
        self._stream = stream
        self._pool: Pool | None = pool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.busy -= 1
        await self._stream.aclose()
