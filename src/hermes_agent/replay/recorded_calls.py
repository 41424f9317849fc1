"""Records tool calls: wraps the toolbox, hooks and call context of an agent."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Literal, cast

from hermes_agent.agent.agent import Hook, Proposed, Toolbox
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import GoingInCircles, HermesError, ToolError
from hermes_agent.core.messages import ToolSchema
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Question, Tool
from hermes_agent.replay.cassette import digest
from hermes_agent.replay.lines import Called, Planned, noted
from hermes_agent.replay.tracks import RecordedTrack

Moment = Literal["asks", "uses", "may_run", "ends"]


class RecordedCalls:
    """Records the tool calls of one session; `stops` tracks what a stop can cancel."""

    def __init__(self, track: RecordedTrack) -> None:
        self.stops = track.stops
        self._track = track
        self._planned: set[str] = set()
        self._progress: defaultdict[str, list[str]] = defaultdict(list)

    def toolbox(self, toolbox: Toolbox) -> Toolbox:
        """Wrap a toolbox to record the facts of calls."""
        return _RecordedToolbox(toolbox, self)

    def around(self, hooks: Sequence[Hook]) -> Hook:
        """Wrap all hooks as one that records the results of calls."""
        return _RecordedHooks(hooks, self)

    def context(self, context: CallContext) -> CallContext:
        """Wrap a call's context to record its questions and progress."""
        return cast("CallContext", _RecordedContext(context, self))

    def planned(self, line: Planned) -> None:
        """Record the facts of a call, once."""
        if line.id not in self._planned:
            self._planned.add(line.id)
            self._track.file.add(line)

    def id_of(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Digest that identifies a call."""
        return digest([name, arguments], self._track.file.redact)

    def progress(self, call: str, text: str) -> None:
        """Note a progress line."""
        self._progress[call].append(text)

    def came(self, moment: Moment, call: str, tool: str = "", **more: Any) -> None:  # noqa: ANN401  fields of `Called`
        """Record an event of the call."""
        self._track.tick()
        self._track.add(Called(track=self._track.name, call=call, moment=moment, tool=tool, **more))

    def ends(self, call: str, tool: str, arguments: Mapping[str, Any], came: Answer | HermesError | None) -> None:
        """Record the result of the call; None if it was cancelled."""
        self.stops.left(call)
        end = {"answer": came} if isinstance(came, Answer) else {"error": noted(came)} if came is not None else {}
        progress = tuple(self._progress.pop(call, ()))
        self.came("ends", call, tool, arguments=arguments, progress=progress, **end)


def call_of(context: CallContext) -> str:
    """The call's id: its key without the session."""
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
        """Run the tool; its result is recorded after all hooks have seen it."""
        try:
            await self.calls.stops.entered(call_of(context))
            return await self.tool.run(arguments, self.calls.context(context))
        except asyncio.CancelledError:
            self.calls.ends(call_of(context), self.tool.schema.name, arguments, None)
            raise


@dataclass(frozen=True, slots=True)
class _RecordedContext:
    """A `CallContext`: another one, what goes through it recorded."""

    context: CallContext
    calls: RecordedCalls

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever the context has
        return getattr(self.context, name)

    def progress(self, text: str) -> None:
        self.calls.progress(call_of(self.context), text)
        self.context.progress(text)

    async def ask(self, question: Question) -> str:
        await self.calls.stops.passed()
        self.calls.came("asks", call_of(self.context), question=question)
        return await self.context.ask(question)

    def delegating(self, goals: Mapping[str, str]) -> AbstractAsyncContextManager[None]:
        return self.context.delegating(goals)

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        await self.calls.stops.passed()
        self.calls.came("uses", call_of(self.context), name, arguments=arguments)
        return await self.context.use(name, arguments)


@dataclass(frozen=True, slots=True)
class _RecordedHooks:
    """All hooks of an agent as one that records each call's result."""

    hooks: Sequence[Hook]
    calls: RecordedCalls

    async def before_call(self, proposed: Proposed) -> None:
        """Run each hook. Records the end of a call that a hook refuses or a stop cancels, since `after_call` does
        not see it."""
        inside = replace(proposed, context=self.calls.context(proposed.context))
        try:
            await self.calls.stops.entered(proposed.call.id)
            for hook in self.hooks:
                await hook.before_call(inside)
            await self.calls.stops.passed()
        except GoingInCircles as error:
            self._ends(proposed, error)
            raise
        except asyncio.CancelledError:
            self._ends(proposed, None)
            raise
        self.calls.came("may_run", proposed.call.id)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """Run each hook and record the resulting answer."""
        try:
            for hook in reversed(self.hooks):
                answer = await hook.after_call(proposed, answer)
            await self.calls.stops.passed()
        except asyncio.CancelledError:
            self._ends(proposed, None)
            raise
        self._ends(proposed, answer)
        return answer

    def _ends(self, proposed: Proposed, came: Answer | HermesError | None) -> None:
        self.calls.ends(proposed.call.id, proposed.tool.schema.name, proposed.arguments, came)
