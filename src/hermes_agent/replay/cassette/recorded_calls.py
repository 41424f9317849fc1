"""Tool calls as they are recorded: what they would do, what they ask, and what came of them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Any, Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Location
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.model import ToolSchema
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Question, Tool
from hermes_agent.replay.cassette.lines import Called, Planned
from hermes_agent.replay.cassette.raised import noted
from hermes_agent.replay.cassette.redacting import digest
from hermes_agent.replay.cassette.stops import RecordedStops
from hermes_agent.replay.cassette.tracks import RecordedTrack
from hermes_agent.replay.cassette.writing import CassetteFile


class Toolbox(Protocol):
    """- `resolve` gives the tool and the arguments that a call means, or raises `UnknownTool`."""

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]: ...


class RecordedCalls:
    """Records the calls of one session; `toolbox` is what its run resolves calls with, `stops` are what cuts them
    short."""

    def __init__(self, file: CassetteFile, track: RecordedTrack, stops: RecordedStops) -> None:
        self.stops = stops
        self._file = file
        self._track = track
        self._planned: set[str] = set()
        self._progress: defaultdict[str, list[str]] = defaultdict(list)

    def toolbox(self, toolbox: Toolbox) -> Toolbox:
        """The toolbox, what calls would do recorded."""
        return _RecordedToolbox(toolbox, self)

    def context(self, context: CallContext) -> CallContext:
        """The context of a call, its questions and progress recorded."""
        return _RecordedContext(context, self)

    def planned(self, line: Planned) -> None:
        """A call was looked at."""
        if line.id not in self._planned:
            self._planned.add(line.id)
            self._file.add(line)

    def id_of(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What a call is known by."""
        return digest([name, arguments], self._file.redact)

    def progress(self, call: str, text: str) -> None:
        """The call shows a line."""
        self._progress[call].append(text)

    def asks(self, call: str, question: Question) -> None:
        """The call puts a question to the person."""
        at, t = self._track.tick()
        self._file.add(Called(track=self._track.name, call=call, at=at, t=t, moment="asks", question=question))

    def uses(self, call: str, tool: str, arguments: Mapping[str, Any]) -> None:
        """The call makes another one."""
        at, t = self._track.tick()
        self._file.add(
            Called(track=self._track.name, call=call, at=at, t=t, moment="uses", tool=tool, arguments=arguments)
        )

    def may_run(self, call: str) -> None:
        """Nothing speaks against the call."""
        at, t = self._track.tick()
        self._file.add(Called(track=self._track.name, call=call, at=at, t=t, moment="may_run"))

    def ends(self, call: str, tool: str, arguments: Mapping[str, Any], came: Answer | HermesError | None) -> None:
        """What came of the call; None where it was cut short."""
        self.stops.left(call)
        at, t = self._track.tick()
        self._file.add(
            Called(
                track=self._track.name,
                call=call,
                at=at,
                t=t,
                moment="ends",
                tool=tool,
                arguments=arguments,
                progress=tuple(self._progress.pop(call, ())),
                answer=came if isinstance(came, Answer) else None,
                error=noted(came) if isinstance(came, HermesError) else None,
            )
        )


def call_of(context: CallContext) -> str:
    """The id of the call: its key without the session."""
    return context.key.removeprefix(f"{context.session}-")


@dataclass(frozen=True, slots=True)
class _RecordedToolbox:
    toolbox: Toolbox
    calls: RecordedCalls

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
        id_ = self.calls.id_of(name, arguments)
        try:
            tool, meant = self.toolbox.resolve(name, arguments)
        except ToolError as error:
            self.calls.planned(Planned(id=id_, name=name, error=noted(error)))
            raise
        return _RecordedTool(tool, self.calls, id_, name), meant


@dataclass(frozen=True, slots=True)
class _RecordedTool:
    tool: Tool
    calls: RecordedCalls
    id: str
    name: str

    @property
    def schema(self) -> ToolSchema:
        return self.tool.schema

    @property
    def needs(self) -> frozenset[Capability]:
        return self.tool.needs

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:
        try:
            facts = self.tool.facts(arguments, workspace)
        except ToolError as error:
            self.calls.planned(Planned(id=self.id, name=self.name, error=noted(error)))
            raise
        self.calls.planned(
            Planned(
                id=self.id,
                name=self.name,
                tool=self.tool.schema.name,
                effect=facts.effect,
                paths=facts.paths,
                summary=facts.summary,
            )
        )
        return facts

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        """The tool's answer; what comes of the call is recorded when every hook has seen it."""
        try:
            await self.calls.stops.entered(call_of(context))
            return await self.tool.run(arguments, self.calls.context(context))
        except asyncio.CancelledError:
            self.calls.ends(call_of(context), self.tool.schema.name, arguments, None)
            raise


@dataclass(frozen=True, slots=True)
class _RecordedContext:
    context: CallContext
    calls: RecordedCalls

    @property
    def key(self) -> str:
        return self.context.key

    @property
    def session(self) -> str:
        return self.context.session

    @property
    def workspace(self) -> str:
        return self.context.workspace

    @property
    def speaker(self) -> str:
        return self.context.speaker

    @property
    def speakers(self) -> Set[str]:
        return self.context.speakers

    @property
    def attach(self) -> bool:
        return self.context.attach

    @property
    def begun_at(self) -> Location:
        return self.context.begun_at

    def seconds_left(self) -> float | None:
        return self.context.seconds_left()

    def progress(self, text: str) -> None:
        self.calls.progress(call_of(self), text)
        self.context.progress(text)

    async def ask(self, question: Question) -> str:
        await self.calls.stops.passed()
        self.calls.asks(call_of(self), question)
        return await self.context.ask(question)

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        await self.calls.stops.passed()
        self.calls.uses(call_of(self), name, arguments)
        return await self.context.use(name, arguments)
