"""How a request becomes an endpoint's call: key, size, types; and how its answer goes back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from hermes_agent.api.app_state import AppState
from hermes_agent.api.endpoint import Answer, Call, Endpoint, JsonAnswer, Left, Nothing, Plain, Streamed
from hermes_agent.api.events import ALIVE, written
from hermes_agent.api.problems import AGAIN, Problem, bad
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Principal, Standing
from hermes_agent.host.tasks import spawn

MEGABYTE = 1_000_000
BODY_SECONDS = 60.0
"""A body that takes longer than this to arrive is not waited for."""
JSON = "application/json"
NOBODY = Principal(platform="api", user="", standing=Standing.GUEST)
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
FIELD = re.compile(r"`\$\.(.+)`$")
UNKNOWN_KEY = "Send a key of this server: `Authorization: Bearer KEY`."


class EndpointApp:
    """One endpoint as an ASGI application."""

    def __init__(self, state: AppState, endpoint: Endpoint) -> None:
        self._state = state
        self._endpoint = endpoint
        self._body = msgspec.json.Decoder(endpoint.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises what becomes an error's answer."""
        endpoint, headers = self._endpoint, Headers(scope=scope)
        scope["hermes_path"] = endpoint.path
        who = NOBODY if endpoint.is_open else self._who(headers)
        body = await read(receive, headers, int(self._state.settings.max_body_mb * MEGABYTE))
        call: Call[Any, Any] = Call(
            who=who,
            path=scope.get("path_params", {}),
            query=self._query(scope["query_string"]),
            body=self._decoded(body, headers),
            headers=headers,
            left=partial(gone, receive),
        )
        await reply(await endpoint.act(self._state, call), endpoint.status, send, call.left)

    def _who(self, headers: Headers) -> Principal:
        scheme, _, key = headers.get("authorization", "").partition(" ")
        key = key.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        who = self._state.keys.whose(key) if key else None
        if who is None:
            raise Problem(401, UNKNOWN_KEY, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
        return who

    def _query(self, text: bytes) -> Any:  # noqa: ANN401  the endpoint's own type
        kind = self._endpoint.query
        if kind is Nothing:
            return Nothing()
        try:
            return msgspec.convert(dict(QueryParams(text)), kind, strict=False)
        except msgspec.ValidationError as error:
            raise bad(f"The query is wrong: {error}", _field(error)) from error

    def _decoded(self, body: bytes, headers: Headers) -> Any:  # noqa: ANN401  the endpoint's own type
        if self._endpoint.body is Nothing:
            return Nothing()
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise Problem(415, f"Send JSON, with the header `Content-Type: {JSON}`.", code="unsupported_media_type")
        try:
            return self._read(body)
        except msgspec.ValidationError as error:
            raise bad(f"The request is wrong: {error}", _field(error)) from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise bad(f"The body is no JSON: {error}", code="invalid_json") from error

    def _read(self, body: bytes) -> Any:  # noqa: ANN401  the endpoint's own type
        """A body, in which a whole number may be written as one of any kind (`1.0`)."""
        try:
            return self._body.decode(body)
        except msgspec.ValidationError:
            return msgspec.convert(_whole_numbers(msgspec.json.decode(body)), self._endpoint.body)


def _whole_numbers(value: Any) -> Any:  # noqa: ANN401  whatever JSON holds
    match value:
        case dict():
            return {key: _whole_numbers(each) for key, each in value.items()}
        case list():
            return [_whole_numbers(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _field(error: msgspec.ValidationError) -> str | None:
    """The field that is wrong, as the message names it; None where it is the whole."""
    found = FIELD.search(str(error))
    return found[1] if found else None


@dataclass(slots=True)
class Room:
    """Bytes that bodies which are not whole may hold together, of requests from who has not proven anything yet."""

    most: int
    taken: int = 0

    def take(self, size: int) -> None:
        """Make room for a piece. Raises `Problem` where there is none."""
        self.taken += size
        if self.taken > self.most:
            raise Problem(503, "Too much is being sent here at once. Try again.", code="too_busy", headers=AGAIN)


async def read(
    receive: Receive, headers: Headers, most: int, seconds: float = BODY_SECONDS, room: Room | None = None
) -> bytes:
    """The whole body. Raises `Problem` where it is too large, too slow, or packed, or there is no `room`."""
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "Send the body as it is, without Content-Encoding.", code="unsupported_encoding")
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length[:19]) > most:
        raise too_large(most)
    found: list[bytes] = []
    room = room or Room(most)
    try:
        async with asyncio.timeout(seconds):
            async for piece in _pieces(receive, most):
                found.append(piece)
                room.take(len(piece))
    except TimeoutError as error:
        raise Problem(408, "The request's body did not arrive in time.", code="request_timeout") from error
    finally:
        room.taken -= sum(map(len, found))
    return b"".join(found)


async def _pieces(receive: Receive, most: int) -> AsyncGenerator[bytes, None]:
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(499, "The client left.", code="gone")
        piece = message.get("body", b"")
        size, more = size + len(piece), message.get("more_body", False)
        if size > most:
            raise too_large(most)
        yield piece


async def gone(receive: Receive) -> None:
    """Return when the client has gone; its request has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def too_large(most: int) -> Problem:
    """A body over the limit."""
    return Problem(413, f"The request is larger than {most:,} bytes (`api.max_body_mb`).", code="request_too_large")


async def reply(answer: Answer, status: int, send: Send, left: Left) -> None:
    """Send an answer; events only until the client has gone."""
    match answer:
        case Streamed(events=events, headers=headers):
            leaving = spawn(left(), name="client of a stream")
            try:
                await stream(send, events, headers, leaving.done)
            finally:
                leaving.cancel()
        case Plain(body=body, media_type=media_type):
            await whole(send, status, media_type, body)
        case JsonAnswer(body=body, headers=headers, status=own):
            await whole(send, own or status, JSON, written(body), headers)
        case _:
            await whole(send, status, JSON, written(answer))


async def stream(
    send: Send, events: AsyncGenerator[bytes | None, None], headers: Mapping[str, str], gone: Callable[[], bool]
) -> None:
    """Send events as they come, until nobody is there any more: sending tells nothing of that."""
    await begin(send, 200, "text/event-stream", headers)
    async with aclosing(events) as lines:
        async for line in lines:
            if gone():
                return
            await send({"type": "http.response.body", "body": ALIVE if line is None else line, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def whole(send: Send, status: int, media_type: str, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> None:
    """Send a whole answer."""
    await begin(send, status, media_type, {**headers, "content-length": str(len(body))})
    await send({"type": "http.response.body", "body": body})


async def begin(send: Send, status: int, media_type: str, headers: Mapping[str, str]) -> None:
    """Send the head of an answer."""
    told = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    head = [(b"content-type", media_type.encode()), *told]
    await send({"type": "http.response.start", "status": status, "headers": head})
