"""Input and output of a scripted model, independent of any protocol, and its token counts."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Message, Role, StopReason, Text, ToolSchema, Usage
from hermes_agent.core.section import estimate_tokens

CACHE_STEP = 128  # OpenAI's prompt cache hits grow in steps of 128 tokens
PROMPTS_KEPT = 32
NOTE = re.compile(r'\s*<runtime mark="[0-9a-f]+">\n(.*?)\n</runtime>', re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A request to a scripted model. A script depends on nothing else, so that the same request gets the same answer
    after a crash. `prompt` is the canonical text of everything sent, for counting tokens; `notes` are the
    runtime's, removed from the messages because they contain the time."""

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSchema, ...] = ()
    use_tools: bool = True
    stream: bool = False
    stream_usage: bool = True
    max_output: int | None = None
    effort: str = ""
    prompt: str = ""
    notes: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        found = tuple(note for message in self.messages for note in NOTE.findall(message.text))
        if found:
            object.__setattr__(self, "notes", tuple(note.strip() for note in found))
            object.__setattr__(self, "messages", tuple(map(_without_notes, self.messages)))

    @cached_property
    def turn(self) -> int:
        """The number of the model's earlier replies in this conversation."""
        return sum(message.role is Role.ASSISTANT for message in self.messages)

    @property
    def last(self) -> Message:
        """The newest message."""
        return self.messages[-1]

    @cached_property
    def fingerprint(self) -> str:
        """The conversation as text: equal for equal questions."""
        return repr(self.messages)


def _without_notes(message: Message) -> Message:
    parts = tuple(
        replace(part, text=NOTE.sub("", part.text)) if isinstance(part, Text) else part for part in message.parts
    )
    return replace(message, parts=tuple(part for part in parts if not isinstance(part, Text) or part.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Speed of a stream: seconds before the first event and between events; characters of text per event."""

    first: float = 0.0
    between: float = 0.0
    characters: int = 24


@dataclass(frozen=True, slots=True)
class Say:
    """A piece of an answer: text for the person."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """A piece of an answer: reasoning. `redacted` is sent as an opaque block where the protocol has one."""

    text: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A piece of an answer: a tool call. `raw` is sent in place of the arguments' JSON; an empty `id` is derived
    from the conversation."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    raw: str = ""

    @property
    def json(self) -> str:
        """The arguments as they go over the wire."""
        return self.raw or json.dumps(self.arguments, ensure_ascii=False)


Piece = Say | Think | Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One whole answer of a scripted model. `stop` None: implied by the pieces; `usage` None: counted by bytes / 4;
    `model` overrides the requested name."""

    pieces: tuple[Piece, ...] = ()
    pace: Pace = Pace()
    stop: StopReason | None = None
    usage: Usage | None = None
    model: str = ""

    @property
    def ending(self) -> StopReason:
        """Why the model stopped."""
        if self.stop is not None:
            return self.stop
        return StopReason.TOOL_CALLS if any(isinstance(piece, Call) for piece in self.pieces) else StopReason.END


def call_id(call: Call, heard: Heard, index: int, stem: str = "call") -> str:
    """The id of the `index`th piece: the same whenever the same conversation is continued."""
    return call.id or f"{stem}_{heard.turn:04d}_{index}"


def chunks(text: str, size: int) -> list[str]:
    """The text in pieces of at most `size` characters, at least 1."""
    size = max(1, size)
    return [text[start : start + size] for start in range(0, len(text), size)]


class RequestRefused(Exception):
    """An invalid request: the status and text of the provider's own error body."""

    def __init__(self, message: str, *, status: int = 400, kind: str = "invalid_request_error", code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.code = code


class PrefixCache:
    """Simulates prompt caching: remembers the latest prompts and tells how much of a new one repeats the start of
    one of them."""

    def __init__(self, step: int = CACHE_STEP) -> None:
        self._prompts: deque[str] = deque(maxlen=PROMPTS_KEPT)
        self._step = step

    def shared(self, prompt: str) -> int:
        """Tokens, in whole steps, of the longest prefix that an earlier prompt shares. Remembers the prompt."""
        longest = max((_common(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts.append(prompt)
        return estimate_tokens(prompt[:longest]) // self._step * self._step


def prompt_text(*parts: object) -> str:
    """The canonical text of a request for counting and caching, in the order in which a provider reads it."""
    return "\n".join(json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in parts)


def count(answer: Answer, prompt: str, cached: int) -> Usage:
    """The usage of one exchange, unless the answer has its own."""
    if answer.usage is not None:
        return answer.usage
    reasoning = sum(estimate_tokens(piece.text) for piece in answer.pieces if isinstance(piece, Think))
    spoken = sum(estimate_tokens(_spoken(piece)) for piece in answer.pieces if not isinstance(piece, Think))
    whole = max(estimate_tokens(prompt), 1)
    return Usage(input=whole, output=reasoning + spoken, cached=min(cached, whole), reasoning=reasoning)


def _spoken(piece: Piece) -> str:
    return f"{piece.name}{piece.json}" if isinstance(piece, Call) else piece.text


def _common(one: str, other: str) -> int:
    """The length of the common beginning, by halving: comparing slices is much quicker than comparing characters."""
    low, high = 0, min(len(one), len(other)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low
