"""One client connection of the HTTP server: parses requests, writes responses, and limits slow, large and numerous
ones."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import struct
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import cast

import httptools

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.inbound.message import Body, Cut, Handler, Policy, Refused, Request, Response
from hermes_agent.host.tasks import spawn

LARGEST_HEAD = 65_536
"""Bytes of a request's first line and headers."""
HELD_BODY = 65_536
"""Bytes of a body that wait to be read before its sender has to wait."""
PIPELINED = 32
"""Requests of one connection that wait for the answers before them, before its sender has to wait."""
KEPT_SECONDS = 75.0
"""Seconds that a connection without a request stays open."""
SHARE = 0.4
"""Of the files that the process may have open: how many may be connections of one listener."""
MOST = 4096
"""Connections of one listener, however many files may be open: each may hold a head that is not whole."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # struct linger: on, zero seconds; close() then sends RST instead of FIN
NO_BODY = frozenset({204, 304})
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
KNOWN = frozenset(HTTPStatus)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Incoming:
    """A request whose head is complete, and properties of its response."""

    request: Request
    body: Body
    keeps: bool
    chunks: bool


def most_connections() -> int:
    """The maximum number of connections of one listener."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else min(MOST, int(files * SHARE))


@lru_cache(maxsize=1)
def _date(_second: int) -> str:
    return formatdate(usegmt=True)


