"""HTTP transport with many small connection pools, because a request scans its whole pool; sends a request's head
and body in one write."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any

import httpcore2
import httpx2

WIDTH = 16
"""Connections of one pool: few, since what a request costs in its pool grows with them."""
HEAD = re.compile(rb"[A-Z]+ [^ ]+ HTTP/1\.1\r\n")
"""How a request begins. Of what else is written, as the frames of a WebSocket are, nothing is held."""


class Pool:
    """A connection pool with its number of requests in progress."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self.transport = transport
        self.busy = 0


class Spread(httpx2.AsyncBaseTransport):
    """Transport over several pools of `WIDTH` connections, at most `most` in all. A further pool is made only when
    all are full."""

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
    """A response body; closing it frees a place in its pool."""

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


class Gathering(httpcore2.AsyncNetworkStream):
    """Network stream that buffers the head of a request until the next write or read."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._head = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  the library's shape
        """The next bytes, after everything buffered was sent."""
        if self._head:
            with suppress(httpcore2.WriteError):  # What the server had to say before it closed is still to be read.
                await self._send(b"", timeout)
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  the library's shape
        """Send the bytes, or buffer them if they are a request's head."""
        if not self._head and HEAD.match(buffer) and buffer.endswith(b"\r\n\r\n"):
            self._head = buffer
        elif buffer:
            await self._send(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection; buffered bytes are dropped."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  the library's shape
    ) -> httpcore2.AsyncNetworkStream:
        """The same within TLS."""
        return Gathering(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  the library's shape
        """What the connection says of itself."""
        return self._stream.get_extra_info(info)

    async def _send(self, buffer: bytes, timeout: float | None) -> None:  # noqa: ASYNC109  the library's shape
        head, self._head = self._head, b""
        await self._stream.write(head + buffer, timeout)


class Network(httpcore2.AnyIOBackend):
    """Network backend of httpcore whose streams are `Gathering`."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's shape
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A new connection."""
        return Gathering(await super().connect_tcp(host, port, timeout, local_address, socket_options))


class Transport(httpx2.AsyncHTTPTransport):
    """HTTP transport that uses `Network`."""

    def __init__(self, verify: ssl.SSLContext, limits: httpx2.Limits) -> None:
        super().__init__(verify=verify, limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Network(),
        )
