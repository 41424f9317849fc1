"""The replayer: models, tools, time and ids come from a cassette."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, get_args

from hermes_agent.agent.agent import Agent, Hook, Proposed, Toolbox
from hermes_agent.agent.prompt import Environment
from hermes_agent.agent.tail import TailSource
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Location
from hermes_agent.core.errors import CassetteError, HermesError
from hermes_agent.core.events import Outcome
from hermes_agent.core.ids import Ids, RandomIds
from hermes_agent.core.model import Model
from hermes_agent.core.spending import Budget
from hermes_agent.core.tool import Answer, CallContext, Tool
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.cassette import Cassette, Questions, Redact
from hermes_agent.replay.ledger import RunLedger
from hermes_agent.replay.lines import (
    Answered,
    Arrived,
    Asked,
    Called,
    MailRead,
    Outside,
    RecordedSection,
    RunBegun,
    RunOver,
    Turn,
    raised,
)
from hermes_agent.replay.recorded_calls import call_of
from hermes_agent.replay.replayed import (
    LiveFrom,
    NearestCalls,
    NearestModel,
    ReplayedToolbox,
    Result,
    StrictCalls,
    StrictModel,
    played,
)
from hermes_agent.replay.seam import Live, Look, RunSeam, Schemas, Seam
from hermes_agent.replay.tracks import ReplayedGate, ReplayedTrack, TapeClock, ids_of
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session

JUDGE = "judge"
"""The purpose of what is asked about commands."""

SIDE_BY_SIDE = 10_000
"""Calls at a time: none waits for a place, since their order is that of the recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How a cassette is replayed.

    Strictly, unless `nearest` or something is live: `live_from` is the first step that is asked for real, with real
    tools; with `model` alone, that model is asked all along and tools are answered from the recording. `driven`: the
    messages and stops come from the recording too, so that nobody else brings any. `database` is where a replay
    without anything live keeps its rows; empty: in a temporary folder.
    """

    nearest: bool = False
    live_from: int | None = None
    model: str = ""
    driven: bool = False
    database: str = ""

    @property
    def is_live(self) -> bool:
        """Whether a real model is asked at some point: then time and ids are those of now, and what it costs counts."""
        return self.live_from is not None or bool(self.model)


class Player(Seam):
    """A `Seam` whose models and tools answer from a cassette; it may outlive the runtime that it is played in, and go
    on with the next one."""

    def __init__(self, cassette: Cassette, how: Replay, clock: Clock, ids: Ids) -> None:
        super().__init__(clock, ids)
        self.cassette = cassette
        self.how = how
        self.redact: Redact = str
        self.store_ids: Ids | None = None
        self._tracks: dict[str, ReplayedTrack] = {}
        self._names: dict[str, str] = {}
        self._questions: dict[str, Questions] = {}

    def track(self, session: str, purpose: str = "") -> ReplayedTrack:
        """The track of a session: the nth session that comes up is the nth one of the recording."""
        number = self._names.setdefault(session, str(len(self._names) + 1))
        name = f"{number}/{purpose}" if purpose else number
        if name not in self._tracks:
            skipped: tuple[type[Turn], ...] = () if self.how.driven else (*get_args(Outside), MailRead)
            lines = self.cassette.turns(name)
            self._tracks[name] = ReplayedTrack(name, self.cassette.header.seed, lines, skipped)
        return self._tracks[name]

    def bind(self, session: str, track: str) -> None:
        """This session is the recording's track of that name."""
        self._names[session] = track

    def made(self, session: Session) -> None:
        """A session was made: it stands for the next one of the recording."""
        self.track(session.id)

    def questions(self, track: ReplayedTrack) -> Questions:
        """What compares the questions of a track with the recorded ones."""
        return self._questions.setdefault(track.name, Questions(self.cassette, self.redact))

    def toolbox(self, result: Result, own: Toolbox) -> Toolbox:
        """The tools, answering from the recording."""
        return ReplayedToolbox(cassette=self.cassette, result=result, redact=self.redact, own=own)


