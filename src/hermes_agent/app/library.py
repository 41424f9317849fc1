"""Python API of the package: `from hermes_agent import Agent, Tool`, for programs with their own functions."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.system import System
from hermes_agent.core.chat import Conversation, Inbound
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, NoModel
from hermes_agent.core.events import Event, MessageTaken, Outcome, Replied, RunEnded, ToolEnded
from hermes_agent.core.messages import Origin, Text, ToolResult
from hermes_agent.host.late import late
from hermes_agent.host.paths import Home, find_home
from hermes_agent.tools.schema import Unusable, from_function

if TYPE_CHECKING:
    from hermes_agent.replay.recorder import Recorder
    from hermes_agent.replay.replayer import Player

TAPE = "hermes_agent.replay.recorder:tape"
DEMO = "demo/scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A Python function that the model may call.

    `function` may be `def` (it then runs in a thread) or `async def`; its signature becomes the schema.
    `capabilities` says what it needs (`network`, `fs.read`, `fs.write`, `exec`, ...); an agent that was not granted
    them refuses the call. `depends_on` names tools that must have answered first, in this or an earlier run of the
    conversation: within one reply their calls run first, and a call without them is refused.
    """

    name: str
    function: Callable[..., Any]
    description: str = ""
    capabilities: Iterable[str] = ()
    depends_on: Iterable[str] = ()


class ToolRecord(TypedDict):
    """Record of one tool call: input, output, duration in seconds, and the error (None if it succeeded)."""

    tool: str
    input: dict[str, Any]
    output: str
    duration: float
    error: str | None


@dataclass(slots=True)
class AgentState:
    """History of an `Agent`: its session id and its tool calls, oldest first."""

    session: str = ""
    tool_history: list[ToolRecord] = field(default_factory=list)


class RunResult(str):
    """A run's reply: a string that also has the run's `outcome` and number of `turns`."""

    outcome: Outcome
    turns: int

    @classmethod
    def of(cls, ended: RunEnded) -> RunResult:
        """The result of a run."""
        result = cls(ended.text)
        result.outcome, result.turns = ended.outcome, ended.turns
        return result


