"""Endpoint framework of the HTTP API: the `Endpoint` record, shared state, authentication and decoding of requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec

from hermes_agent.api.keys import Keys
from hermes_agent.api.metrics import Metrics
from hermes_agent.api.problems import JSON, bad, in_json
from hermes_agent.api.response_schemas import Removed
from hermes_agent.api.service import AgentService
from hermes_agent.app.operations.access import Access, Argument, Kind
from hermes_agent.app.settings import ApiSettings
from hermes_agent.app.system import System
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.inbound.message import Refused, Request, Response, read

B = TypeVar("B")
Q = TypeVar("Q")

MEGABYTE = 1_000_000
NOBODY = Principal(platform="api", user="", standing=Standing.GUEST)
FIELD = re.compile(r"`\$\.(.+)`$")
UNKNOWN_KEY = "Send a key of this server: `Authorization: Bearer KEY`."


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """State shared by all HTTP API endpoints. `ending` is set on shutdown, so that open event streams close."""

    runtime: System
    keys: Keys
    service: AgentService
    metrics: Metrics
    ending: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def settings(self) -> ApiSettings:
        """The current settings."""
        return self.runtime.settings.api

    def access(self, who: Principal) -> Access[System]:
        """The access rights of this principal."""
        return Access(system=self.runtime, who=who)


class Nothing(msgspec.Struct):
    """Schema of a request without a body or without a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[B, Q]):
    """A decoded request with its principal, as an endpoint's handler gets it; header names in lower case. `left` is set
    when the client disconnects."""

    who: Principal
    path: Mapping[str, str]
    query: Q
    body: B
    headers: Mapping[str, str]
    left: asyncio.Event


Answer = object
"""A record, or a whole response."""
Act = Callable[[AppState, Call[Any, Any]], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Definition of one HTTP endpoint: method, path, handler, and the types of body, query and result. `status` is the
    success status; `is_open`: no key needed; `streams`: may answer with server-sent events."""

    method: str
    path: str
    act: Act
    summary: str
    answer: type | None
    body: type[msgspec.Struct] = Nothing
    query: type[msgspec.Struct] = Nothing
    status: int = 200
    is_open: bool = False
    streams: bool = False
    media_type: str = JSON


def principal_of(state: AppState, request: Request) -> Principal:
    """The principal of a request's key, which is noted in it. Raises `Refused` without a known one."""
    headers = request.headers
    scheme, _, key = headers.get("authorization", "").partition(" ")
    key = key.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
    request.key = known = state.keys.known(key) if key else None
    if known is None:
        raise Refused(401, UNKNOWN_KEY, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
    return known[1]


KINDS: Mapping[Kind, Any] = {
    Kind.NUMBER: Annotated[int, msgspec.Meta(ge=-1, le=10**9)],
    Kind.SWITCH: bool,
}
TEXT = Annotated[str, msgspec.Meta(max_length=1_000_000)]


def body_of(name: str, arguments: Sequence[Argument], doc: str) -> type[msgspec.Struct]:
    """The body that has the arguments of a verb: those without a default are required."""
    fields = [(each.name, KINDS.get(each.kind, TEXT), *_default(each)) for each in arguments]
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True, namespace={"__doc__": doc})


def _default(argument: Argument) -> tuple[Any, ...]:
    return () if argument.default is None else (argument.default,)


def asks(operation: Callable[..., Awaitable[Any]], answer: Callable[[Any], Answer] = lambda found: found) -> Act:
    """A handler that calls an operation with what the path names and the fields of query and body."""

    async def act(state: AppState, call: Call[Any, Any]) -> Answer:
        given = {**msgspec.structs.asdict(call.query), **msgspec.structs.asdict(call.body)}
        return answer(await operation(state.access(call.who), *call.path.values(), **given))

    return act


def shows(kind: Any) -> Callable[[Any], Answer]:  # noqa: ANN401  a schema
    """What makes an object of that schema of a record, or of the fields of one."""
    return partial(msgspec.convert, type=kind, from_attributes=True)


def removes(operation: Callable[..., Awaitable[object]]) -> Act:
    """A handler that removes what the path names."""

    async def act(state: AppState, call: Call[Any, Any]) -> Answer:
        await operation(state.access(call.who), call.path["id"])
        return Removed(id=call.path["id"])

    return act


class EndpointApp:
    """Request handler for one endpoint: authenticates, decodes and calls it."""

    def __init__(self, state: AppState, endpoint: Endpoint) -> None:
        self._state = state
        self._endpoint = endpoint
        self._body = msgspec.json.Decoder(endpoint.body)

    async def __call__(self, request: Request) -> Response:
        """Answer one request. Raises errors that become error responses."""
        endpoint, headers = self._endpoint, request.headers
        who = NOBODY if endpoint.is_open else principal_of(self._state, request)
        body = await read(request, int(self._state.settings.max_body_mb * MEGABYTE))
        call: Call[Any, Any] = Call(
            who=who,
            path=request.slots,
            query=self._query(request.query),
            body=self._decoded(body, headers),
            headers=headers,
            left=request.left,
        )
        answer = await endpoint.act(self._state, call)
        return answer if isinstance(answer, Response) else in_json(answer, endpoint.status)

    def _query(self, text: str) -> Any:  # noqa: ANN401  the endpoint's own type
        kind = self._endpoint.query
        if kind is Nothing:
            return Nothing()
        try:
            return msgspec.convert(dict(parse_qsl(text, keep_blank_values=True)), kind, strict=False)
        except msgspec.ValidationError as error:
            raise bad(f"The query is wrong: {error}", _field(error)) from error

    def _decoded(self, body: bytes, headers: Mapping[str, str]) -> Any:  # noqa: ANN401  the endpoint's own type
        if self._endpoint.body is Nothing:
            return Nothing()
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise Refused(415, f"Send JSON, with the header `Content-Type: {JSON}`.", code="unsupported_media_type")
        try:
            return self._read(body)
        except msgspec.ValidationError as error:
            raise bad(f"The request is wrong: {error}", _field(error)) from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise bad(f"The body is not JSON: {error}", code="invalid_json") from error

    def _read(self, body: bytes) -> Any:  # noqa: ANN401  the endpoint's own type
        """Decode a body; accepts `1.0` for integers."""
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
    """The invalid field that a validation error names; None for the whole body."""
    found = FIELD.search(str(error))
    return found[1] if found else None
