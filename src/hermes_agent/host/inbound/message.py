"""HTTP messages of the listener: requests and their checks, bodies, responses, events, refusals, policy."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from urllib.parse import urlsplit

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.tasks import cancelled, spawn

HEAD_SECONDS = 30.0
"""Seconds until a head is whole, from when the connection is made or the first byte of a later request came."""


class Refused(HermesError):
    """An error response: its HTTP status, a code for programs, the invalid field."""

    def __init__(
        self, status: int, message: str, *, code: str = "", param: str | None = None, headers: Mapping[str, str] = {}
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param, self.headers = status, code or None, param, headers


class Cut(Exception):
    """Ends the connection in the middle of a reply: with RST where `reset`, otherwise with a plain close."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__("the connection was cut on purpose")
        self.reset = reset


class Body:
    """A request body as a stream; its sender is paused while nobody reads. Reading raises `Refused` once the client
    has left."""

    def __init__(self, expects: Callable[[], object] | None = None, flow: Callable[[], object] = bool) -> None:
        self._expects, self._flow = expects, flow
        self._pieces: deque[bytes] = deque()
        self._came = asyncio.Event()
        self.size, self.is_whole, self.is_cut, self._is_wanted = 0, False, False, True

    def put(self, piece: bytes) -> None:
        """Add a received piece."""
        if self._is_wanted:
            self._pieces.append(piece)
            self.size += len(piece)
            self._came.set()

    def end(self, *, whole: bool) -> None:
        """Mark the end of the body."""
        self.is_whole, self.is_cut = whole, not whole
        self._came.set()

    def drop(self) -> None:
        """Discard the rest: the request was answered."""
        self._is_wanted, self.size = False, 0
        self._pieces.clear()

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        if self._expects is not None and not self.is_whole:
            self._expects()
        self._expects = None
        while not self._pieces:
            if self.is_whole:
                raise StopAsyncIteration
            if self.is_cut:
                raise Refused(499, "The client left.", code="gone")
            self._came.clear()
            await self._came.wait()
        piece = self._pieces.popleft()
        self.size -= len(piece)
        self._flow()
        return piece


@dataclass(slots=True, kw_only=True)
class Request:
    """An HTTP request. Header names are in lower case, repeated headers are joined by commas; `arrived` is of
    `time.monotonic`, `route` the path of its handler, `slots` the values of that path's placeholders. The body is
    streamed from `pieces`; servers of whole bodies put it into `body`. `left` is set when the client leaves. `key` is
    what let it in, once a handler has checked it."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    arrived: float = 0.0
    route: str = "other"
    slots: Mapping[str, str] = field(default_factory=dict)
    pieces: AsyncIterator[bytes] = field(default_factory=Body)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    key: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An HTTP response: a whole body, or a generator whose every item is flushed as one chunk. The generator is closed
    when the client leaves, and may raise `Cut` to end the connection itself."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncGenerator[bytes, None] = b""


Handler = Callable[[Request], Awaitable[Response]]


def plain(error: Exception) -> Response:
    """An error in words alone."""
    if isinstance(error, Refused):
        return Response(status=error.status, headers=error.headers, body=str(error).encode())
    return Response(status=500, body=b"the handler failed; its log says why")


def _uncounted(request: Request, status: int) -> None:
    """Nobody counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits and hooks of a listener: seconds for a head, connections at a time (None: as many as the process has
    files for), seconds to wait for running responses at the end, `headers` of each response. `refuse` makes the
    error response for an exception or an invalid request; `answered` is called after each response."""

    head_seconds: float = HEAD_SECONDS
    most: int | None = None
    drain_seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    refuse: Callable[[Exception], Response] = plain
    answered: Callable[[Request, int], object] = _uncounted


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
        await cancelled({task for task in (coming, over) if task is not None and not task.done()})
        await items.aclose()


async def _next(items: AsyncGenerator[bytes, None]) -> bytes | None:
    return await anext(items, None)


BODY_SECONDS = 60.0
"""A body that takes longer than this to arrive is not waited for."""
MINUTE = 60.0
LIMITLESS = 2**63
LOCAL = frozenset({"localhost"})
SAFE = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers that keep a browser from making a page out of an answer."""


def check_names(request: Request, names: Iterable[str]) -> None:
    """Raise `Refused` for a foreign Host or Origin.

    A page that uses DNS rebinding to reach this address still sends its own name in Host.
    """
    host = request.headers.get("host", "")
    if not is_ours(host, names):
        words = "This server does not have that name. Add its other names to `allowed_hosts`."
        raise Refused(421, words, code="wrong_host")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        raise Refused(403, "Pages of other sites are not let in.", code="wrong_origin")


def is_ours(host: str, names: Iterable[str]) -> bool:
    """Whether a Host header names this server: always for a numeric address, which no other page has as its name."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if "," in host:  # Two of them.
        return False
    if name in LOCAL or any(name == each.lower().strip("[]") for each in names):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@dataclass(slots=True)
class Room:
    """Shared memory budget in bytes for request bodies that are still being received, before authentication."""

    most: int
    taken: int = 0

    def take(self, size: int) -> None:
        """Reserve bytes for a piece. Raises `Refused` at the limit."""
        self.taken += size
        if self.taken > self.most:
            words = "Too much is being sent here at once. Try again."
            raise Refused(503, words, code="too_busy", headers={"retry-after": "1"})


async def read(request: Request, most: int, seconds: float = BODY_SECONDS, room: Room | None = None) -> bytes:
    """The whole body. Raises `Refused` where it is too large, too slow, compressed, or exceeds `room`."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "Send the body as it is, without Content-Encoding.", code="unsupported_encoding")
    length = request.headers.get("content-length", "0")
    size, found, room = int(length[:19]) if length.isdigit() else 0, bytearray(), room or Room(LIMITLESS)
    try:
        async with asyncio.timeout(seconds):
            while size <= most and (piece := await anext(request.pieces, None)) is not None:
                found += piece
                size = len(found)
                room.take(len(piece))
    except TimeoutError as error:
        raise Refused(408, "The request's body did not arrive in time.", code="request_timeout") from error
    finally:
        room.taken -= len(found)
    if size > most:
        words = f"The request is larger than {most:,} bytes (`api.max_body_mb`)."
        raise Refused(413, words, code="request_too_large")
    return bytes(found)


@dataclass(slots=True)
class Pace:
    """Rate limit as a token bucket: `per_minute` requests a minute, and as many in a burst."""

    per_minute: int
    room: float
    at: float

    def takes(self, now: float) -> bool:
        """Whether one more request is allowed now."""
        self.room = min(self.per_minute, self.room + (now - self.at) * self.per_minute / MINUTE)
        self.at = now
        if self.room < 1:
            return False
        self.room -= 1
        return True


def same(given: str, expected: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected.encode("utf-8", "surrogateescape"))


def hmac_hex(key: str, data: bytes, algorithm: str = "sha256") -> str:
    """HMAC as hexadecimal digits."""
    return hmac.digest(key.encode(), data, algorithm).hex()


def hmac_base64(key: bytes, data: bytes, algorithm: str = "sha256") -> str:
    """HMAC as base64."""
    return base64.b64encode(hmac.digest(key, data, algorithm)).decode()


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal: the identity of a message whose sender gave none."""
    return hashlib.sha256(data).hexdigest()