class Agent:
    """An agent for use in a program: one conversation, continued with each `run`.

    It has the registered tools and the named built-in `toolsets` (`files`, `shell`, ...). `capabilities` grants what
    tools may use (None: whatever those tools declare). `model` is `vendor/model`, empty for the configured one; if
    none is configured and there is no key, the scripted demo model answers, with a warning. `home` holds settings,
    keys and conversations (default HERMES_HOME). Nobody is asked: calls that need approval are refused.
    """

    def __init__(
        self,
        name: str = "hermes",
        *,
        model: str = "",
        home: str | Path | None = None,
        workspace: str | Path = ".",
        toolsets: Iterable[str] = (),
        capabilities: Iterable[str] | None = None,
    ) -> None:
        self.name = name
        self.state = AgentState()
        folder = None if home is None else Path(home).expanduser().absolute()
        self._home = find_home() if folder is None else Home(root=folder, base=folder)
        self._model = model
        self._workspace = str(Path(workspace).expanduser().absolute())
        self._toolsets = tuple(toolsets)
        self._capabilities = None if capabilities is None else tuple(capabilities)
        self._tape: Recorder | Player | None = None
        self._tools: dict[str, Tool] = {}
        self._inputs: dict[str, dict[str, Any]] = {}

    def register_tool(self, tool: Tool) -> None:
        """Add a tool. Raises `HermesError` for a name already taken, a signature without a schema, or circular
        `depends_on`."""
        if tool.name in self._tools:
            raise HermesError(f"A tool called `{tool.name}` is registered already.")
        try:
            from_function(tool.name, tool.function, tool.description, tool.capabilities)
        except Unusable as reason:
            raise HermesError(f"`{tool.name}` cannot be a tool: {reason}.") from reason
        if circle := _circle(tool, self._tools):
            raise HermesError(f"`{tool.name}` cannot be a tool: {' needs '.join(circle)}.")
        self._tools[tool.name] = tool

    def record(self, file: str | Path) -> None:
        """Record all runs from now on into this new file."""
        self._insert(record=str(file))

    def replay(self, file: str | Path, *, nearest: bool = False, live_from: int | None = None) -> None:
        """Answer from a recording from now on: strictly, or with `nearest` from the most similar exchange, or up to
        the step `live_from`. Raises `CassetteError`."""
        self._insert(replay=str(file), nearest=nearest, live_from=live_from)

    def _insert(self, **how: Any) -> None:  # noqa: ANN401 - as `tape` takes them
        self._tape = late(TAPE)(**how)

    def run(self, prompt: str) -> RunResult:
        """Send a prompt and wait for the reply. Raises `HermesError` on failure. Not for use inside an event loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is not None:
            raise HermesError("`Agent.run` waits; inside an event loop use `await agent.arun(...)`.")
        return asyncio.run(self.arun(prompt))

    async def arun(self, prompt: str) -> RunResult:
        """Send a prompt and await the reply. Raises `HermesError` on failure."""
        ended = None
        async with aclosing(self.stream(prompt)) as events:
            async for event in events:
                ended = event
        if not isinstance(ended, RunEnded) or ended.outcome is Outcome.FAILED:
            raise HermesError(ended.text if isinstance(ended, RunEnded) else "The run ended without a result.")
        return RunResult.of(ended)

    async def stream(self, prompt: str) -> AsyncGenerator[Event, None]:
        """Send a prompt and yield every event of the run, `RunEnded` last."""
        options = Options(
            model=self._model,
            queue=f"library:{self.name}",
            attended=False,
            toolsets=self._toolsets,
            capabilities=self._capabilities,
            extra_tools=tuple(
                from_function(tool.name, tool.function, tool.description, tool.capabilities, depends_on=tool.depends_on)
                for tool in self._tools.values()
            ),
            tape=self._tape,
        )
        async with open_system(self._home.ensure(), options) as runtime:
            session, after = await self._begin(runtime, prompt)
            async with aclosing(runtime.hermes.follow(session, after)) as seen:
                async for each in seen:
                    self._remember(each.event)
                    yield each.event

    async def _begin(self, runtime: System, prompt: str) -> tuple[str, int]:
        conversation = Conversation(platform="library", chat=self.name)
        if not self.state.session:
            record = await runtime.hermes.open_session(
                conversation, runtime.owner, workspace=self._workspace, model=self._model_of(runtime), new=True
            )
            self.state.session = record.id
        after = await runtime.store.history.last_number(self.state.session)
        inbound = Inbound(
            source="library",
            source_id=runtime.ids.short(),
            principal=runtime.owner,
            conversation=conversation,
            parts=(Text(text=prompt, origin=Origin.OWNER),),
            received=runtime.clock.now(),
        )
        await runtime.hermes.submit(inbound, self.state.session)
        return self.state.session, after

    def _model_of(self, runtime: System) -> str:
        """The model name; the scripted demo model if none is configured or available."""
        if self._model or self._tape or runtime.model or runtime.settings.model.default:
            return self._model
        try:
            runtime.route()
        except NoModel as reason:
            warnings.warn(f"{reason} Until then the scripted demo model answers.", stacklevel=2)
            return DEMO
        return ""

    def _remember(self, event: Event) -> None:
        match event:
            case MessageTaken():
                self._inputs.clear()
            case Replied(message=message):
                self._inputs.update({call.id: dict(call.arguments) for call in message.tool_calls})
            case ToolEnded(tool=tool, call_id=call_id, message=message, is_error=failed, seconds=seconds):
                output = "".join(part.text for part in message.parts if isinstance(part, ToolResult))
                record = ToolRecord(
                    tool=tool,
                    input=self._inputs.get(call_id, {}),
                    output=output,
                    duration=seconds,
                    error=output if failed else None,
                )
                self.state.tool_history.append(record)
            case _:
                pass


def _circle(new: Tool, known: Mapping[str, Tool]) -> list[str]:
    """The cycle in `depends_on` through this tool, as names; empty if there is none."""
    ways = [[new.name]]
    tools = {**known, new.name: new}
    while ways:
        way = ways.pop()
        for name in tools[way[-1]].depends_on if way[-1] in tools else ():
            if name == new.name:
                return [*way, name]
            if name not in way:
                ways.append([*way, name])
    return []
