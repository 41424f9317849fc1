"""What can go wrong with a model's answer, each as one value that a script may hold in place of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.providers.demo.script import Answer, Call, Piece, Say

INTERRUPTED = Answer(pieces=(Say("This sentence is long enough to be cut somewhere in the middle of its words."),))


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP error. An empty `body` becomes the protocol's own error document with `message`."""

    code: int
    message: str = "the script says so"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Html:
    """A web page where an answer should be: a captive portal, or a proxy's error page."""

    code: int = 200
    body: bytes = b"<!DOCTYPE html><html><body><h1>Sign in to continue</h1></body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Midway:
    """A reply that goes well for `after` events and then breaks. The first event of every protocol holds no words."""

    reply: Answer = INTERRUPTED
    after: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(_Midway):
    """The connection is reset (RST)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate(_Midway):
    """The stream ends too early. `clean`: the body ends as HTTP wants it and only the protocol's own end is missing."""

    clean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed(_Midway):
    """Bytes that are not what the protocol says (empty: an event whose JSON stops short); then the rest."""

    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(_Midway):
    """The protocol's error event inside a stream that began with status 200, then the end."""

    status: int = 529
    kind: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang(_Midway):
    """Nothing more comes, and the connection stays open; without `headers` not even those come."""

    headers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlives(_Midway):
    """Signs of life without content, one each `every` seconds: `count` before the reply goes on; None: for ever."""

    every: float = 0.01
    count: int | None = None


@dataclass(frozen=True, slots=True)
class BrokenToolJson:
    """A tool call whose arguments are not a JSON object."""

    name: str
    text: str = '{"path": "a.txt", "con'


@dataclass(frozen=True, slots=True)
class DuplicateIds:
    """Several calls that share one id."""

    calls: tuple[Call, ...]
    id: str = "call_same"


@dataclass(frozen=True, slots=True)
class Empty:
    """A reply that ends properly and says nothing."""


@dataclass(frozen=True, slots=True)
class WrongModel:
    """A reply that claims to come from another model."""

    model: str
    pieces: tuple[Piece, ...] = (Say("I am another model."),)


MidwayFault = Reset | Truncate | Malformed | ErrorEvent | Hang | KeepAlives
Fault = Status | Html | MidwayFault
OddReply = BrokenToolJson | DuplicateIds | Empty | WrongModel


def as_answer(odd: OddReply) -> Answer:
    """An odd reply in the words of ordinary ones."""
    match odd:
        case BrokenToolJson(name=name, text=text):
            return Answer(pieces=(Call(name, raw=text),))
        case DuplicateIds(calls=calls, id=identity):
            return Answer(pieces=tuple(Call(call.name, call.arguments, id=identity) for call in calls))
        case Empty():
            return Answer()
        case WrongModel(model=model, pieces=pieces):
            return Answer(pieces=pieces, model=model)
