"""Request and reply of a language model, in types that belong to no provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal, Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Message


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
