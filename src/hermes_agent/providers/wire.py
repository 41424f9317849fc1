"""Wire format shared by all dialects: the encoded request, the framing of events, the finished answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ProviderError
from hermes_agent.core.messages import StopReason, Text, Thinking, ToolCall, Usage

Table = Mapping[str, type[ProviderError]]
Taken = frozenset[str] | set[str]
Names = Mapping[str, str]
NO_NAMES: Names = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """An encoded request: `path` follows the route's base URL, `body` is JSON in UTF-8."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A model's whole answer as decoded by a dialect. `cost` is in US dollars where the provider reported it."""

    parts: tuple[Text | Thinking | ToolCall, ...]
    stop: StopReason
    usage: Usage
    cost: float | None = None


class Framing(Protocol):
    """Splits the response's bytes into events.

    - `feed` returns the data of the events that the bytes complete;
    - `finish` returns what the end of the stream completes;
    - raises only `MalformedReply`.
    """

    def feed(self, chunk: bytes) -> list[bytes]: ...

    def finish(self) -> list[bytes]: ...
