"""Models and tools that answer from a cassette; recorded tools execute nothing, and `LiveFrom` goes on with the real
model after a given step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import field, replace
from functools import partial
from typing import Any

from hermes_agent.agent.agent import Proposed, Toolbox
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability
from hermes_agent.core.errors import CassetteError, HermesError, LimitReached, RequestDiffers, ToolError
from hermes_agent.core.messages import Delta, Model, ModelRequest, Reply, Through, ToolSchema
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Tool
from hermes_agent.host.tasks import spawn
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.cassette import Cassette, Questions, Redact, digest, likeness
from hermes_agent.replay.lines import (
    Answered,
    Asked,
    Called,
    Piece,
    Planned,
    Raised,
    RowOpened,
    RowSettled,
    Whole,
    failed_call,
    plain_of,
    raised,
)
from hermes_agent.replay.recorded_calls import call_of
from hermes_agent.replay.tracks import ReplayedTrack, TapeClock
from hermes_agent.store.transaction import written

Found = tuple[Asked, Answered]


class RecordedNames:
    """Base of replayed models: the name and context window recorded for a track (empty: for any)."""

    def __init__(self, cassette: Cassette, track: str) -> None:
        found = (asked for asked, _ in cassette.steps if track in ("", asked.track))
        first = next(found, None)
        self.name, self.window = ("replay/nothing", 8_192) if first is None else (first.model, first.window)


class StrictModel(RecordedNames):
    """Model of a strict replay: answers each request with the next recorded answer; a different request raises
    `RequestDiffers`.

    A cancelled answer waits to be cancelled again; with `cuts` False nobody would, and the replay ends.
    """

    def __init__(
        self,
        cassette: Cassette,
        track: ReplayedTrack,
        questions: Questions,
        ledger: Ledger,
        *,
        cuts: bool,
    ) -> None:
        super().__init__(cassette, track.name)
        self._cassette = cassette
        self._track = track
        self._questions = questions
        self._ledger = ledger
        self._cuts = cuts

    async def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`; also raises `CassetteError`."""
        what = f"{request.purpose}, turn {request.turn} of session {request.session}, is asked"
        asked = await self._track.turn(Asked, lambda line: line.purpose == request.purpose, what)
        if words := self._questions.difference(request, asked):
            raise RequestDiffers(f"Step {asked.n}: the request differs from the recorded one in {words}.")
        answered = self._cassette.answers.get(asked.n)
        if answered is None:
            raise CassetteError(f"The recording ends in the middle of step {asked.n}.")
        before, after = _at_the_cut(answered)
        if not answered.cut:
            await self._track.turn(Answered, lambda line: line.n == asked.n, f"step {asked.n} is answered")
        async with aclosing(played(before, self._ledger, self._track.clock)) as items:
            async for item in items:
                yield item
        if not answered.cut:
            return
        if not self._cuts:
            raise CassetteError(f"In the recording, step {asked.n} was stopped here.")
        try:
            await self._track.hang()
        finally:
            async with aclosing(played(after, self._ledger, None)) as rest:
                async for _ in rest:
                    pass
            if self._track.coming is answered:
                self._track.come(answered)


