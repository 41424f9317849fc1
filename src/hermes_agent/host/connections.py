"""Outgoing HTTP/1.1 connections, kept and used again: a C parser on asyncio's own transports, since the library's pools
take most of the time of a short request. What is to become a WebSocket goes the library's way."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from typing import Any, cast

import httptools
import httpx2

HELD = 262_144
"""Bytes of an answer that wait to be read before its sender has to wait."""
NO_BODY = frozenset({204, 304})
WITH_END = frozenset({b"content-length", b"transfer-encoding"})
Place = tuple[bool, str, int, str]
"""Where a connection leads: whether by TLS, host, port, and the name that its certificate has to have."""


class Connection(asyncio.Protocol):
    """One connection: a request, then its answer, then the next."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.since = 0.0
        self.is_lost = self.is_idle = False
        self._parser = httptools.HttpResponseParser(self)
        self._came, self._writable = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self.pieces, self._size = deque[bytes](), 0
        self._reset()

    def _reset(self) -> None:
        self.status, self.headers, self.reason = 0, list[tuple[bytes, bytes]](), b""
        self.has_head = self.is_whole = self._has_end = self._keeps = self._is_sent = False
        self._error: Exception | None = None

    @property
    def is_free(self) -> bool:
        """Whether another request may go over it."""
        return self.is_whole and self._keeps and self._is_sent and not (self.is_lost or self.transport.is_closing())

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass.

    def data_received(self, data: bytes) -> None:
        """Read a part of an answer; what comes unasked ends the connection."""
        if self.is_idle:
            self.transport.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._error = httpx2.RemoteProtocolError(f"The server does not speak HTTP/1.1: {error}")
            self.transport.abort()
        if self._size > HELD and not self.transport.is_closing():
            self.transport.pause_reading()
        self._came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits; an answer without a length ends so."""
        self.is_lost = True
        if self.has_head and not self._has_end and exc is None:
            self.is_whole = True
        elif exc is not None and self._error is None:
            self._error = httpx2.ReadError(str(exc))
        self._came.set()
        self._writable.set()

    def pause_writing(self) -> None:
        """The server reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has read."""
        self._writable.set()

    # What the parser calls

    def on_status(self, reason: bytes) -> None:
        """The words of the first line."""
        self.reason = reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        if not self.has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self.status = self._parser.get_status_code()
        if self.status < 200:  # The answer itself is still to come.
            self.headers = []
            return
        self.has_head, self._keeps = True, self._parser.should_keep_alive()
        names = {name.lower() for name, _ in self.headers}
        self._has_end = self.status in NO_BODY or bool(names & {b"content-length", b"transfer-encoding"})

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        self.pieces.append(piece)
        self._size += len(piece)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        self.is_whole = self.is_whole or self.has_head

    # What the pool calls

    async def send(self, request: httpx2.Request, patience: float | None) -> None:
        """Send a request, and return when the head of its answer is there. Raises `httpx2.TransportError`."""
        self._reset()
        self.is_idle = False
        target, lines = request.url.raw_path, b"".join(b"%b: %b\r\n" % each for each in request.headers.raw)
        head = b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method.encode(), target, lines)
        chunked = request.headers.get("transfer-encoding") == "chunked"
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        async for piece in request.stream:
            framed = b"%x\r\n%b\r\n" % (len(piece), piece) if chunked and piece else piece
            self.transport.write(head + framed)  # Head and body in one piece: one call of the kernel.
            head = b""
            if not self._writable.is_set():
                await self._writable.wait()
            if self.is_lost or self.has_head:  # It has its answer already.
                break
        else:
            self._is_sent = True
            if head or chunked:
                self.transport.write(head + (b"0\r\n\r\n" if chunked else b""))
        while not self.has_head:
            await self.more("Server disconnected without sending a response.", patience)

    def taken(self) -> bytes:
        """The next piece of the body."""
        piece = self.pieces.popleft()
        self._size -= len(piece)
        if not self.pieces and not self.transport.is_closing():
            self.transport.resume_reading()
        return piece

    async def more(self, ended: str, patience: float | None) -> None:
        """Return when something came. Raises `httpx2.TransportError`."""
        if self._error is not None:
            raise self._error
        if self.is_lost:
            raise httpx2.RemoteProtocolError(ended)
        self._came.clear()
        try:
            async with asyncio.timeout(patience):
                await self._came.wait()
        except TimeoutError as error:
            raise httpx2.ReadTimeout("The server sends nothing.") from error


class Body(httpx2.AsyncByteStream):
    """An answer's body; once it is closed, its connection is free for another, or closed where some of it is left."""

    def __init__(self, pool: Transport, place: Place, connection: Connection, patience: float | None) -> None:
        self._pool, self._place, self._connection, self._patience = pool, place, connection, patience
        self._is_open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        connection = self._connection
        while True:
            while connection.pieces:
                yield connection.taken()
            if connection.is_whole:
                return
            await connection.more("peer closed connection without sending complete message body", self._patience)

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            self._pool.release(self._place, self._connection)


