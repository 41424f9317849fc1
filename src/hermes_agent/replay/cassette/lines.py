"""The lines of a cassette: what each kind holds, and how a line is written and read.

`at` is seconds since 1970 and `t` a moment of `Clock.monotonic`: what the clock said when the thing came in. A `track`
is one order of things: a session's number in the recording (`1`), or that and a purpose (`1/title`) for what goes on
beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

import msgspec

from hermes_agent.core.budget import Limits
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Entry, Outcome
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.messages import Message
from hermes_agent.core.model import Delta, Prefix, Reply, ToolSchema
from hermes_agent.core.records import revive
from hermes_agent.core.spending import Rules
from hermes_agent.core.tool import Answer, Question
from hermes_agent.providers.broker import CallOpened, CallSettled
from hermes_agent.store.prefixes import FrozenPrefix
from hermes_agent.store.sessions import Session

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """How the process that is recorded takes part (see `Options`), and the limits that hold in it."""

    queue: str
    attended: bool
    rules: Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line. All ids and random numbers of the recording come from `seed`."""

    version: int
    seed: str
    at: float
    t: float
    program: str
    process: Process
    kind: Literal["cassette"] = field(default="cassette", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMade:
    """A session as it was made; for one that was there before, its log up to then and the prefixes that it names."""

    track: str
    session: Session
    entries: tuple[Entry, ...] = ()
    prefixes: tuple[FrozenPrefix, ...] = ()
    kind: Literal["session"] = field(default="session", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """A message was taken in."""

    track: str
    at: float
    inbound: Inbound
    kind: Literal["inbound"] = field(default="inbound", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked:
    """Somebody said stop."""

    track: str
    at: float
    reason: str
    kind: Literal["stop"] = field(default="stop", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A command changed the session, which is now so; `held`: for that it had the log to itself, and wrote `entries`
    into it."""

    track: str
    session: Session
    held: bool
    entries: tuple[Entry, ...] = ()
    kind: Literal["changed"] = field(default="changed", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegun:
    """A run began with these limits and settings of `compaction`; with `error` it could not begin."""

    track: str
    at: float
    t: float
    limits: Limits
    effort: str
    compaction: Mapping[str, Any] = field(default_factory=dict)
    error: Raised | None = None
    kind: Literal["run"] = field(default="run", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOver:
    """The run has ended so, with this number of the log; not `released` where there was more mail, which begins the
    next run at once."""

    track: str
    outcome: Outcome
    number: int
    released: bool
    kind: Literal["over"] = field(default="over", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRead:
    """The run looked for mail and found these messages, by their source ids."""

    track: str
    mail: tuple[str, ...]
    kind: Literal["read"] = field(default="read", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was found out about the surroundings: by name, and the tools that were offered."""

    track: str
    facts: Mapping[str, Any]
    tools: tuple[ToolSchema, ...]
    kind: Literal["surroundings"] = field(default="surroundings", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSection:
    """What a source of the tail said beside a message."""

    track: str
    name: str
    words: str
    kind: Literal["told"] = field(default="told", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixShown:
    """A prefix, once; `id` is the digest of what is written here."""

    id: str
    prefix: Prefix
    kind: Literal["prefix"] = field(default="prefix", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageShown:
    """A message that a model was shown, once; `id` is the digest of what is written here."""

    id: str
    message: Message
    kind: Literal["message"] = field(default="message", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A model is asked: step `n` of the recording. Its messages are the first `kept` ones of the track's question
    before, then those of `added`."""

    n: int
    track: str
    at: float
    t: float
    purpose: str
    model: str
    window: int
    turn: int
    prefix: str
    kept: int
    added: tuple[str, ...]
    effort: str
    use_tools: bool
    max_output: int | None
    kind: Literal["asked"] = field(default="asked", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An error: the name of its class, its sentence, and what else it holds."""

    error: str
    text: str
    hint: str = ""
    tool_kind: str = ""
    limit: str = ""
    provider: str = ""
    model: str = ""
    status: int = 0
    retry_after: float | None = None
    partial: str = ""
    notes: tuple[str, ...] = ()
    kind: Literal["raised"] = field(default="raised", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOpened:
    """The row of the call went into the ledger."""

    call: CallOpened
    kind: Literal["opened"] = field(default="opened", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSettled:
    """The row was completed."""

    call: CallSettled
    kind: Literal["settled"] = field(default="settled", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The whole answer."""

    reply: Reply
    kind: Literal["reply"] = field(default="reply", init=False)


Item = Delta | RowOpened | RowSettled | Whole | Raised


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One thing of an answer, and when it came."""

    at: float
    t: float
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came of step `n`. `cut`: whoever asked went away before the end (a stop, the time limit)."""

    n: int
    track: str
    at: float
    t: float
    pieces: tuple[Piece, ...]
    cut: bool = False
    kind: Literal["answered"] = field(default="answered", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a call would do: `id` is the digest of name and arguments. With `error` it cannot be made."""

    id: str
    name: str
    tool: str = ""
    effect: Effect = Effect.READS
    paths: tuple[str, ...] | None = None
    summary: str = ""
    error: Raised | None = None
    kind: Literal["planned"] = field(default="planned", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One moment of the tool call `call`.

    `asks`: it puts `question` to the person. `uses`: it calls `tool` with `arguments` in its own name. `may_run`:
    nothing speaks against it. `ends`: it has `answer` or `error`; with neither it was cut short. `progress` are the
    lines that it showed before.
    """

    track: str
    call: str
    at: float
    t: float
    moment: Literal["asks", "uses", "may_run", "ends"]
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    question: Question | None = None
    progress: tuple[str, ...] = ()
    answer: Answer | None = None
    error: Raised | None = None
    kind: Literal["call"] = field(default="call", init=False)

    @property
    def is_cut(self) -> bool:
        """Whether it ended without a result."""
        return self.moment == "ends" and self.answer is None and self.error is None


Line = (
    Header
    | SessionMade
    | Arrived
    | StopAsked
    | Changed
    | RunBegun
    | RunOver
    | MailRead
    | Seen
    | RecordedSection
    | PrefixShown
    | MessageShown
    | Asked
    | Answered
    | Planned
    | Called
)
Outside = Arrived | StopAsked | Changed
"""The lines of what neither a run nor a model nor a tool did."""
Turn = Outside | RunBegun | RunOver | MailRead | Asked | Answered | Called
"""The lines whose order within a track is kept."""


KINDS = frozenset(
    {
        "cassette",
        "session",
        "inbound",
        "stop",
        "changed",
        "run",
        "over",
        "read",
        "told",
        "surroundings",
        "prefix",
        "message",
        "asked",
        "answered",
        "planned",
        "call",
    }
)


def plain_of(value: object) -> Any:  # noqa: ANN401  what JSON knows: objects, lists, texts, numbers
    """A record as JSON writes it."""
    return msgspec.to_builtins(value)


def line_of(plain: Mapping[str, Any]) -> Line:
    """The line that was written so. Raises `ValueError` for what is none."""
    if plain.get("kind") not in KINDS:
        raise ValueError(f"there are no lines of kind {plain.get('kind')!r}")
    line: Line = revive(Line, plain)
    return line
