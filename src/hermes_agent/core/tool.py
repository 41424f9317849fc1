"""The Tool protocol: what a model can call, what a call does to the world, and the decorator that makes a method a
tool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect, Location
from hermes_agent.core.errors import ToolError
from hermes_agent.core.forms import Field
from hermes_agent.core.messages import File, Image, Origin, Quoted, Text, ToolSchema, Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """Effect and absolute paths of one call with its arguments. `paths` None means "unknown": such a call never runs in
    parallel with another that writes. `summary` is one line for a person ("terminal: pytest -q"). `depends_on` names
    the tools that must have answered before in the session. `origin` is the label of what the call says without a label
    of its own, also in an error: where the tool names none, it is outside."""

    effect: Effect
    paths: tuple[str, ...] | None
    summary: str
    depends_on: tuple[str, ...] = ()
    origin: Origin = Origin.TOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that only a person can answer: text, and choices where there are some. `about` binds the answer (the
    hash of a call): the same question about another call is a new question. So is one under other `circumstances` (the
    environment), except while it is open: the answer then holds for those of now. With `fields` it is a form: its
    answer is a JSON object with their values, or empty where the person declined."""

    text: str
    about: str = ""
    circumstances: str = ""
    choices: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    purpose: Literal["approval", "clarify"] = "clarify"


class CallContext(Protocol):  # noqa: PLR0904 - all that a call may use of its run
    """Access of a running tool call to its run.

    - `key` is the idempotency key `session/call id`, the same when the call is retried after a crash; filesystem-safe;
    - `attach` is True where an earlier process may have started this effect (`exec` tools look for it before they
      start); `begun_at` is the location that this attempt recorded;
    - `hold` records the handle under which the effect goes on elsewhere, as a part of `begun_at`, durable when it
      returns;
    - `ends`, where the call is cancelled: whether the run is being ended, and not left to another process;
    - `trust` is the worst class of what the model saw when it made the call;
    - `seconds_left` is the time until the run's deadline, None without one;
    - `progress` shows a line to whoever watches; it never blocks;
    - `session`, `run` and `workspace` name the conversation, its run and its absolute working folder;
    - `speakers` are the principals (`platform:user`) whose words the run works on; `speaker` is the only one, empty
      where several spoke;
    - `use` calls another tool on behalf of this one: permission, guardrails, logged intent and result are as for any
      call, but the model does not see it; a call made so may make none itself;
    - `ask` puts a question to the person and returns the answer, also one given before a crash; it raises `Refused`
      where nobody is there to answer;
    - inside `delegating` the call only waits for the sessions to which it gave these goals, which the log notes once:
      the run makes room for theirs.
    """

    @property
    def key(self) -> str: ...

    @property
    def session(self) -> str: ...

    @property
    def run(self) -> str: ...

    @property
    def workspace(self) -> str: ...

    @property
    def speaker(self) -> str: ...

    @property
    def speakers(self) -> Set[str]: ...

    @property
    def attach(self) -> bool: ...

    @property
    def begun_at(self) -> Location: ...

    @property
    def trust(self) -> Trust: ...

    def ends(self) -> bool: ...

    def seconds_left(self) -> float | None: ...

    def progress(self, text: str) -> None: ...

    async def ask(self, question: Question) -> str: ...

    async def hold(self, handle: str) -> None: ...

    def delegating(self, goals: Mapping[str, str]) -> AbstractAsyncContextManager[None]: ...

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Answer: ...


class RunlessCall:
    """The part of `CallContext` that is alike for calls of no run: no deadline, nothing goes on after them, and they
    call no other tool."""

    __slots__ = ()

    def ends(self) -> bool:
        """True: no other process goes on with it."""
        return True

    def seconds_left(self) -> float | None:
        """None: there is no limit."""
        return None

    async def hold(self, handle: str) -> None:
        """Does nothing: nobody takes the call up again."""

    def delegating(self, goals: Mapping[str, str]) -> AbstractAsyncContextManager[None]:
        """Raises `ToolError`."""
        raise ToolError(f"Only a run delegates ({len(goals)}).")

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Answer:  # noqa: ARG002  the Protocol's shape
        """Raises `ToolError`."""
        raise ToolError(f"Only a run calls other tools (`{name}`).")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a call for the model. A plain `str` stands for one text part with the origin of the tool's mark.
    `over` ends with what goes on after the call, and says whether that may have talked to anybody."""

    parts: tuple[Text | Image | File, ...]
    is_error: bool = False
    over: asyncio.Task[bool] | None = None


class Tool(Protocol):
    """A callable tool.

    - `facts` is pure, quick, and raises `BadArguments` (with the schema path) where the arguments do not fit;
    - `run` raises `ToolError` for what the model should know; anything else is a defect of the tool;
    - `run` of an effect that is not `writes` may be called again with the same `key` after a crash;
    - cancelling `run` ends everything that it started within two seconds.
    """

    @property
    def schema(self) -> ToolSchema: ...

    @property
    def needs(self) -> frozenset[Capability]: ...

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts: ...

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A tool that could not be loaded, and the reason."""

    name: str
    reason: str


Touched: TypeAlias = tuple[str, ...] | Callable[[Mapping[str, object]], Sequence[str]]
"""The paths that a call touches: the parameters that hold them, or what finds them in the arguments (it may raise
`BadArguments`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMark:
    """Metadata that the `@tool` decorator stores on a method; a collector turns it into a `Tool`."""

    effect: Effect
    needs: tuple[Capability, ...]
    paths: Touched
    reads_when: str
    name: str
    core: bool
    depends_on: tuple[str, ...] = ()
    origin: Origin = Origin.TOOL


Method = TypeVar("Method", bound=Callable[..., Awaitable[str | Answer]])
MARK = "__hermes_tool__"


def tool(  # noqa: PLR0913 - what a tool may say of itself
    *,
    effect: Effect,
    needs: tuple[Capability, ...] = (),
    paths: Touched = (),
    reads_when: str = "",
    name: str = "",
    core: bool = True,
    origin: Origin = Origin.TOOL,
) -> Callable[[Method], Method]:
    """Mark an async method as a tool.

    The method's name, docstring and signature are the tool (`name` overrides). A parameter called `context` receives
    the `CallContext` and is not part of the schema. `paths` names the parameters that hold paths, or finds
    them, for writes that may run side by side. `reads_when` names a boolean parameter that turns this call into a
    `reads`, or a parameter and the values that do (`"action=list|poll"`). A tool that is not `core` is left out of the
    prompt and found with `find_tools`. `origin` labels what it says without a label of its own (see `CallFacts`).
    """

    def mark(method: Method) -> Method:
        facts = ToolMark(
            effect=effect, needs=needs, paths=paths, reads_when=reads_when, name=name, core=core, origin=origin
        )
        setattr(method, MARK, facts)
        return method

    return mark


def unexpected(error: Exception) -> ToolError:
    """The `ToolError` that a model reads for an exception that its tool did not foresee."""
    if isinstance(error, OSError) and (error.strerror or isinstance(error, PermissionError)):
        words = (error.strerror or "Permission denied").lower()
        what = Quoted(text=str(error.filename), origin=Origin.TOOL) if error.filename else None
        return ToolError(f"Something cannot be used: {words}.", quoted=what)
    return ToolError(f"The tool failed: {type(error).__name__}:", quoted=Quoted(text=str(error), origin=Origin.TOOL))
