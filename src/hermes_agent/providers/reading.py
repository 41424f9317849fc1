"""Shared parts of the dialects: JSON, call ids, and the base class that builds a streamed answer from its blocks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from typing import Any, Generic, Literal, TypeVar

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ContentRefused, EmptyReply, MalformedReply, ProviderError
from hermes_agent.core.messages import (
    CallDelta,
    Delta,
    File,
    Image,
    Part,
    StopReason,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from hermes_agent.providers.outcomes import NO_NAMES, Finished, Names, Table, Taken, failure, read_detail, reported
from hermes_agent.providers.route import Route

IMAGE_TOKENS = 1_600
BYTES_PER_TOKEN = 4
SHOWN_BROKEN = 4_000
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_encoder = msgspec.json.Encoder()


def json_bytes(value: object) -> bytes:
    """Compact JSON in UTF-8; lone surrogates, which JSON text may not contain, become U+FFFD."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mended(msgspec.to_builtins(value)))


def _mended(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {_mended(key): _mended(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mended(entry) for entry in value]
    return value


def safe_id(call_id: str) -> str:
    """The id if every provider accepts it (letters, digits, `_`, `-`, at most 64), otherwise a hash of it."""
    if _SAFE.fullmatch(call_id):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def nine_id(call_id: str) -> str:
    """The id if it is nine letters and digits, as some providers require, otherwise a hash of it."""
    if _NINE.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


class CallIds:
    """Gives each tool call of a reply an id that is not `taken` and not given yet."""

    def __init__(self, taken: frozenset[str] | set[str]) -> None:
        self._taken = taken
        self._given: set[str] = set()

    def give(self, wanted: str) -> str:
        """`wanted` where it is unused and safe, otherwise a similar id."""
        base = safe_id(wanted) if wanted else "call"
        free, number = base, len(self._taken) + len(self._given) + 1
        while free in self._taken or free in self._given or not wanted:
            free, number, wanted = f"{base[:52]}_{number}", number + 1, base
        self._given.add(free)
        return free


def tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """A call with decoded arguments; what is not a JSON object is kept in `broken`."""
    if not arguments.strip():
        return ToolCall(id=call_id, name=name, arguments={})
    try:
        return ToolCall(id=call_id, name=name, arguments=msgspec.json.decode(arguments.encode(), type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return ToolCall(id=call_id, name=name, arguments={}, broken=arguments)


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The arguments to send back, which must be an object: broken ones are wrapped in one."""
    return {"broken_json": call.broken[:SHOWN_BROKEN]} if call.broken else call.arguments


def data_url(part: Image | File) -> str:
    """The URL of a picture or document: its own, or its bytes as a `data:` URL."""
    if isinstance(part, Image) and part.url:
        return part.url
    return f"data:{part.media_type};base64,{part.data}"


def written(part: File) -> str | None:
    """The text of a text document; None for others."""
    kind = part.media_type.partition(";")[0]
    if not (kind.startswith("text/") or kind in {"application/json", "application/xml", "application/yaml"}):
        return None
    try:
        words = base64.b64decode(part.data, validate=True).decode("utf-8", "replace")
    except binascii.Error:
        return None
    return f"[{part.name}]\n{words}"


def words_of(part: Part) -> str:
    """The text of a part; empty where it has none."""
    match part:
        case Text():
            return part.text
        case File():
            return written(part) or ""
        case _:
            return ""


def words_in(result: ToolResult) -> str:
    """The text of a tool's result."""
    return "\n\n".join(words for part in result.parts if (words := words_of(part)))


def attached(result: ToolResult) -> list[Image | File]:
    """The pictures and files of a tool's result."""
    return [part for part in result.parts if isinstance(part, (Image, File)) and not words_of(part)]


def estimate(encoded: bytes, parts: list[Part]) -> int:
    """Tokens of an encoded turn by bytes / 4; pictures and documents count with a fixed number instead of their
    base64."""
    attached = [part for part in parts if isinstance(part, (Image, File)) and part.data]
    size = len(encoded) - sum(len(part.data) for part in attached)
    return max(0, size) // BYTES_PER_TOKEN + IMAGE_TOKENS * len(attached)


def whole(route: Route, finished: Finished, refusal: str) -> Finished:
    """The answer, where it says or asks for something; `refusal` is what the provider said why it refused."""
    if any(isinstance(part, ToolCall) or (isinstance(part, Text) and part.text.strip()) for part in finished.parts):
        return finished
    if finished.stop is StopReason.REFUSED:
        reason = f" ({refusal})" if refusal else ""
        raise failure(route, ContentRefused, f"refused to answer{reason}.")
    thought = any(isinstance(part, Thinking) for part in finished.parts)
    if finished.stop is StopReason.LENGTH:
        used = " by thinking" if thought else ""
        raise failure(
            route, EmptyReply, f"used its output limit up{used} before the first word. Raise `model.max_output`."
        )
    raise failure(route, EmptyReply, "ended its answer without a word. Try again.")


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


def counted(
    sent: int | None, received: int | None, sent_details: TokenDetails | None, received_details: TokenDetails | None
) -> Usage:
    """Usage in OpenAI's counts: of input and output, and the details of each; not known where the input is not."""
    if sent is None:
        return Usage(known=False)
    before, after = sent_details or TokenDetails(), received_details or TokenDetails()
    return Usage(
        input=sent,
        output=received or 0,
        cached=before.cached_tokens or 0,
        cache_write=before.cache_write_tokens or 0,
        reasoning=after.reasoning_tokens or 0,
    )


@dataclass(slots=True)
class Block:
    """A part of the answer during streaming: text, thinking, or the JSON text of a call's arguments. `opaque` is the
    provider's signature or encrypted content. A block of an unknown (empty) kind yields no part."""

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

    - `feed` takes the data of one event and returns its deltas; raises the `ProviderError` that the stream reports, and
      `MalformedReply` for violations of the protocol;
    - `content` grows with everything that belongs to the answer (text, thinking, arguments) and with nothing else;
    - `names` maps sent names of tools to their real ones;
    - `words` is the text so far; `done` is True after the protocol's end marker;
    - `finish` returns the whole answer; raises `MalformedReply` where the answer has no end, `EmptyReply` where it has
      neither text nor calls, `ContentRefused` where it was refused without a text.

    A dialect fills in `feed`, with `_read` to parse an event; `_ended`: whether the protocol's end has come; `_close`:
    the stop reason; and `_tokens`. `_parse` is the decoder of its events, `_event_name` what one is called.
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
        return whole(self._route, finished, self._refusal)

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
