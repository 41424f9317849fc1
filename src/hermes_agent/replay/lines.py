"""Record types of a cassette's lines, their serialization, and storable forms of errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeVar, get_args

import msgspec

from hermes_agent.agent.prompt import Environment
from hermes_agent.agent.settings import CompactionSettings
from hermes_agent.core import errors
from hermes_agent.core.chat import Inbound
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import CassetteError, HermesError, LimitReached, ToolError
from hermes_agent.core.events import Entry, Outcome
from hermes_agent.core.messages import Delta, Message, Origin, Prefix, Quoted, Reply, ToolSchema
from hermes_agent.core.records import revive
from hermes_agent.core.spending import Limits, Rules
from hermes_agent.core.tool import Answer, Question, unexpected
from hermes_agent.providers.broker import CallOpened, CallSettled
from hermes_agent.store.breaks import FrozenPrefix
from hermes_agent.store.sessions import Session

VERSION = 1
Failure = TypeVar("Failure", bound=HermesError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Options of the recorded process (see `Options`), and its spending limits."""

    queue: str
    attended: bool
    rules: Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """First line of a cassette. The ids of the recording derive from `seed`."""

    version: int
    seed: str
    at: float
    t: float
    program: str
    process: Process
    kind: Literal["cassette"] = field(default="cassette", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Base of the cassette lines that belong to a track: `at` in seconds since 1970, `t` in `Clock.monotonic`. A
    `track` is one ordered sequence: a session by number (`1`), or a session's background purpose (`1/title`)."""

    track: str
    at: float = 0.0
    t: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMade(Moment):
    """Cassette line: a session was created; for an older one, its log so far and the prefixes in it."""

    session: Session
    entries: tuple[Entry, ...] = ()
    prefixes: tuple[FrozenPrefix, ...] = ()
    kind: Literal["session"] = field(default="session", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived(Moment):
    """Cassette line: an inbound message was accepted."""

    inbound: Inbound
    kind: Literal["inbound"] = field(default="inbound", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked(Moment):
    """Cassette line: a stop of the session was requested."""

    reason: str
    kind: Literal["stop"] = field(default="stop", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Moment):
    """Cassette line: a command changed the session (its new state); `held`: the command had exclusive access to the
    log and wrote `entries`."""

    session: Session
    held: bool
    entries: tuple[Entry, ...] = ()
    kind: Literal["changed"] = field(default="changed", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegun(Moment):
    """Cassette line: a run started with these limits and compaction settings, or failed to start (`error`)."""

    limits: Limits
    effort: str
    compaction: CompactionSettings | None = None
    error: Raised | None = None
    kind: Literal["run"] = field(default="run", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOver(Moment):
    """Cassette line: a run ended at this log number; not `released` if more mail was waiting, which starts the next
    run at once."""

    outcome: Outcome
    number: int
    released: bool
    kind: Literal["over"] = field(default="over", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRead(Moment):
    """Cassette line: the run read its inbox and found these messages (source ids)."""

    mail: tuple[str, ...]
    kind: Literal["read"] = field(default="read", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Moment):
    """Cassette line: the prompt environment that was read for a session, and the tools offered."""

    facts: Environment
    tools: tuple[ToolSchema, ...]
    kind: Literal["surroundings"] = field(default="surroundings", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSection(Moment):
    """Cassette line: the text that a source of the prompt's tail gave for a message."""

    name: str
    words: str
    kind: Literal["told"] = field(default="told", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustLooked(Moment):
    """Cassette line: whether these files (none: the workspace) were the trusted workspace's."""

    paths: tuple[str, ...]
    trusted: bool
    kind: Literal["trust"] = field(default="trust", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixShown:
    """Cassette line: a prompt prefix, stored once; `id` is its digest as stored."""

    id: str
    prefix: Prefix
    kind: Literal["prefix"] = field(default="prefix", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageShown:
    """Cassette line: a message sent to a model, stored once; `id` is its digest as stored."""

    id: str
    message: Message
    kind: Literal["message"] = field(default="message", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Moment):
    """Cassette line: a model request, step `n`. Its messages are the first `kept` ones of the track's previous
    request, then `added`."""

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
    """An error as a cassette stores it: its class name, message and fields; what it quotes with its label."""

    error: str
    text: str
    hint: str = ""
    quoted: str = ""
    label: str = ""
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
    """Item of a recorded model call: its usage row was reserved in the ledger."""

    call: CallOpened
    kind: Literal["opened"] = field(default="opened", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSettled:
    """Item of a recorded model call: its usage row was completed."""

    call: CallSettled
    kind: Literal["settled"] = field(default="settled", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Item of a recorded model call: the model's final reply."""

    reply: Reply
    kind: Literal["reply"] = field(default="reply", init=False)


Item = Delta | RowOpened | RowSettled | Whole | Raised


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One item of a recorded model call (a delta, the reply, an error or a ledger row), with its time."""

    at: float
    t: float
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Moment):
    """Cassette line: the answer to the model request of step `n`. `cut`: the caller cancelled it (a stop, the time
    limit)."""

    n: int
    pieces: tuple[Piece, ...]
    cut: bool = False
    kind: Literal["answered"] = field(default="answered", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Cassette line: the facts of a tool call (effect, paths) before it runs; `id` is the digest of name and
    arguments. `error`: the call is invalid."""

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
    """Cassette line: one event of the tool call `call`.

    - `asks`: it asks the person `question`;
    - `uses`: it calls another `tool` with `arguments`;
    - `may_run`: hooks allowed it;
    - `ends`: it has `answer` or `error`; with neither it was cancelled.

    `progress`: the progress lines shown before.
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
        """Whether the call was cancelled."""
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
    | TrustLooked
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
    """Convert a record to plain JSON values."""
    return msgspec.to_builtins(value)


def line_of(plain: Mapping[str, Any]) -> Line:
    """Parse a line. Raises `ValueError` for an invalid one."""
    if plain.get("kind") not in KINDS:
        raise ValueError(f"there are no lines of kind {plain.get('kind')!r}")
    line: Line = revive(Line, plain)
    return line


FACTS = ("hint", "limit", "provider", "model", "status", "retry_after", "partial")
"""What errors hold beside their sentence."""


def noted(error: Exception) -> Raised:
    """Convert an error to its stored form. An unexpected exception becomes the error that the model is shown."""
    if not isinstance(error, HermesError):
        error = unexpected(error)
    held = {name: getattr(error, name) for name in FACTS if hasattr(error, name)}
    kind, notes = getattr(error, "kind", ToolError.kind), tuple(getattr(error, "__notes__", ()))
    text = str(error)
    if isinstance(error, ToolError) and error.quoted is not None:
        text, held = error.message, {**held, "quoted": error.quoted.text, "label": error.quoted.origin.value}
    return Raised(error=type(error).__name__, text=text, tool_kind=kind, notes=notes, **held)


def raised(noted: Raised) -> HermesError:
    """Recreate the error of a model or run, of its original class if that still exists."""
    kind: type[HermesError] = getattr(errors, noted.error, CassetteError)
    return _filled(LimitReached(noted.text, limit="") if kind is LimitReached else kind(noted.text), noted)


def failed_call(noted: Raised) -> ToolError:
    """Recreate the error of a tool call."""
    kind = getattr(errors, noted.error, ToolError)
    quoted = Quoted(text=noted.quoted, origin=Origin(noted.label)) if noted.label else None
    error: ToolError = (kind if issubclass(kind, ToolError) else ToolError)(noted.text, quoted=quoted)
    error.kind = noted.tool_kind or error.kind
    return _filled(error, noted)


def _filled(error: Failure, noted: Raised) -> Failure:
    for name in FACTS:
        if hasattr(error, name):
            setattr(error, name, getattr(noted, name))
    for note in noted.notes:
        error.add_note(note)
    return error
