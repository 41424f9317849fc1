"""Connections of an HTTP client: a pool that does not search all connections for each request, and a network
backend that sends the head and body of a request in one write."""

from __future__ import annotations

import asyncio
import re
import select
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any

import httpcore2
import httpx2

HEAD = re.compile(rb"[A-Z]+ [^ ]+ HTTP/1\.1\r\n")
"""How a request begins. Of what else is written, as the frames of a WebSocket are, nothing is held."""
SCHEMES = (b"http", b"https", b"ws", b"wss")


class Connections(httpcore2.AsyncConnectionPool):
    """Connection pool of an HTTP client: at most `most` connections in use and as many idle ones; further requests
    wait. It replaces the library's own pool, which searches all connections twice for each request."""

    def __init__(self, tls: ssl.SSLContext, most: int, kept_seconds: float) -> None:
        super().__init__(ssl_context=tls, keepalive_expiry=kept_seconds, network_backend=Network())
        self._most = most
        self._room = asyncio.Semaphore(most)
        self.free: list[httpcore2.AsyncConnectionInterface] = []
        self.busy: set[httpcore2.AsyncConnectionInterface] = set()

    async def handle_async_request(self, request: httpcore2.Request) -> httpcore2.Response:
        """Send a request on a connection that is free, or a new one; where there is no room for it, it waits."""
        if request.url.scheme not in SCHEMES:
            raise httpcore2.UnsupportedProtocol(f"This is no address of a web server: {request.url.scheme!r}")
        try:
            async with asyncio.timeout(request.extensions.get("timeout", {}).get("pool")):
                await self._room.acquire()
        except TimeoutError as error:
            raise httpcore2.PoolTimeout from error
        connection: httpcore2.AsyncConnectionInterface | None = None
        try:
            connection = await self._taken(request.url.origin) or self.create_connection(request.url.origin)
            self.busy.add(connection)
            response = await connection.handle_async_request(request)
        except BaseException:
            self._give_back(connection)
            raise
        response.stream = _Lent(response.stream, lambda: self._give_back(connection))
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in (*self.free, *self.busy):
            await connection.aclose()
        self.free.clear()

    async def _taken(self, origin: httpcore2.Origin) -> httpcore2.AsyncConnectionInterface | None:
        """The connection to that address which was used last: the others grow old, and the oldest are closed."""
        while self.free and (len(self.free) > self._most or self.free[0].has_expired()):
            await self.free.pop(0).aclose()
        for connection in self.free[::-1]:  # While an old one is closed, another request may take what is left.
            if connection.can_handle_request(origin) and connection in self.free:
                self.free.remove(connection)
                if not connection.has_expired():
                    return connection
                await connection.aclose()
        return None

    def _give_back(self, connection: httpcore2.AsyncConnectionInterface | None) -> None:
        self._room.release()
        if connection is not None:
            self.busy.discard(connection)
            if connection.is_idle() and not connection.is_closed():
                self.free.append(connection)


class _Lent:
    """An answer's body; once it is closed, its connection is free for another."""

    def __init__(self, stream: Any, back: Callable[[], None]) -> None:  # noqa: ANN401  the library says only half of it
        self._stream = stream
        self._back: Callable[[], None] | None = back

    def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: AsyncIterator[bytes] = aiter(self._stream)
        return pieces

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            back, self._back = self._back, None
            if back is not None:
                back()


class Gathering(httpcore2.AsyncNetworkStream):
    """Network stream that buffers the head of a request until the next write or read."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._head = b""
        self._said = select.poll()
        self._said.register(stream.get_extra_info("socket"), select.POLLIN)

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
        """What the connection says of itself; whether it has something to be read is asked for each request."""
        return bool(self._said.poll(0)) if info == "is_readable" else self._stream.get_extra_info(info)

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
    """HTTP transport of a client that uses the connection pool `Connections`."""

    def __init__(self, tls: ssl.SSLContext, most: int, kept_seconds: float) -> None:
        super().__init__(verify=tls)
        self.connections = self._pool = Connections(tls, most, kept_seconds)
