"""Faults of model answers (errors, resets, truncation, bad output) as values that a script may hold instead of an
answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.providers.demo.script import Answer, Call, Piece, Say

INTERRUPTED = Answer(pieces=(Say("This sentence is long enough to be cut somewhere in the middle of its words."),))


@dataclass(frozen=True, slots=True)
class Status:
    """Fault: an HTTP error response. An empty `body` becomes the protocol's own error document with `message`."""

    code: int
    message: str = "the script says so"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Html:
    """Fault: a web page instead of a model answer, as from a captive portal or a proxy."""

    code: int = 200
    body: bytes = b"<!DOCTYPE html><html><body><h1>Sign in to continue</h1></body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Midway:
    """A stream that breaks after `after` events. The first event of every protocol holds no text."""

    reply: Answer = INTERRUPTED
    after: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(_Midway):
    """Fault: the connection is reset (RST) in mid-stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(_Midway):
    """Fault: the stream ends early. `clean`: the HTTP body ends properly, but without the final event."""

    clean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed(_Midway):
    """Fault: bytes that violate the protocol (empty: an event with cut-off JSON) in the stream; then the rest."""

    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(_Midway):
    """Fault: the protocol's error event inside a stream with status 200, then the end."""

    status: int = 529
    kind: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang(_Midway):
    """Fault: the stream stalls and the connection stays open; without `headers` not even those are sent."""

    headers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlives(_Midway):
    """Fault: keep-alive messages without content, one each `every` seconds; after `count` of them the reply continues
    (None: it does not)."""

    every: float = 0.01
    count: int | None = None


@dataclass(frozen=True, slots=True)
class BrokenToolJson:
    """Fault: a tool call whose arguments are not a JSON object."""

    name: str
    text: str = '{"path": "a.txt", "con'


@dataclass(frozen=True, slots=True)
class DuplicateIds:
    """Fault: several tool calls with the same id."""

    calls: tuple[Call, ...]
    id: str = "call_same"


@dataclass(frozen=True, slots=True)
class Empty:
    """Fault: a reply that ends normally without content."""


@dataclass(frozen=True, slots=True)
class WrongModel:
    """Fault: a reply that claims to come from another model."""

    model: str
    pieces: tuple[Piece, ...] = (Say("I am another model."),)


MidwayFault = Reset | Truncate | Malformed | ErrorEvent | Hang | KeepAlives
Fault = Status | Html | MidwayFault
OddReply = BrokenToolJson | DuplicateIds | Empty | WrongModel


def as_answer(odd: OddReply) -> Answer:
    """Express an odd reply as an ordinary `Answer`."""
    match odd:
        case BrokenToolJson(name=name, text=text):
            return Answer(pieces=(Call(name, raw=text),))
        case DuplicateIds(calls=calls, id=identity):
            return Answer(pieces=tuple(Call(call.name, call.arguments, id=identity) for call in calls))
        case Empty():
            return Answer()
        case WrongModel(model=model, pieces=pieces):
            return Answer(pieces=pieces, model=model)
