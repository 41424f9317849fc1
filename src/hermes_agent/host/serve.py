"""A small HTTP/1.1 server on the loopback interface: one async handler, keep-alive, streamed replies, faults on demand.

For the demo's model, for test doubles, and for what a platform sends through a proxy of this machine. What strangers
may reach is served by a web framework in its own package.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import field

import h11

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.tasks import spawn

LOOPBACK = "127.0.0.1"
LARGEST_BODY = 64 * 1024 * 1024
READ_SIZE = 64 * 1024
ACCEPTING = 5
"""Rounds of the event loop until somebody deals with a connection that was accepted."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # struct linger: on, zero seconds; close() then sends RST instead of FIN

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, read to its end. Header names are in lower case; `arrived` is of `time.monotonic`."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    arrived: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What goes back: a whole body, or a generator whose every item is flushed as one chunk.

    The generator is closed when the client goes away, and may raise `Cut` to end the connection itself.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncGenerator[bytes, None] = b""


class Cut(Exception):
    """Ends the connection in the middle of a reply: with RST where `reset`, otherwise with a plain close."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__("the connection was cut on purpose")
        self.reset = reset


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server: its port on 127.0.0.1."""

    port: int

    @property
    def url(self) -> str:
        """The address without a trailing slash."""
        return f"http://{LOOPBACK}:{self.port}"


@contextlib.asynccontextmanager
async def serve(handler: Handler, port: int = 0, *, largest: int = LARGEST_BODY) -> AsyncIterator[Server]:
    """Serve until the block ends; port 0 takes a free one, `largest` is the bytes of a body. Open connections are cut
    then, their handlers cancelled. Raises `OSError` where the port is taken."""
    tasks: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await _Connection(handler, reader, writer, largest).converse()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = spawn(converse(reader, writer), name="loopback connection")
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())  # Also of one that never began.

    listener = await asyncio.start_server(connected, LOOPBACK, port)
    try:
        yield Server(port=listener.sockets[0].getsockname()[1])
    finally:
        await accept_no_more(listener)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(set(tasks))
        await listener.wait_closed()
        await asyncio.sleep(0)  # The sockets of aborted connections are closed in the next round.


async def accept_no_more(listener: asyncio.Server) -> None:
    """Close a listener when whoever deals with what it has accepted has begun: one that is closed before loses the
    connection (Python 3.11)."""
    for accepting in listener.sockets:
        asyncio.get_running_loop().remove_reader(accepting)
    for _ in range(ACCEPTING):
        await asyncio.sleep(0)
    listener.close()


@contextlib.contextmanager
def serve_in_thread(handler: Handler, port: int = 0) -> Iterator[Server]:
    """The same server on a loop and thread of its own, for callers that are not async."""
    ready: Future[tuple[Server, Callable[[], object]]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        try:
            async with serve(handler, port) as server:
                ready.set_result((server, lambda: loop.call_soon_threadsafe(stop.set)))
                await stop.wait()
        except OSError as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="loopback-server", daemon=True)
    thread.start()
    try:
        server, stop = ready.result()
        try:
            yield server
        finally:
            stop()
    finally:
        thread.join()


class _Connection:
    """One client: requests one after another until either side has enough."""

    def __init__(
        self, handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, largest: int
    ) -> None:
        self._handler = handler
        self._largest = largest
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def converse(self) -> None:
        while (request := await self._next_request()) is not None:
            await self._while_connected(self._reply(request))
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                break
            self._http.start_next_cycle()
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _next_request(self) -> Request | None:
        """The next whole request; None where the client closed or did not speak HTTP (it was told so)."""
        head: h11.Request | None = None
        body = bytearray()
        try:
            while True:
                match await self._next_event():
                    case h11.Request() as begun:
                        head = begun
                    case h11.Data(data=data):
                        body += data
                        if len(body) > self._largest:
                            await self._send_whole(Response(status=413))
                            return None
                    case h11.EndOfMessage() if head is not None:
                        return _request(head, bytes(body))
                    case _:
                        return None
        except h11.RemoteProtocolError as error:
            await self._send_whole(Response(status=error.error_status_hint, body=str(error).encode()))
            return None

    async def _next_event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if not isinstance(event, type) or event is h11.PAUSED:
                return event
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._reader.read(READ_SIZE))

    async def _while_connected(self, replying: Awaitable[None]) -> None:
        """Run `replying`, and cancel it when the client goes away meanwhile."""
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_finish(replying))
            watching = group.create_task(self._watch(sending))
            sending.add_done_callback(lambda _: watching.cancel())

    async def _watch(self, sending: asyncio.Task[None]) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await self._reader.read(READ_SIZE):
                self._http.receive_data(data)
        sending.cancel()

    async def _reply(self, request: Request) -> None:
        with contextlib.suppress(ConnectionError):
            try:
                response = await self._handler(request)
                if isinstance(response.body, bytes):
                    await self._send_whole(response)
                else:
                    await self._send_stream(response, response.body)
            except Cut as cut:
                self._cut(cut)
            except ConnectionError:  # The client left: nobody is there to be told.
                raise
            except Exception:  # Boundary: one HTTP request
                log.exception("the handler of %s %s failed", request.method, request.path)
                if self._http.our_state is h11.SEND_RESPONSE:
                    await self._send_whole(Response(status=500, body=b"the handler failed; its log says why"))

    async def _send_whole(self, response: Response) -> None:
        assert isinstance(response.body, bytes)
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        length = str(len(response.body))
        headers = [*response.headers.items(), ("content-length", length)]
        await self._send(
            h11.Response(status_code=response.status, headers=headers),
            h11.Data(data=response.body),
            h11.EndOfMessage(),
        )

    async def _send_stream(self, response: Response, body: AsyncGenerator[bytes, None]) -> None:
        async with contextlib.aclosing(body):
            await self._send(h11.Response(status_code=response.status, headers=list(response.headers.items())))
            async for piece in body:
                await self._send(h11.Data(data=piece))
        await self._send(h11.EndOfMessage())

    async def _send(self, *events: h11.Event) -> None:
        pieces = [self._http.send(event) for event in events]
        self._writer.write(b"".join(piece for piece in pieces if piece))
        await self._writer.drain()

    def _cut(self, cut: Cut) -> None:
        self._http.send_failed()
        if cut.reset:
            connection = self._writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self._writer.transport.abort()


async def _finish(replying: Awaitable[None]) -> None:
    await replying


def _request(head: h11.Request, body: bytes) -> Request:
    path, _, query = head.target.decode("latin-1").partition("?")
    headers: dict[str, str] = {}
    for raw_name, raw_value in head.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    method = head.method.decode("latin-1")
    return Request(method=method, path=path, query=query, headers=headers, body=body, arrived=time.monotonic())