class NearestModel(RecordedNames):
    """Model of a loose replay: answers with the recorded answer to the most similar request of the same purpose,
    preferring unused ones."""

    def __init__(self, cassette: Cassette, clock: TapeClock, questions: Questions, ledger: Ledger) -> None:
        super().__init__(cassette, "")
        self._cassette = cassette
        self._clock = clock
        self._questions = questions
        self._ledger = ledger
        self._given: set[int] = set()

    def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`; also raises `CassetteError`."""
        asked, answered = self._nearest(request)
        self._given.add(asked.n)
        pieces = [
            replace(piece, at=max(piece.at, self._clock.now()), t=max(piece.t, self._clock.monotonic()))
            for piece in answered.pieces
        ]
        return played(pieces, self._ledger, self._clock)

    def _nearest(self, request: ModelRequest) -> Found:
        found = [
            (asked, answered)
            for asked, answered in self._cassette.steps
            if answered is not None and not answered.cut and asked.purpose == request.purpose
        ]
        if not found:
            raise RequestDiffers(f"The recording has no answer for the purpose `{request.purpose}`.")
        return max(
            found,
            key=lambda each: (
                self._questions.likeness(request, each[0]),
                each[0].n not in self._given,
                -each[0].n,
            ),
        )


class LiveFrom(Through):
    """Model that replays recorded steps up to `live_from` and asks the real model from then on."""

    def __init__(self, steps: Sequence[Found], questions: Questions, live: Model, live_from: int) -> None:
        super().__init__(live)
        self._steps = [(asked, answered) for asked, answered in steps if asked.n < live_from and not answered.cut]
        self._questions = questions
        self.is_live = False

    def go_on_from(self, before: LiveFrom) -> None:
        """Continue at the position of the previous run's model."""
        self._steps, self.is_live = before._steps, before.is_live

    def ask(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `core.model.Model`; also raises `CassetteError`."""
        if not self._steps:
            self.is_live = True
            return self._model.ask(request)
        asked, answered = self._steps.pop(0)
        if words := self._questions.said_otherwise(request, asked):
            raise RequestDiffers(f"Step {asked.n}: the request differs from the recorded one in {words}.")
        return played(answered.pieces, None, None)


async def played(
    pieces: Collection[Piece], ledger: Ledger | None, clock: TapeClock | None
) -> AsyncGenerator[Delta | Reply, None]:
    """Stream recorded pieces at their recorded times, and repeat their ledger rows unless `ledger` is None."""
    for piece in pieces:
        if clock is not None:
            clock.set(piece.at, piece.t)
        match piece.item:
            case RowOpened(call=opened):
                if ledger is not None:
                    with suppress(LimitReached):  # what that led to follows in the recording
                        await ledger.open(opened)
            case RowSettled(call=settled):
                if ledger is not None:
                    await ledger.complete(settled)
            case Whole(reply=reply):
                yield reply
            case Raised():
                raise raised(piece.item)
            case delta:
                yield delta


def _at_the_cut(answered: Answered) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """Split a cancelled answer: the pieces before the cancellation, and the ledger rows written after it."""
    pieces, end = answered.pieces, len(answered.pieces)
    while answered.cut and end and isinstance(pieces[end - 1].item, RowSettled):
        end -= 1
    return pieces[:end], pieces[end:]


LIKE_ENOUGH = 0.75
"""How alike (0 to 1) the arguments of a call and of a recorded one must be for its result to stand for it."""


Result = Callable[[str, Mapping[str, Any], CallContext], Awaitable[Answer]]
"""What a call of this tool with these arguments answers."""
Judged = Callable[[CallContext], Awaitable[None]]


class NotRecorded(ToolError):
    """The recording has no result for this tool call, and a replay executes nothing."""

    kind = "not_recorded"


class NotRun(ToolError):
    """Raised where the recording has a result for this tool call although no hook allowed it to run: the replay
    does not run it either."""


class StrictCalls:
    """Hook and tools of a strict replay: each call gets its own recorded events, in recorded order. `judged` is
    awaited before each call."""

    def __init__(self, track: ReplayedTrack, *, cuts: bool, judged: Judged | None = None) -> None:
        self._track = track
        self._cuts = cuts
        self._judged = judged

    async def before_call(self, proposed: Proposed) -> None:
        """Repeat the recorded questions, then allow the call or raise the recorded refusal."""
        context = proposed.context
        if self._judged is not None:
            await self._judged(context)
        line = await self._asked(context)
        if line.moment == "may_run":
            await self._turn(context)
        elif line.error is not None:
            await self._turn(context)
            raise raised(line.error)
        else:
            raise NotRun("The call was not run.")

    async def result(self, tool: str, arguments: Mapping[str, Any], context: CallContext) -> Answer:  # noqa: ARG002  found by its id
        """The recorded answer."""
        line = await self._asked(context)
        return line.answer or Answer(parts=())

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The recorded final answer, at its place in the order, after all hooks."""
        line = await self._turn(proposed.context)
        for text in line.progress:
            proposed.context.progress(text)
        return line.answer or answer

    async def _asked(self, context: CallContext) -> Called:
        """The call's next result, after repeating its questions and nested calls; a cancelled call waits to be
        cancelled again."""
        call, made = call_of(context), list[asyncio.Task[None]]()
        while True:
            ahead = self._track.ahead(Called, lambda line: line.call == call)
            if ahead is not None and ahead.is_cut:
                await self._hang()
            if ahead is not None and ahead.moment in ("may_run", "ends"):
                for each in made:
                    await each
                return ahead
            line = await self._turn(context)
            if line.question is not None:
                await context.ask(line.question)
            elif line.moment == "uses":
                made.append(spawn(_use(line, context), name=f"replayed call {call}"))

    async def _turn(self, context: CallContext) -> Called:
        call = call_of(context)
        return await self._track.turn(Called, lambda line: line.call == call, f"the tool call {call} is made")

    async def _hang(self) -> None:
        """Wait for the recorded stop."""
        if not self._cuts:
            raise CassetteError("In the recording, this call was stopped before it had a result.")
        await self._track.hang()


class NearestCalls:
    """Tools of a loose replay: each call gets the recorded result of the same call, else of the most similar one of
    the same tool."""

    def __init__(self, cassette: Cassette) -> None:
        self._left = [line for line in cassette.lines if isinstance(line, Called) and line.moment == "ends"]

    async def result(self, tool: str, arguments: Mapping[str, Any], context: CallContext) -> Answer:  # noqa: ARG002  found by what it does
        """The recorded answer. Raises `NotRecorded` if no call is similar enough."""
        line = self._nearest(tool, written(plain_of(arguments)))
        if line is None or line.is_cut:
            raise NotRecorded(
                f"The recording holds no result for this call of `{tool}`, and nothing is executed in a replay.",
                hint="Go on with what is known.",
            )
        self._left.remove(line)
        if line.error is not None:
            raise failed_call(line.error)
        assert line.answer is not None  # it is not cut and has no error
        return line.answer

    def _nearest(self, tool: str, arguments: str) -> Called | None:
        best, found = LIKE_ENOUGH, None
        for line in self._left:
            if line.tool == tool:
                recorded = written(plain_of(line.arguments))
                alike = 1.0 if recorded == arguments else likeness(recorded, arguments)
                if alike > best:
                    best, found = alike, line
        return found


async def _use(line: Called, context: CallContext) -> None:
    with suppress(HermesError):  # What came of it is the other call's own end.
        await context.use(line.tool, line.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedToolbox:
    """Toolbox whose tools answer from the recording, with the recorded call facts. `own` gives the facts of
    unrecorded calls."""

    cassette: Cassette
    result: Result
    redact: Redact
    own: Toolbox

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
        """See `agent.Toolbox`."""
        planned = self.cassette.planned.get(digest([name, arguments], self.redact))
        if planned is None:
            tool, meant = self.own.resolve(name, arguments)
            return _Replayed(tool.schema, self.result, tool.facts), meant
        schema = ToolSchema(name=planned.tool or planned.name, description="", parameters={})
        return _Replayed(schema, self.result, partial(_planned_facts, planned)), arguments


@dataclass(frozen=True, slots=True)
class _Replayed:
    schema: ToolSchema
    result: Result
    facts: Callable[[Mapping[str, Any], str], CallFacts]
    needs: frozenset[Capability] = field(default=frozenset())

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        return await self.result(self.schema.name, arguments, context)


def _planned_facts(planned: Planned, _arguments: Mapping[str, Any], _workspace: str) -> CallFacts:
    if planned.error is not None:
        raise failed_call(planned.error)
    return CallFacts(effect=planned.effect, paths=planned.paths, summary=planned.summary)