class Connection(asyncio.Protocol):
    """One client connection of the HTTP server: answers its requests in turn. Invalid or missing requests get an
    error or are dropped without a log line, so that strangers cannot fill the log."""

    def __init__(self, handler: Handler, policy: Policy, connections: set[Connection]) -> None:
        self._handler, self._policy, self._connections = handler, policy, connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self.task: asyncio.Task[None] | None = None
        self.answering: _Incoming | None = None
        self._waiting: deque[_Incoming] = deque()
        self._arriving: Body | None = None
        self._wrong: Refused | None = None
        self._in_head, self._size = True, 0
        self._url, self._headers = b"", list[tuple[bytes, bytes]]()
        self._timer: asyncio.TimerHandle | None = None
        self._is_kept = self._is_ending = self._is_lost = self._has_begun = self._is_stream = False
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, unless there are too many."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass.
        self._connections.add(self)
        if len(self._connections) > (self._policy.most or most_connections()):
            self._transport.abort()
        else:
            self._wait(self._policy.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's shape
        """Notify the reader of the request and the writer of the response."""
        self._is_lost = True
        self._connections.discard(self)
        self._wait_no_more()
        self._writable.set()
        self._waiting.clear()
        if self._arriving is not None and not self._arriving.is_whole:
            self._arriving.end(whole=False)
        if self.answering is not None:
            self.answering.request.left.set()
            if self._is_stream and self.task is not None:
                self.task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self._wrong is not None:
            return
        if self._is_kept:
            self._is_kept = False
            self._wait_no_more()
        self._size += len(data) if self._in_head else 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # It is answered like any other request: there is nothing else to speak here.
        except httptools.HttpParserError:
            self._refuse(
                _too_large(self._size) or Refused(400, "That is not a request of HTTP/1.1.", code="invalid_http")
            )
            return
        if self._in_head and (error := _too_large(self._size)) is not None:
            self._refuse(error)
        elif self._in_head and self._size and self._timer is None:
            self._wait(self._policy.head_seconds)

    def on_message_begin(self) -> None:
        self._in_head, self._size = True, self._size or 1
        self._url, self._headers = b"", []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Handle a complete head. Raises `ValueError`, which ends parsing, where it is too large."""
        self._size = len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers)
        if _too_large(self._size) is not None:
            raise ValueError
        self._in_head, self._size = False, 0
        self._wait_no_more()
        (path, _, query), headers = self._url.decode("latin-1").partition("?"), dict[str, str]()
        for raw, value in self._headers:
            name, text = raw.decode("latin-1"), value.decode("latin-1").strip(" \t")
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        is_new = self._parser.get_http_version() == "1.1"
        expects = is_new and headers.get("expect", "").lower() == "100-continue"
        body = self._arriving = Body((lambda: self._write(CONTINUE)) if expects else None, self._flow)
        request = Request(
            method=self._parser.get_method().decode("latin-1"),
            path=path,
            query=query,
            headers=headers,
            arrived=time.monotonic(),
            pieces=body,
        )
        keeps = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        self._waiting.append(_Incoming(request=request, body=body, keeps=keeps, chunks=is_new))
        if self.task is None:
            self._begin()
        self._flow()

    def on_body(self, piece: bytes) -> None:
        assert self._arriving is not None
        self._arriving.put(piece)
        self._flow()

    def on_message_complete(self) -> None:
        assert self._arriving is not None
        self._arriving.end(whole=True)
        self._in_head = True

    def finish(self) -> None:
        """Close after the requests in progress were answered."""
        self._is_ending = True
        if self.task is None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()
        if self.task is not None:
            self.task.cancel()

    def _begin(self) -> None:
        self.answering, self._has_begun = self._waiting.popleft(), False
        self.task = spawn(self._answer(self.answering), name=f"request {self.answering.request.path[:80]}")

    async def _answer(self, incoming: _Incoming) -> None:
        goes_on = False
        try:
            goes_on = await self._send(incoming, await _response(self._handler, self._policy, incoming.request))
        except Cut as cut:
            if cut.reset:
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                self._transport.abort()
        except ConnectionError:
            pass  # The client left: nobody is there to be told.
        except Exception:  # Boundary: one HTTP request
            log.exception("the answer to %s %s broke off", incoming.request.method, incoming.request.route)
        finally:
            self.task = self.answering = None
            incoming.body.drop()
            self._next(goes_on=goes_on)

    async def _send(self, incoming: _Incoming, response: Response) -> bool:
        """Send an answer; whether another may follow."""
        own = {"date": _date(int(self._loop.time())), **response.headers, **self._policy.headers}
        is_whole = isinstance(response.body, bytes)
        in_chunks = not is_whole and "content-length" not in own and incoming.chunks
        keeps = incoming.keeps and not self._is_ending and (is_whole or in_chunks or "content-length" in own)
        if in_chunks:
            own["transfer-encoding"] = "chunked"
        is_bare = incoming.request.method == "HEAD" or response.status in NO_BODY
        self._has_begun = True
        if isinstance(response.body, bytes):
            self._write(_head(response, own, keeps=keeps) + (b"" if is_bare else response.body))
            await self._writable.wait()
            return keeps
        async with aclosing(response.body) as body:
            self._write(_head(response, own, keeps=keeps))
            if not is_bare:
                await self._stream(body, in_chunks=in_chunks)
        return keeps

    async def _stream(self, body: AsyncGenerator[bytes, None], *, in_chunks: bool) -> None:
        self._is_stream = True
        try:
            async for piece in body:
                self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if in_chunks and piece else piece)
                await self._writable.wait()
        finally:
            self._is_stream = False
        if in_chunks:
            self._write(b"0\r\n\r\n")

    def _write(self, data: bytes) -> None:
        if self._is_lost:
            raise ConnectionResetError
        self._transport.write(data)

    def _next(self, *, goes_on: bool) -> None:
        """What comes after an answer."""
        if self._is_lost:
            return
        if not goes_on or self._is_ending:
            self._transport.close()
        elif self._waiting:
            self._begin()
        elif self._wrong is not None:
            self._refuse(self._wrong)
        elif not self._in_head:
            self._wait(self._policy.head_seconds)  # The rest of a body that nobody reads does not come for ever.
        elif not self._size:
            self._is_kept = True
            self._wait(KEPT_SECONDS)
        self._flow()

    def _flow(self) -> None:
        """Let the client wait where what it sent is not read, or not answered yet."""
        if self._transport.is_closing():
            return
        held = self._arriving.size if self._arriving is not None else 0
        if held > HELD_BODY or len(self._waiting) > PIPELINED:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _wait(self, seconds: float) -> None:
        self._wait_no_more()
        self._timer = self._loop.call_later(seconds, self._late)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self.task is not None:  # The request before it is still being answered.
            self._wait(self._policy.head_seconds)
        elif self._size and self._in_head:
            self._refuse(Refused(408, "The request did not arrive in time.", code="request_timeout"))
        else:
            self._transport.close()

    def _refuse(self, error: Refused) -> None:
        """Answer what never became a request, and close: behind the answers to whole requests before it, and instead of
        that to one whose body is broken."""
        self._wrong = error
        self._wait_no_more()
        is_broken = self.answering is not None and not self.answering.body.is_whole
        if self.task is not None and not is_broken:
            return
        if not self._has_begun or self.task is None:
            response = self._policy.refuse(error)
            assert isinstance(response.body, bytes)
            self._write(_head(response, response.headers, keeps=False) + response.body)
        self._transport.close()


async def _response(handler: Handler, policy: Policy, request: Request) -> Response:
    try:
        response = await handler(request)
    except (Cut, ConnectionError):
        raise
    except Exception as error:  # Boundary: one HTTP request
        response = policy.refuse(error)
        if response.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log.exception("%s %s failed", request.method, request.route)
    policy.answered(request, response.status)
    return response


def _too_large(size: int) -> Refused | None:
    words = f"The headers are larger than {LARGEST_HEAD:,} bytes."
    return Refused(431, words, code="headers_too_large") if size > LARGEST_HEAD else None


def _head(response: Response, headers: Mapping[str, str], *, keeps: bool) -> bytes:
    status = response.status
    phrase = HTTPStatus(status).phrase if status in KNOWN else ""
    own = {} if keeps else {"connection": "close"}
    if isinstance(response.body, bytes) and status not in NO_BODY:
        own["content-length"] = str(len(response.body))
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, **own}.items())
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1", "replace")
