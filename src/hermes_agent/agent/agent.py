"""What the agent loop needs for a run: the record `Agent`, protocols for hooks, prompt, tools and the run's end;
and the `CallContext` of a running tool call."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from hermes_agent.agent.compaction.compactor import Compactor
from hermes_agent.agent.inbox import take_answers
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.prompt import Tail
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Location
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.core.events import Asked, Delegated, RunEnded, ToolProgress
from hermes_agent.core.forms import Form
from hermes_agent.core.messages import Model, Origin, Prefix, Text, ToolCall, Trust, trust_of
from hermes_agent.core.spending import Budget
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Question, Tool


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


Within: TypeAlias = Callable[[ToolCall], Awaitable[Answer]]
"""Makes a call in the name of another."""


_PURPOSE = {"approval": ".approval", "clarify": ".clarify"}


def asks_approval(question: str) -> bool:
    """Whether that question is about approving a call."""
    return _PURPOSE["approval"] in question


class RunContext:  # noqa: PLR0904 - as the Protocol
    """What one tool call may use of its run; implements `core.tool.CallContext`. `inner` is the worst
    class of what its own calls said, `origin` labels what it says without a label, `asked_for` the
    seconds in which it waited for a person."""

    def __init__(
        self, agent: Agent, session: Session, journal: Journal, call: ToolCall, within: Within | None = None
    ) -> None:
        self._agent = agent
        self._session = session
        self._journal = journal
        self._call = call
        self._within = within
        self._calls = 0
        self.inner, self.origin = Trust.CLEAN, Origin.RUNTIME
        self.attach = False
        self.begun_at = NOWHERE
        self.asked_for = 0.0

    @property
    def key(self) -> str:
        """The idempotency key: session and call id."""
        return f"{self._session.id}-{self._call.id}"

    @property
    def session(self) -> str:
        """The session's id."""
        return self._session.id

    @property
    def run(self) -> str:
        """The run's id."""
        return self._session.run

    @property
    def turn(self) -> int:
        """The number of the session's turn that the call belongs to."""
        return self._session.turn

    @property
    def workspace(self) -> str:
        """The absolute folder where the session works."""
        return self._session.workspace

    @property
    def speaker(self) -> str:
        """The only principal whose words this run works on; empty where several spoke."""
        speakers = self._session.speakers
        return next(iter(speakers)) if len(speakers) == 1 else ""

    @property
    def speakers(self) -> Set[str]:
        """All principals whose words this run works on."""
        return self._session.speakers

    @property
    def trust(self) -> Trust:
        """The worst class of what the model, and then the call itself, has seen."""
        if self._within is None:  # What a program passes on to a tool, no view of the model shows.
            return Trust.OUTSIDE
        return max(self._session.trust(self._agent.own), self.inner)

    def ends(self) -> bool:
        """Whether the run is being ended, and not left to another process."""
        return self._journal.ends()

    def seconds_left(self) -> float | None:
        """Seconds until the run's deadline, None without one."""
        return self._agent.budget.seconds_left(self._agent.clock.monotonic())

    def progress(self, text: str) -> None:
        """Show a line to whoever watches."""
        self._journal.live(ToolProgress(call_id=self._call.id, tool=self._call.name, text=text))

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call another tool on behalf of this one, under its own id; its answer."""
        if self._within is None:
            raise ToolError("A call that a tool made may make none itself.")
        self._calls += 1
        answer = await self._within(ToolCall(id=f"{self._call.id}.{self._calls}", name=name, arguments=arguments))
        self.inner = max(self.inner, *map(trust_of, answer.parts))
        return answer

    async def hold(self, handle: str) -> None:
        """Record the handle under which the effect goes on elsewhere."""
        self.begun_at = replace(self.begun_at, handle=handle)  # First: a stop meanwhile ends it there.
        await self._journal.commit(changes=[self._journal.hold_effect(self._call.id, handle)])

    async def ask(self, question: Question) -> str:
        """Ask the person; the question is logged once, however often the call is retried."""
        id_ = f"{self._call.id}{_PURPOSE[question.purpose]}" + (f".{question.about[:16]}" if question.about else "")
        if question.circumstances:
            id_ = self._open(f"{id_}.", question.circumstances[:16])
        if not self._agent.attended:
            raise Refused(
                f"No one is here to answer: {question.text}",
                hint="Go on without it, or say in your reply what you would need.",
            )
        if not question.fields:
            return await self._answer(
                Asked(question=id_, text=question.text, choices=question.choices, purpose=question.purpose)
            )
        form, asked = Form(question.text, question.fields), Asked(question=id_, text="", choices=(), purpose="clarify")
        for count in itertools.count():
            if not form.open:
                break
            step = replace(asked, question=f"{id_}.{count}", text=form.text, choices=form.choices, fields=form.open)
            form.take(await self._answer(step))
        return "" if form.is_declined else form.written

    def _open(self, stem: str, now: str) -> str:
        """The question's id: of the one that is open from before a restart, else under the circumstances of now."""
        session, id_ = self._session, f"{stem}{now}"
        waiting = (each for each in session.asked - session.answers.keys() if each.startswith(stem))
        return id_ if id_ in session.asked else next(waiting, id_)

    async def _answer(self, asked: Asked) -> str:
        session, journal, id_ = self._session, self._journal, asked.question
        if id_ not in session.asked:
            await journal.commit(asked)
        since = self._agent.clock.monotonic()
        async with self._waiting():
            while id_ not in session.answers:
                await journal.mailbox.wait()
                await take_answers(session, journal)
        self.asked_for += self._agent.clock.monotonic() - since
        words = Text(text=session.answers[id_], origin=session.answerers[id_])
        self.inner = max(self.inner, trust_of(words, self._agent.own))
        return words.text

    @asynccontextmanager
    async def delegating(self, goals: Mapping[str, str]) -> AsyncIterator[None]:
        """Context manager: the call waits for these sessions, to which it gave goals; the log notes each once."""
        new = goals.keys() - self._session.delegated
        if new:
            made = [Delegated(call_id=self._call.id, session=each, goal=goals[each]) for each in goals if each in new]
            await self._journal.commit(*made)
        async with self._waiting():
            yield

    @asynccontextmanager
    async def _waiting(self) -> AsyncIterator[None]:
        journal = self._journal
        journal.in_hand.asking.add(self._call.id)
        try:
            await journal.tell_waiting()
            yield
        finally:
            journal.in_hand.asking.discard(self._call.id)
        await journal.tell_waiting()
