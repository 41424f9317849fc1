"""The events of a conversation, as one closed union of typed records."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.forms import Field
from hermes_agent.core.messages import (
    CallDelta,
    Continuing,
    Message,
    Origin,
    Retrying,
    StopReason,
    TextDelta,
    ThinkingDelta,
    Usage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionFacts:
    """A prompt section as the log keeps it: name, hash, tokens by bytes / 4, label."""

    name: str
    hash: str
    tokens: int
    origin: Origin = Origin.RUNTIME


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixFrozen:
    """Records the prompt prefix that every later request of the session starts with; `cause` says why it is new."""

    hash: str
    cause: str
    sections: tuple[SectionFacts, ...]
    kind: Literal["prefix_frozen"] = field(default="prefix_frozen", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run started; `resumed` when it continues one that was stopped or killed."""

    resumed: bool = False
    kind: Literal["run_started"] = field(default="run_started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTaken:
    """A message joined the conversation: from the inbox, or made by the runtime (`inbox` is 0). `principal` is the
    sender."""

    message: Message
    inbox: int = 0
    principal: str = ""
    kind: Literal["message_taken"] = field(default="message_taken", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAdded:
    """Context that the runtime placed beside the person's message: the tail of the prompt. It is part of the
    conversation, although no person wrote it. `mark` is the session's own marker for such notes; `sections` names the
    sources that contributed."""

    message: Message
    mark: str
    sections: tuple[SectionFacts, ...]
    kind: Literal["context_added"] = field(default="context_added", init=False)


Strategy = Literal["prune", "summary", "trim"]
Cause = Literal["window", "refused", "command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The conversation that the model sees was shortened; the log keeps everything.

    Of the earlier messages the first `head` stay, `note` (None: nothing is replaced) stands for those up to
    `upto`, and the rest stays; results of the calls in `pruned` shrink to one line each. `before` and `after` are
    tokens by bytes / 4; `writer` is the model that wrote the note (empty: this program).
    """

    head: int
    upto: int
    note: Message | None
    pruned: tuple[str, ...]
    before: int
    after: int
    strategy: Strategy
    cause: Cause
    writer: str = ""
    kind: Literal["compacted"] = field(default="compacted", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """Text that a person wants in every request, even after compaction. `denies` lists what no call that changes
    something may need while the pin holds ("read only"); `origin` labels the words."""

    pin: str
    text: str
    denies: tuple[Capability, ...] = ()
    origin: Origin = Origin.OWNER
    kind: Literal["pinned"] = field(default="pinned", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpinned:
    """A pin was removed; `pin` is its id."""

    pin: str
    kind: Literal["unpinned"] = field(default="unpinned", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The model's complete answer of one turn; `partial` when the run was stopped while the answer streamed."""

    turn: int
    call_id: str
    message: Message
    stop: StopReason
    usage: Usage
    provider: str
    model: str
    cost: float | None
    seconds: float
    partial: bool = False
    kind: Literal["replied"] = field(default="replied", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A call is about to run. For effects other than `reads` this event is durable: the intent is committed before the
    call touches the world. Calls that only read show it live and log only their end."""

    turn: int
    call_id: str
    tool: str
    effect: Effect
    summary: str
    kind: Literal["tool_started"] = field(default="tool_started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnded:
    """The result of a call, which is part of the conversation. `seconds` is its duration without the
    time in which it waited for a person."""

    turn: int
    call_id: str
    tool: str
    message: Message
    is_error: bool
    seconds: float
    kind: Literal["tool_ended"] = field(default="tool_ended", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question to a person: to decide about a call (`approval`) or to give a fact (`clarify`). The run waits for
    the answer. `fields` are those that a form still asks for: words answer the first, a JSON object all of them."""

    question: str
    text: str
    choices: tuple[str, ...]
    purpose: Literal["approval", "clarify"]
    fields: tuple[Field, ...] = ()
    kind: Literal["asked"] = field(default="asked", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A person answered the question whose id is `question`; `origin` labels their words."""

    question: str
    answer: str
    principal: str
    inbox: int = 0
    origin: Origin = Origin.OWNER
    kind: Literal["answered"] = field(default="answered", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message from the runtime to the person. Notices of level `news` and above are also sent to chats; a `live`
    one is not logged. With the id of a `question` it is one that quick replies answer and no run waits for."""

    text: str
    level: Literal["info", "news", "warning", "error"] = "info"
    live: bool = False
    question: str = ""
    kind: Literal["notice"] = field(default="notice", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """Resets the conversation's view to event `to`. Later events stay in the log and are no longer sent to the
    model."""

    to: int
    kind: Literal["undone"] = field(default="undone", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched:
    """This session begins as a copy of another one up to its event `upto`."""

    session: str
    upto: int
    kind: Literal["branched"] = field(default="branched", init=False)


class Outcome(StrEnum):
    """Outcome of a run."""

    ANSWERED = "answered"
    STOPPED = "stopped"
    LIMIT = "limit"
    FAILED = "failed"


class Verdict(StrEnum):
    """Whether the work of a run was right: `verified` by a check that ran, `accepted` by a person, `failed` its
    check, or `undone`. The model's own word does not count."""

    UNKNOWN = "unknown"
    VERIFIED = "verified"
    ACCEPTED = "accepted"
    FAILED = "failed"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """A run ended. `text` is the reply, or the sentence that says why there is none; `error` is the class of the error;
    `verified_by` is the check, or the person, behind the `verdict`. Every outcome but `answered` can be continued."""

    outcome: Outcome
    text: str
    turns: int
    reason: str = ""
    error: str = ""
    verdict: Verdict = Verdict.UNKNOWN
    verified_by: str = ""
    kind: Literal["run_ended"] = field(default="run_ended", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A request was sent to the model; `call_id` is its row in the usage ledger."""

    turn: int
    call_id: str
    messages: int
    kind: Literal["turn_started"] = field(default="turn_started", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress:
    """A progress line of a running call."""

    call_id: str
    tool: str
    text: str
    kind: Literal["tool_progress"] = field(default="tool_progress", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """A call gave another session (a child) its goal; what comes of it is that session's log."""

    call_id: str
    session: str
    goal: str
    kind: Literal["delegated"] = field(default="delegated", init=False)


Durable = (
    PrefixFrozen
    | RunStarted
    | MessageTaken
    | ContextAdded
    | Compacted
    | Pinned
    | Unpinned
    | Replied
    | ToolStarted
    | ToolEnded
    | Asked
    | Answered
    | Delegated
    | Notice
    | Undone
    | Branched
    | RunEnded
)
VOCABULARY_OF: dict[str, int] = {"delegated": 2}
"""Kinds of durable events that came after the first vocabulary, by its number: a version that does not know them leaves
the sessions alone whose log has them."""
VOCABULARY = max(VOCABULARY_OF.values(), default=1)
Live = TurnStarted | ToolStarted | TextDelta | ThinkingDelta | CallDelta | Retrying | Continuing | ToolProgress | Notice
Event = Durable | Live


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A durable event in the log: `number` counts from 1 within the session, `at` is in seconds since 1970."""

    number: int
    run: str
    at: float
    event: Durable


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An event as delivered to a reader. A live event carries the number of the durable event before it, so that a
    reader who reconnects with its last number misses nothing."""

    session: str
    number: int
    run: str
    at: float
    event: Event


def is_live(event: Event) -> bool:
    """Whether an event is only shown and not logged."""
    if isinstance(event, ToolStarted):
        return event.effect is Effect.READS
    if isinstance(event, Notice):
        return event.live
    return isinstance(event, Live)