class Transport(httpx2.AsyncBaseTransport):
    """The connections of one client: the one used last is taken first; over the limit a request waits."""

    def __init__(self, verify: ssl.SSLContext, most: int, expiry: float) -> None:
        self._verify, self._expiry = verify, expiry
        self._idle: defaultdict[Place, list[Connection]] = defaultdict(list)
        self._all: set[Connection] = set()
        self._room = asyncio.Semaphore(most)
        self._upgrading: httpx2.AsyncHTTPTransport | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request on a kept connection, or on a new one."""
        if "upgrade" in request.headers or request.method == "HEAD":  # The parser waits for a body then.
            self._upgrading = self._upgrading or httpx2.AsyncHTTPTransport(verify=self._verify)
            return await self._upgrading.handle_async_request(request)
        url, patience = request.url, request.extensions.get("timeout", {})
        secure = url.scheme == "https"
        name = request.extensions.get("sni_hostname", url.host)
        place = (secure, url.host, url.port or (443 if secure else 80), name)
        await self._room.acquire()
        connection: Connection | None = None
        try:
            connection = self._kept(place) or await self._opened(place, patience.get("connect"))
            await connection.send(request, patience.get("read"))
        except BaseException:
            self.release(place, connection)
            raise
        return httpx2.Response(
            status_code=connection.status,
            headers=connection.headers,
            stream=Body(self, place, connection, patience.get("read")),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": connection.reason},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in tuple(self._all):
            connection.transport.abort()
        self._all.clear()
        self._idle.clear()
        if self._upgrading is not None:
            await self._upgrading.aclose()
        await asyncio.sleep(0)  # The sockets are closed in the next round.

    def release(self, place: Place, connection: Connection | None) -> None:
        """A request is over: keep its connection for the next where its answer was read whole."""
        self._room.release()
        if connection is None:
            return
        kept = self._idle[place]
        if connection in self._all and connection.is_free:
            connection.is_idle, connection.since = True, asyncio.get_running_loop().time()
            kept.append(connection)
        else:
            self._all.discard(connection)
            connection.transport.abort()

    def _kept(self, place: Place) -> Connection | None:
        now, kept = asyncio.get_running_loop().time(), self._idle[place]
        while kept:
            connection = kept.pop()
            if connection.is_free and now - connection.since < self._expiry:
                return connection
            self._all.discard(connection)
            connection.transport.abort()
        return None

    async def _opened(self, place: Place, patience: float | None) -> Connection:
        secure, host, port, name = place
        more: dict[str, Any] = {"ssl": self._verify, "server_hostname": name} if secure else {}
        loop = asyncio.get_running_loop()
        # uvloop tries one address after the other. A race loses the socket of a request that is given up, so that an
        # address without a name has none.
        if isinstance(loop, asyncio.BaseEventLoop) and not (host[-1].isdigit() or ":" in host):
            more["happy_eyeballs_delay"] = 0.25
        try:
            async with asyncio.timeout(patience):
                _, connection = await loop.create_connection(Connection, host, port, **more)
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(f"{host} does not answer.") from error
        except OSError as error:
            says = isinstance(error, socket.gaierror | ssl.SSLError)
            raise httpx2.ConnectError(str(error) if says else "All connection attempts failed") from error
        self._all.add(connection)
        return connection
