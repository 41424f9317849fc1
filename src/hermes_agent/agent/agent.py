"""What the agent loop needs for a run: the record `Agent`, and protocols for hooks, prompt, tools and the run's end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from hermes_agent.agent.compaction.compactor import Compactor
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.prompt import Tail
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Location
from hermes_agent.core.events import RunEnded
from hermes_agent.core.messages import Model, Origin, Prefix, ToolCall
from hermes_agent.core.spending import Budget
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A call before it runs: the model's request, the resolved tool and arguments, its facts and context, and the
    number of its turn in the session."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, Any]
    facts: CallFacts
    context: CallContext
    turn: int = 0


class Hook(Protocol):
    """Middleware around each tool call.

    - `before_call` runs before the intent is committed; a `ToolError` from it becomes the call's answer, and the
      tool does not run;
    - `GoingInCircles`, raised by `before_call`, ends the run;
    - `after_call` sees every answer before it is committed, also of failed and refused calls, and returns it or
      another one;
    - hooks run in the same order both times.
    """

    async def before_call(self, proposed: Proposed) -> None: ...

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer: ...


class Prompt(Protocol):
    """Gives the prompt prefix of the session: the stored one, byte for byte, or a new one, committed through the
    journal."""

    async def prefix(self, session: Session, journal: Journal) -> Prefix: ...


class Toolbox(Protocol):
    """The tools of a run by name.

    - `resolve` returns the tool and arguments that a call means (a call through `use_tool` means the tool
      inside), or raises `UnknownTool` with the nearest name as hint.
    """

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]: ...


class Labels(Protocol):
    """Which files are the trusted workspace's.

    - `is_trusted` says whether all of these absolute paths (none: the workspace) lie in a trusted folder, and hold
      nothing that came there while a call ran that had the outside in view, or talked to it; for a command, `said` are
      its words, and no file that they name may be another;
    - `doubt` notes that files which change in these seconds since 1970 are such.
    """

    async def is_trusted(self, paths: Sequence[str], said: str = "") -> bool: ...

    async def doubt(self, since: float, until: float) -> None: ...


class Closing(Protocol):
    """Source of extra database changes that are committed together with the end of a run. Raises nothing."""

    def changes(self, session: Session, ended: RunEnded) -> Sequence[Change]: ...


@runtime_checkable
class Prepares(Protocol):
    """A `Closing` that reads the log, files or other tables before it gives its changes. `prepare` comes when
    everything before the end is committed. Raises nothing, and returns soon: within a second after a stop."""

    async def prepare(self, session: Session, ended: RunEnded) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Dependencies of one run. `attended`: a person is there to answer questions. `tail` gives the context beside
    each message (None: none), `compactor` keeps the view within the window (None: it grows). `redact` removes
    secrets from tool output before anybody sees or stores it. `finishing` gets the session id and a run's end and
    returns the end to record (None: unchanged); `closing` adds changes to that commit. `location` says where the
    `exec` effects of a workspace are recorded (None: unknown); `labels` knows the files of a trusted folder
    (None: there are none); `own` is the label of the conversation's person."""

    model: Model
    tools: Toolbox
    prompt: Prompt
    budget: Budget
    clock: Clock
    ids: Ids
    hooks: tuple[Hook, ...] = ()
    tail: Tail | None = None
    compactor: Compactor | None = None
    effort: str = "medium"
    max_parallel: int = 8
    attended: bool = True
    redact: Callable[[str], str] = str
    finishing: Callable[[str, RunEnded], Awaitable[RunEnded]] | None = None
    closing: tuple[Closing, ...] = ()
    location: Callable[[str], Awaitable[Location]] | None = None
    labels: Labels | None = None
    own: Origin = Origin.OWNER