class Replayer(Player):
    """A `Player` with nothing live in it."""

    def __init__(self, cassette: Cassette, how: Replay) -> None:
        seed = cassette.header.seed
        self._clock = TapeClock(cassette.header.at, cassette.header.t)
        super().__init__(cassette, how, self._clock, ids_of(seed, "process"))
        self.store_ids = ids_of(seed, "store")
        self._begun: dict[str, RunBegun] = {}
        self._books: dict[str, RunLedger] = {}
        self._arrivals = [line for line in cassette.lines if isinstance(line, Arrived)]
        self._told: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
        for line in cassette.lines:
            if isinstance(line, RecordedSection):
                self._told[line.track].setdefault(line.name, []).append(line.words)
        self._look_ahead()

    def own(self, session: str, purpose: str = "") -> RunSeam:
        """Time, ids and mail of the recording; where nothing but answers comes from it, all mail is found."""
        track = self.track(session, purpose)
        asked = not track.is_empty
        if not self.how.driven:
            return RunSeam(clock=track.clock, ids=track.ids, asked=asked)
        return RunSeam(clock=track.clock, ids=track.ids, gate=ReplayedGate(track), when=track.when, asked=asked)

    def made(self, session: Session) -> None:
        """A session was made: it stands for the next one of the recording."""
        super().made(session)
        self._look_ahead()

    def arrives(self, line: Arrived) -> None:
        """This message is the next one that is taken in."""
        self._arrivals.remove(line)
        self._arrivals.insert(0, line)

    def arrival(self) -> float:
        """When the message came in that is taken in now; the process's clock goes on to the next one."""
        at = self._arrivals.pop(0).at if self._arrivals else self.clock.now()
        self._look_ahead()
        return at

    async def start_run(self, session: Session, store: Store) -> None:  # noqa: ARG002  the seam's shape
        """A run begins, as it did then."""
        await self.begin(session.id)

    async def begin(self, session: str) -> None:
        """A run begins, with the recorded limits. Raises what kept it from beginning."""
        track = self.track(session)
        line = await track.turn(RunBegun, lambda _line: True, f"a run of session {session} begins")
        track.ids.restart()
        if line.error is not None:
            raise raised(line.error)
        self._begun[session] = line

    async def ended(self, session: str, outcome: Outcome, number: int, *, released: bool) -> None:  # noqa: ARG002  told afterwards
        """The run is over, as it was then; where the recording ends before that, nothing follows anyway."""
        track = self.track(session)
        track.unstuck()
        if track.ahead(RunOver, lambda _line: True) is not None:
            await track.turn(RunOver, lambda _line: True, f"a run of session {session} ends")

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:  # noqa: ARG002  nothing is live
        """What answers from the recording."""
        track, run = self.track(session, purpose), self.track(session)
        if isinstance(ledger, RunLedger):
            if purpose:
                track.within(run)
            else:
                self._books[session] = ledger
        if self.how.nearest:
            return NearestModel(self.cassette, run.clock, self.questions(track), ledger)
        return StrictModel(self.cassette, track, self.questions(track), ledger, cuts=self.how.driven)

    def calls(self, session: str) -> StrictCalls:
        """What answers instead of the tools, and lets calls run or not."""
        own, judged = self.track(session, JUDGE), None
        if not own.is_empty and session in self._books:
            book = self._books[session].by(own.clock)
            judged = Judge(calls=self.track(session), own=own, cassette=self.cassette, ledger=book).judge
        return StrictCalls(self.track(session), cuts=self.how.driven, judged=judged)

    async def environment(self, session: str, look: Look) -> Environment:  # noqa: ARG002  the seam's shape
        """What was found then. Raises `CassetteError` where nothing was recorded."""
        found = self.cassette.environment.get(self.track(session).name)
        if found is None:
            raise CassetteError("The recording has no prompt for this session: it ends before the first question.")
        return found.facts

    def offered(self, session: str, tools: Schemas) -> Schemas:
        """The process's own tools; where all comes from the recording, those that were offered then."""
        found = self.cassette.environment.get(self.track(session).name)
        return tools if found is None or not self.how.driven else found.tools or tools

    def tail(self, session: str, sources: Sequence[TailSource]) -> Sequence[TailSource]:
        """What was told then."""
        told = self._told[self.track(session).name]
        return [ReplayedSource(name=name, told=told.get(name, [])) for name in told or [each.name for each in sources]]

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent with the recorded limits; its calls get their recorded results."""
        begun, calls = self._begun[session], self.calls(session)
        result = NearestCalls(self.cassette).result if self.how.nearest else calls.result
        compactor = agent.compactor
        if compactor is not None and begun.compaction is not None:
            compactor = replace(compactor, settings=begun.compaction)
        return replace(
            agent,
            compactor=compactor,
            tools=self.toolbox(result, agent.tools),
            hooks=() if self.how.nearest else (calls,),
            budget=Budget(limits=begun.limits),
            effort=begun.effort,
            max_parallel=SIDE_BY_SIDE,
            attended=self.cassette.header.process.attended,
            location=None,  # Nothing is begun anywhere.
        )

    def _look_ahead(self) -> None:
        """The process's clock says when the next message was received, for whoever is about to take it in."""
        if self._arrivals:
            self._clock.set(self._arrivals[0].inbound.received, self._clock.monotonic())


