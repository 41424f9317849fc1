"""Messages of a conversation, independent of any provider, each part labelled with its origin; requests to a model and
its replies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum, StrEnum
from typing import Any, Literal, Protocol, assert_never

from hermes_agent.core.dataclass import dataclass

KEPT_WHOLE = "kept whole in"
"""Stands before the path, in backticks, of a file that holds all of what a message shows in part."""


NOTE = "<runtime mark="
"""So a note of the runtime begins that stands beside a message."""


class Trust(IntEnum):
    """What may be learned while a text is in view. `clean`: anything. `workspace` (a folder that the owner trusts):
    anything but copies of it. `outside`: nothing without the owner."""

    CLEAN = 0
    WORKSPACE = 1
    OUTSIDE = 2


class Origin(StrEnum):
    """Origin label of a part: where its bytes came from. `workspace` is a file of a trusted folder, or what a command
    said there that talked to nobody; `file` is any other file, `tool` anything not known better. Text of these, of the
    web and of other people is never an instruction. `skill` and `memory` are the home's own, by their ledgers."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"
    RUNTIME = "runtime"
    MODEL = "model"
    TOOL = "tool"
    WEB = "web"
    FILE = "file"
    WORKSPACE = "workspace"
    SKILL = "skill"
    MEMORY = "memory"

    @property
    def trust(self) -> Trust:
        """The class of such a text. What the model says is as the worst that was in its view: see `trust_in`."""
        match self:
            case Origin.OWNER | Origin.RUNTIME | Origin.MODEL | Origin.SKILL | Origin.MEMORY:
                return Trust.CLEAN
            case Origin.WORKSPACE:
                return Trust.WORKSPACE
            case Origin.MEMBER | Origin.GUEST | Origin.TOOL | Origin.WEB | Origin.FILE:
                return Trust.OUTSIDE
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text part of a message."""

    text: str
    origin: Origin = Origin.MODEL
    kind: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """A model's reasoning. `text` is what may be shown, empty where there is only a signature of the part that follows.
    `opaque` is the provider's signature or encrypted content, kept verbatim and sent back only to the `maker`
    ("vendor/model") that made it."""

    text: str
    opaque: str = ""
    maker: str = ""
    redacted: bool = False
    kind: Literal["thinking"] = field(default="thinking", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image part: its bytes as base64 in `data`, or an address in `url`."""

    media_type: str = "image/png"
    data: str = ""
    url: str = ""
    origin: Origin = Origin.OWNER
    kind: Literal["image"] = field(default="image", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A document part: its bytes as base64, its media type, and its file name. `reference` says where bytes are that
    were not fetched yet; no conversation holds such a part."""

    name: str
    media_type: str
    data: str = ""
    reference: str = ""
    origin: Origin = Origin.OWNER
    kind: Literal["file"] = field(default="file", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call that the model requests. `id` is unique within the session. `arguments` is the decoded JSON object;
    where the model's JSON was no object, `arguments` is empty and `broken` holds the original text."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    broken: str = ""
    kind: Literal["tool_call"] = field(default="tool_call", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of the call `call_id`. A failure is a result too, with `is_error` set."""

    call_id: str
    name: str
    parts: tuple[Text | Image | File, ...]
    is_error: bool = False
    kind: Literal["tool_result"] = field(default="tool_result", init=False)

    @property
    def text(self) -> str:
        """The words of the answer."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


Part = Text | Thinking | Image | File | ToolCall | ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """Words that an error quotes, with their label: they never stand in its sentence."""

    text: str
    origin: Origin


class Role(StrEnum):
    """Author of a message. System notices travel as `user` with origin `runtime`."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the conversation."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The words, without thinking and tool traffic."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def is_by_runtime(self) -> bool:
        """Whether the runtime wrote its beginning, whatever it quotes, and no person wrote a part of it."""
        own = [part.origin for part in self.parts if isinstance(part, Text)]
        return own[:1] == [Origin.RUNTIME] and not {Origin.OWNER, Origin.MEMBER, Origin.GUEST}.intersection(own)

    @property
    def is_runtime(self) -> bool:
        """Whether it is a note of the runtime, which may quote others."""
        parts = [part for part in self.parts if isinstance(part, Text)]
        own = [part.origin is Origin.RUNTIME for part in parts]
        return len(own) == len(self.parts) and (all(own) or (own[0] and parts[0].text.startswith(NOTE)))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that this message asks for, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


def trust_of(part: Part, own: Origin = Origin.OWNER) -> Trust:
    """The class of a part. `own` is the label of the person whose conversation it is. Whoever sends a picture or a
    document has seldom written it: only those of the workspace are better than outside."""
    match part:
        case ToolResult(parts=parts):
            return max((trust_of(each, own) for each in parts), default=Trust.CLEAN)
        case Text(origin=origin):
            return Trust.CLEAN if origin is own else origin.trust
        case Image(origin=origin) | File(origin=origin):
            return Trust.WORKSPACE if origin is Origin.WORKSPACE else Trust.OUTSIDE
        case Thinking() | ToolCall():
            return Trust.CLEAN
        case _:
            assert_never(part)


def trust_in(messages: Iterable[Message], own: Origin = Origin.OWNER) -> Trust:
    """The worst class in a view, and so the class of what a model says that sees it."""
    return max((trust_of(part, own) for message in messages for part in message.parts), default=Trust.CLEAN)


LABELS = {Trust.CLEAN: Origin.MODEL, Trust.WORKSPACE: Origin.WORKSPACE, Trust.OUTSIDE: Origin.TOOL}
"""The label of what is made of a view of that class."""


def said(text: str, origin: Origin = Origin.OWNER) -> Message:
    """A user message of words alone."""
    return Message(role=Role.USER, parts=(Text(text=text, origin=origin),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as a model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The frozen beginning of every request of a session. `system` is the assembled text, `tools` the schemas in a
    fixed order, `hash` covers both byte for byte."""

    system: str
    tools: tuple[ToolSchema, ...]
    hash: str


class StopReason(StrEnum):
    """Why a model ended its reply."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSED = "refused"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call as the provider counted them. `input` includes `cached` and `cache_write`; `output` includes
    `reasoning`. `known` is False where the provider reported nothing (an interrupted call): unknown is not zero."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A streamed piece of the reply's text."""

    text: str
    kind: Literal["text_delta"] = field(default="text_delta", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta:
    """A streamed piece of the model's reasoning."""

    text: str
    kind: Literal["thinking_delta"] = field(default="thinking_delta", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """Start of a tool call in a stream; its arguments come with the reply."""

    name: str
    kind: Literal["call_delta"] = field(default="call_delta", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """An attempt failed and another follows after `delay` seconds; what the failed attempt had streamed is void."""

    reason: str
    attempt: int
    delay: float
    kind: Literal["retrying"] = field(default="retrying", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuing:
    """A stream broke in the middle of a text and another attempt continues it after `delay` seconds. What was
    streamed stays valid; the words that follow are new."""

    reason: str
    attempt: int
    delay: float
    kind: Literal["continuing"] = field(default="continuing", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Information for the person about how the answer was produced (fallback to another model, another reasoning
    level). The reader of the stream turns it into a notice."""

    text: str
    level: Literal["info", "warning"] = "info"
    kind: Literal["remark"] = field(default="remark", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's whole answer. `cost` is in US dollars, None where the price is unknown."""

    message: Message
    stop: StopReason
    usage: Usage
    provider: str
    model: str
    cost: float | None = None


Delta = TextDelta | ThinkingDelta | CallDelta | Retrying | Continuing | Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model.

    `call_id` names the call in the usage ledger, whose row the broker commits before the request is sent;
    `session`, `run`, `turn` and `purpose` (`chat`, `title`, `compression`, ...) say whose it is and what for.
    `messages` only grows within a run, so that its compiled form can be reused by the next request. `deadline` is
    a moment of `Clock.monotonic`, None: no limit. `max_output` caps the reply in tokens; None: the model's own
    limit. `use_tools` False offers the tools but forbids their use, so that the prefix stays byte-identical.
    `prefill` True: the last message is the beginning of the reply, which the model continues. `shrink` False: a
    request that is too long is not shortened on the way, because the caller compacts the conversation itself.
    """

    call_id: str
    session: str
    run: str
    turn: int
    purpose: str
    prefix: Prefix
    messages: Sequence[Message]
    deadline: float | None = None
    max_output: int | None = None
    effort: str = "medium"
    use_tools: bool = True
    prefill: bool = False
    shrink: bool = True


class Model(Protocol):
    """Client of a language model.

    - `ask` yields any number of deltas, then exactly one `Reply`, then stops;
    - in a run, everything posted to its log is committed before the request is sent, together with the call's ledger
      row;
    - raises only `ProviderError` (or `LimitReached`, where a limit does not even cover the question), before or instead
      of the `Reply`, and at most a second after its deadline;
    - closing the iterator early closes the connection;
    - after `Retrying`, the words streamed before it are void; after `Continuing` they stand, and the stream goes on.
    """

    @property
    def name(self) -> str:
        """The route as a person writes it: `vendor/model`."""
        ...

    @property
    def window(self) -> int:
        """Size of the context window in tokens."""
        ...

    def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]: ...


class Through:
    """Base class of wrappers around a model: has the name and window of the model inside."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """As the model's."""
        return self._model.name

    @property
    def window(self) -> int:
        """As the model's."""
        return self._model.window
