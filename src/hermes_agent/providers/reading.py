"""Base class of the reply readers of all dialects: collects streamed pieces in blocks and builds the reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Generic, Literal, TypeVar

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import MalformedReply, ProviderError
from hermes_agent.core.messages import Text, Thinking, ToolCall
from hermes_agent.core.model import CallDelta, Delta, StopReason, TextDelta, ThinkingDelta, Usage
from hermes_agent.providers.outcomes import failure, read_detail, reported
from hermes_agent.providers.pieces import Answer, CallIds, tool_call, whole
from hermes_agent.providers.route import Route
from hermes_agent.providers.wire import NO_NAMES, Finished, Names, Table, Taken

Event = TypeVar("Event")
Raw = TypeVar("Raw", bytes, msgspec.Raw)
T = TypeVar("T")
MOST_TOKENS = 1_000_000_000
"""Of one call: far more than any model's window."""
MOST_DOLLARS = 100_000.0


class TokenDetails(msgspec.Struct):
    """Details in a provider's count of input or output tokens."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    thinking_tokens: int | None = None


@dataclass(slots=True)
class Block:
    """A part of the answer during streaming: text, thinking, or the JSON text of a call's arguments.

    `opaque` is the provider's signature or encrypted content. A block of an unknown (empty) kind yields no part.
    """

    kind: Literal["text", "thinking", "call", ""]
    pieces: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    opaque: str = ""
    redacted: bool = False

    @property
    def written(self) -> str:
        """The pieces as one text."""
        return "".join(self.pieces)

    def grow(self, piece: str) -> list[Delta]:
        """Add a piece; the delta for it."""
        if not piece:
            return []
        self.pieces.append(piece)
        if self.kind == "text":
            return [TextDelta(text=piece)]
        return [ThinkingDelta(text=piece)] if self.kind == "thinking" else []

    def part(self, maker: str, ids: CallIds) -> Text | Thinking | ToolCall | None:
        """The finished part; None where it is empty."""
        written = self.written
        if self.kind == "text" and written:
            return Text(text=written)
        if self.kind == "thinking" and (written or self.opaque):
            return Thinking(text=written, opaque=self.opaque, maker=maker, redacted=self.redacted)
        return tool_call(ids.give(self.id), self.name, written) if self.kind == "call" else None


def believable(usage: Usage) -> Usage:
    """The provider's count if plausible, otherwise unknown: limits rely on it."""
    counts = (usage.input, usage.output, usage.cached, usage.cache_write, usage.reasoning)
    return usage if all(0 <= count <= MOST_TOKENS for count in counts) else Usage(known=False)


class ReplyReader(ABC, Generic[Event]):
    """Decodes one streamed answer into `_blocks`, which become its parts in their order.

    - `feed` takes the data of one event and returns its deltas; raises the `ProviderError` that the stream
      reports, and `MalformedReply` for violations of the protocol;
    - `content` grows with everything that belongs to the answer (text, thinking, arguments) and with nothing
      else;
    - `names` maps sent names of tools to their real ones;
    - `words` is the text so far; `done` is True after the protocol's end mark;
    - `finish` returns the whole answer; raises `MalformedReply` where the answer has no end, `EmptyReply` where
      it has neither text nor calls, `ContentRefused` where it was refused without a text.

    A dialect fills in `feed`, with `_read` to parse an event; `_ended`: whether the protocol's end has come;
    `_close`: the stop reason; and `_tokens`. `_parse` is the decoder of its events, `_event_name` what one is
    called.
    """

    _parse: Callable[[bytes], Event]
    _event_name: str

    def __init__(self, route: Route, errors: Table, taken: Taken) -> None:
        self._route = route
        self._errors = errors
        self._ids = CallIds(taken)
        self._blocks: dict[Hashable, Block] = {}
        self._refusal = ""
        self.content = 0
        self.done = False
        self.names: Names = NO_NAMES

    @property
    def words(self) -> str:
        return "".join(piece for block in self._blocks.values() if block.kind == "text" for piece in block.pieces)

    def finish(self) -> Finished:
        if not self._ended():
            raise self._broken("ended its stream in the middle of the answer.")
        stop = self._close()
        parts = tuple(part for block in self._blocks.values() if (part := self._part(block)) is not None)
        finished = Finished(parts=parts, stop=stop, usage=believable(self._tokens()), cost=self._price())
        return whole(self._route, Answer(finished=finished, refusal=self._refusal))

    def _part(self, block: Block) -> Text | Thinking | ToolCall | None:
        if block.kind == "call":
            block.name = self.names.get(block.name, block.name)
        return block.part(self._route.name, self._ids)

    def _called(self, name: str) -> CallDelta:
        """What a listener is shown where a call begins."""
        return CallDelta(name=self.names.get(name, name))

    @abstractmethod
    def feed(self, data: bytes) -> list[Delta]: ...

    @abstractmethod
    def _ended(self) -> bool: ...

    @abstractmethod
    def _close(self) -> StopReason: ...

    @abstractmethod
    def _tokens(self) -> Usage: ...

    def _cost(self) -> float | None:
        return None

    def _price(self) -> float | None:
        cost = self._cost()
        return cost if cost is not None and 0 <= cost <= MOST_DOLLARS else None

    def _read(self, data: bytes) -> Event:
        return self._inside(data, self._parse)

    def _inside(self, data: Raw, parse: Callable[[Raw], T]) -> T:
        try:
            return parse(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._broken(f"sent a piece that is no {self._event_name} ({error}).") from error

    def _failed(self, detail: bytes | msgspec.Raw) -> ProviderError:
        """What an error object in the stream says."""
        problem = reported(self._route, self._errors, read_detail(detail))
        problem.partial = self.words
        return problem

    def _broken(self, what: str) -> MalformedReply:
        return failure(self._route, MalformedReply, what, partial=self.words)