class LiveReplayer(Player):
    """A `Player` at the present time: its models answer from the cassette up to a step, and then for real."""

    def __init__(self, cassette: Cassette, how: Replay) -> None:
        super().__init__(cassette, how, SystemClock(), RandomIds())
        self._models: dict[str, LiveFrom] = {}

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:
        """The recording's steps, then the real model; for a session it is the same one in every run."""
        track = self.track(session, purpose)
        steps = [(asked, each) for asked, each in self.cassette.steps if each is not None and asked.track == track.name]
        made = LiveFrom(steps, self.questions(track), await live(ledger), self.how.live_from or 1)
        if before := self._models.get(track.name):
            made.go_on_from(before)
        self._models[track.name] = made
        return made

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent; its calls get recorded results as long as its model's answers are recorded ones."""
        model, runs_tools = self._models.get(self.track(session).name), self.how.live_from is not None

        def is_live() -> bool:
            return runs_tools and model is not None and model.is_live

        async def location(workspace: str) -> Location:
            return await agent.location(workspace) if agent.location is not None and is_live() else NOWHERE

        recorded = self.toolbox(NearestCalls(self.cassette).result, agent.tools)
        switching = Switching(is_live=is_live, recorded=recorded, own=agent.tools)
        hooks = tuple(When(hook=hook, needed=is_live) for hook in agent.hooks)
        return replace(agent, tools=switching, hooks=hooks, location=location)


def player_of(cassette: Cassette, how: Replay) -> Replayer | LiveReplayer:
    """What plays a cassette so."""
    return LiveReplayer(cassette, how) if how.is_live else Replayer(cassette, how)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedSource:
    """A source of the tail that says what it said then; where it said nothing any more, what it said last."""

    name: str
    told: list[str]

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  the recording knows
        """What it said at this place of the recording."""
        return self.told.pop(0) if len(self.told) > 1 else "".join(self.told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """The judge of commands. What it said shows in what came of the calls: only its rows are written again, each before
    the call that it was about goes on."""

    calls: ReplayedTrack
    own: ReplayedTrack
    cassette: Cassette
    ledger: Ledger

    async def judge(self, context: CallContext) -> None:
        """Write down what was asked before this call went on."""
        name = call_of(context)
        ahead = self.calls.ahead(Called, lambda line: line.call == name)
        while ahead is not None and isinstance(line := self.own.coming, Asked | Answered) and line.at <= ahead.at:
            self.own.come(line)
            if isinstance(line, Asked) and (answered := self.cassette.answers.get(line.n)):
                await self._play(answered)

    async def _play(self, answered: Answered) -> None:
        async with aclosing(played(answered.pieces, self.ledger, self.own.clock)) as items:
            with suppress(HermesError):  # the judge failed, and the person was asked
                async for _ in items:
                    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Switching:
    """A toolbox that answers from a recording until something is live."""

    is_live: Callable[[], bool]
    recorded: Toolbox
    own: Toolbox

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
        """As `Toolbox`."""
        return (self.own if self.is_live() else self.recorded).resolve(name, arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A hook that stands around calls only where it is needed."""

    hook: Hook
    needed: Callable[[], bool]

    async def before_call(self, proposed: Proposed) -> None:
        """As the hook."""
        if self.needed():
            await self.hook.before_call(proposed)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """As the hook."""
        return await self.hook.after_call(proposed, answer) if self.needed() else answer
