"""The lines of a cassette: what each kind holds, in the serial form that the log has, and how errors are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeVar, get_args

import msgspec

from hermes_agent.agent.prompt import Environment
from hermes_agent.agent.settings import CompactionSettings
from hermes_agent.core import errors
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import CassetteError, HermesError, LimitReached, ToolError, unexpected
from hermes_agent.core.events import Entry, Outcome
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.messages import Message
from hermes_agent.core.model import Delta, Prefix, Reply, ToolSchema
from hermes_agent.core.records import revive
from hermes_agent.core.spending import Limits, Rules
from hermes_agent.core.tool import Answer, Question
from hermes_agent.providers.broker import CallOpened, CallSettled
from hermes_agent.store.breaks import FrozenPrefix
from hermes_agent.store.sessions import Session

VERSION = 1
Failure = TypeVar("Failure", bound=HermesError)


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
class Moment:
    """What each line of a track has: `at` is seconds since 1970 and `t` a moment of `Clock.monotonic`. A `track` is one
    order of things: a session's number in the recording (`1`), or that and a purpose (`1/title`) for what goes on
    beside it."""

    track: str
    at: float = 0.0
    t: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMade(Moment):
    """A session as it was made; for one that was there before, its log up to then and the prefixes that it names."""

    session: Session
    entries: tuple[Entry, ...] = ()
    prefixes: tuple[FrozenPrefix, ...] = ()
    kind: Literal["session"] = field(default="session", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived(Moment):
    """A message was taken in."""

    inbound: Inbound
    kind: Literal["inbound"] = field(default="inbound", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked(Moment):
    """Somebody said stop."""

    reason: str
    kind: Literal["stop"] = field(default="stop", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Moment):
    """A command changed the session, which is now so; `held`: for that it had the log to itself, and wrote `entries`
    into it."""

    session: Session
    held: bool
    entries: tuple[Entry, ...] = ()
    kind: Literal["changed"] = field(default="changed", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegun(Moment):
    """A run began with these limits and settings of `compaction`; with `error` it could not begin."""

    limits: Limits
    effort: str
    compaction: CompactionSettings | None = None
    error: Raised | None = None
    kind: Literal["run"] = field(default="run", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOver(Moment):
    """The run has ended so, with this number of the log; not `released` where there was more mail, which begins the
    next run at once."""

    outcome: Outcome
    number: int
    released: bool
    kind: Literal["over"] = field(default="over", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRead(Moment):
    """The run looked for mail and found these messages, by their source ids."""

    mail: tuple[str, ...]
    kind: Literal["read"] = field(default="read", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Moment):
    """What was found out about the surroundings: by name, and the tools that were offered."""

    facts: Environment
    tools: tuple[ToolSchema, ...]
    kind: Literal["surroundings"] = field(default="surroundings", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSection(Moment):
    """What a source of the tail said beside a message."""

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
class Asked(Moment):
    """A model is asked: step `n` of the recording. Its messages are the first `kept` ones of the track's question
    before, then those of `added`."""

    n: int
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
class Answered(Moment):
    """What came of step `n`. `cut`: whoever asked went away before the end (a stop, the time limit)."""

    n: int
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
class Called(Moment):
    """One moment of the tool call `call`.

    `asks`: it puts `question` to the person. `uses`: it calls `tool` with `arguments` in its own name. `may_run`:
    nothing speaks against it. `ends`: it has `answer` or `error`; with neither it was cut short. `progress` are the
    lines that it showed before.
    """

    call: str
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

KINDS = frozenset(each.__dataclass_fields__["kind"].default for each in get_args(Line))


def plain_of(value: object) -> Any:  # noqa: ANN401  what JSON knows: objects, lists, texts, numbers
    """A record as JSON writes it."""
    return msgspec.to_builtins(value)


def line_of(plain: Mapping[str, Any]) -> Line:
    """The line that was written so. Raises `ValueError` for what is none."""
    if plain.get("kind") not in KINDS:
        raise ValueError(f"there are no lines of kind {plain.get('kind')!r}")
    line: Line = revive(Line, plain)
    return line


FACTS = ("hint", "limit", "provider", "model", "status", "retry_after", "partial")
"""What errors hold beside their sentence."""


def noted(error: Exception) -> Raised:
    """The error as a line holds it. A defect of a tool reads as the loop tells it to the model."""
    if not isinstance(error, HermesError):
        error = unexpected(error)
    held = {name: getattr(error, name) for name in FACTS if hasattr(error, name)}
    kind, notes = getattr(error, "kind", ToolError.kind), tuple(getattr(error, "__notes__", ()))
    return Raised(error=type(error).__name__, text=str(error), tool_kind=kind, notes=notes, **held)


def raised(noted: Raised) -> HermesError:
    """The error of a model or a run again, of the class that it had where there still is one."""
    kind: type[HermesError] = getattr(errors, noted.error, CassetteError)
    return _filled(LimitReached(noted.text, limit="") if kind is LimitReached else kind(noted.text), noted)


def failed_call(noted: Raised) -> ToolError:
    """The failure of a tool call again."""
    kind = getattr(errors, noted.error, ToolError)
    error: ToolError = kind(noted.text) if issubclass(kind, ToolError) else ToolError(noted.text)
    error.kind = noted.tool_kind or error.kind
    return _filled(error, noted)


def _filled(error: Failure, noted: Raised) -> Failure:
    for name in FACTS:
        if hasattr(error, name):
            setattr(error, name, getattr(noted, name))
    for note in noted.notes:
        error.add_note(note)
    return error
