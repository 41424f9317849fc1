"""What an endpoint is: a method and path, the types that go in and out, and the function that answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Principal

if TYPE_CHECKING:
    from hermes_agent.api.app_state import AppState

B = TypeVar("B")
Q = TypeVar("Q")


Left = Callable[[], Coroutine[Any, Any, None]]


class Nothing(msgspec.Struct):
    """A body or query that says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[B, Q]):
    """One request as its endpoint gets it; header names are in lower case. `left` returns when the client has gone."""

    who: Principal
    path: Mapping[str, str]
    query: Q
    body: B
    headers: Mapping[str, str]
    left: Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """An answer as server-sent events: whole ones, blank line included; None is a moment in which nothing came."""

    events: AsyncGenerator[bytes | None, None]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """An answer that is no JSON."""

    body: bytes
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonAnswer:
    """A JSON answer with headers of its own, or a `status` of its own (0: that of the endpoint)."""

    body: msgspec.Struct
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 0


Answer = msgspec.Struct | JsonAnswer | Streamed | Plain
Act = Callable[["AppState", Call[Any, Any]], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One line of the API. `status` is that of a success; `is_open` where no key is needed; `streams` where the answer
    may come as events."""

    method: str
    path: str
    act: Act
    summary: str
    answer: type[msgspec.Struct] | None
    body: type[msgspec.Struct] = Nothing
    query: type[msgspec.Struct] = Nothing
    status: int = 200
    is_open: bool = False
    streams: bool = False
    media_type: str = "application/json"
