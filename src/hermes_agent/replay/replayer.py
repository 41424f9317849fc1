"""Replays a cassette: `Replayer` takes models, tools, time and ids from the recording, `LiveReplayer` switches to
the real model and tools at a given step, with real time and ids throughout; their options, prompt tail, toolbox and
hooks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, get_args

from hermes_agent.agent.agent import Agent, Hook, Proposed, Toolbox
from hermes_agent.agent.prompt import Environment, TailSource
from hermes_agent.core.clock import Clock, Ids, RandomIds, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Location
from hermes_agent.core.errors import CassetteError, HermesError
from hermes_agent.core.events import Outcome
from hermes_agent.core.messages import Model, Origin
from hermes_agent.core.spending import Budget
from hermes_agent.core.tool import Answer, CallContext, Tool
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.cassette import Cassette, Questions, Redact
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
    TrustLooked,
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
from hermes_agent.replay.seam import Live, Look, RunLedger, RunSeam, Schemas, Seam
from hermes_agent.replay.tracks import ReplayedGate, ReplayedTrack, TapeClock, ids_of
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session

JUDGE = "judge"
"""The purpose of what is asked about commands."""

SIDE_BY_SIDE = 10_000
"""Calls at a time: none waits for a place, since their order is that of the recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Options of a replay.

    - default: strict; `nearest`: loose matching;
    - `live_from`: first step that asks the real model and runs real tools; with `model` alone, that model answers
      throughout and tools are replayed;
    - `driven`: messages and stops come from the recording too;
    - `database`: where a replay without live parts keeps its rows; empty: a temporary folder.
    """

    nearest: bool = False
    live_from: int | None = None
    model: str = ""
    driven: bool = False
    database: str = ""

    @property
    def is_live(self) -> bool:
        """Whether a real model is asked at some point; then time and ids are real, and costs count."""
        return self.live_from is not None or bool(self.model)


class Player(Seam):
    """Base of `Replayer` and `LiveReplayer`: an interface to the world (`Seam`) that maps sessions to the tracks of
    a cassette. The next system of this process can continue with it."""

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
        """The track of a session: the nth new session maps to the nth recorded one."""
        number = self._names.setdefault(session, str(len(self._names) + 1))
        name = f"{number}/{purpose}" if purpose else number
        if name not in self._tracks:
            skipped: tuple[type[Turn], ...] = () if self.how.driven else (*get_args(Outside), MailRead)
            lines = self.cassette.turns(name)
            self._tracks[name] = ReplayedTrack(name, self.cassette.header.seed, lines, skipped)
        return self._tracks[name]

    def bind(self, session: str, track: str) -> None:
        """Map a session to this track."""
        self._names[session] = track

    def made(self, session: Session) -> None:
        """Map a new session to the next recorded one."""
        self.track(session.id)

    def questions(self, track: ReplayedTrack) -> Questions:
        """The request comparison of a track."""
        return self._questions.setdefault(track.name, Questions(self.cassette, self.redact))

    def toolbox(self, result: Result, own: Toolbox) -> Toolbox:
        """A toolbox that answers from the recording."""
        return ReplayedToolbox(cassette=self.cassette, result=result, redact=self.redact, own=own)


class Replayer(Player):
    """Replays a cassette with its recorded time, ids, model answers and tool results; nothing real is asked or run."""

    def __init__(self, cassette: Cassette, how: Replay) -> None:
        seed = cassette.header.seed
        self._clock = TapeClock(cassette.header.at, cassette.header.t)
        super().__init__(cassette, how, self._clock, ids_of(seed, "process"))
        self.store_ids = ids_of(seed, "store")
        self._begun: dict[str, RunBegun] = {}
        self._books: dict[str, RunLedger] = {}
        self._arrivals = [line for line in cassette.lines if isinstance(line, Arrived)]
        self._told: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
        self._trusted: defaultdict[str, dict[tuple[str, ...], list[bool]]] = defaultdict(dict)
        for line in cassette.lines:
            if isinstance(line, RecordedSection):
                self._told[line.track].setdefault(line.name, []).append(line.words)
            if isinstance(line, TrustLooked):
                self._trusted[line.track].setdefault(line.paths, []).append(line.trusted)
        self._look_ahead()

    def own(self, session: str, purpose: str = "") -> RunSeam:
        """The recording's clock and ids, and, if `driven`, its mail and stops; otherwise all mail is read."""
        track = self.track(session, purpose)
        asked = not track.is_empty
        if not self.how.driven:
            return RunSeam(clock=track.clock, ids=track.ids, asked=asked)
        return RunSeam(clock=track.clock, ids=track.ids, gate=ReplayedGate(track), when=track.when, asked=asked)

    def made(self, session: Session) -> None:
        """Map a new session to the next recorded one."""
        super().made(session)
        self._look_ahead()

    def arrives(self, line: Arrived) -> None:
        """Set the next message to be accepted."""
        self._arrivals.remove(line)
        self._arrivals.insert(0, line)

    def arrival(self) -> float:
        """The recorded arrival time of the message being accepted; advances the clock to the next one."""
        at = self._arrivals.pop(0).at if self._arrivals else self.clock.now()
        self._look_ahead()
        return at

    async def start_run(self, session: Session, store: Store) -> None:  # noqa: ARG002  the seam's shape
        """Start a run at its recorded place."""
        await self.begin(session.id)

    async def begin(self, session: str) -> None:
        """Start a run with the recorded limits. Raises the recorded error if it could not start."""
        track = self.track(session)
        line = await track.turn(RunBegun, lambda _line: True, f"a run of session {session} begins")
        track.ids.restart()
        if line.error is not None:
            raise raised(line.error)
        self._begun[session] = line

    async def ended(self, session: str, outcome: Outcome, number: int, *, released: bool) -> None:  # noqa: ARG002  told afterwards
        """End the run at its recorded place, if the recording has one."""
        track = self.track(session)
        track.unstuck()
        if track.ahead(RunOver, lambda _line: True) is not None:
            await track.turn(RunOver, lambda _line: True, f"a run of session {session} ends")

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:  # noqa: ARG002  nothing is live
        """The replayed model, strict or nearest."""
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
        """The replayed tool calls of a session."""
        own, judged = self.track(session, JUDGE), None
        if not own.is_empty and session in self._books:
            book = self._books[session].by(own.clock)
            judged = Judge(calls=self.track(session), own=own, cassette=self.cassette, ledger=book).judge
        return StrictCalls(self.track(session), cuts=self.how.driven, judged=judged)

    async def environment(self, session: str, look: Look) -> Environment:  # noqa: ARG002  the seam's shape
        """The recorded environment. Raises `CassetteError` if there is none."""
        found = self.cassette.environment.get(self.track(session).name)
        if found is None:
            raise CassetteError("The recording has no prompt for this session: it ends before the first question.")
        return found.facts

    def offered(self, session: str, tools: Schemas) -> Schemas:
        """The process's own tools, or, if `driven`, the recorded ones."""
        found = self.cassette.environment.get(self.track(session).name)
        return tools if found is None or not self.how.driven else found.tools or tools

    def tail(self, session: str, sources: Sequence[TailSource]) -> Sequence[TailSource]:
        """The recorded tail texts."""
        told = self._told[self.track(session).name]
        labels = {each.name: each.origin for each in sources}
        return [
            ReplayedSource(name=name, told=told.get(name, []), origin=labels.get(name, Origin.TOOL))
            for name in told or labels
        ]

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent with the recorded limits and replayed tool calls."""
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
            labels=ReplayedLabels(self._trusted[self.track(session).name]),
        )

    def _look_ahead(self) -> None:
        """Set the process's clock to the arrival of the next message."""
        if self._arrivals:
            self._clock.set(self._arrivals[0].inbound.received, self._clock.monotonic())


class LiveReplayer(Player):
    """Replays a cassette in real time: models answer from it up to a step, then for real."""

    def __init__(self, cassette: Cassette, how: Replay) -> None:
        super().__init__(cassette, how, SystemClock(), RandomIds())
        self._models: dict[str, LiveFrom] = {}

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:
        """The recorded steps, then the real model; one position per session across runs."""
        track = self.track(session, purpose)
        steps = [(asked, each) for asked, each in self.cassette.steps if each is not None and asked.track == track.name]
        made = LiveFrom(steps, self.questions(track), await live(ledger), self.how.live_from or 1)
        if before := self._models.get(track.name):
            made.go_on_from(before)
        self._models[track.name] = made
        return made

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent; its tool calls are replayed while its model is."""
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
    """Build the player for these options."""
    return LiveReplayer(cassette, how) if how.is_live else Replayer(cassette, how)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedSource:
    """Source of the prompt's tail that repeats its recorded texts, and at their end the last one."""

    name: str
    told: list[str]
    origin: Origin

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  the recording knows
        """The next recorded text."""
        return self.told.pop(0) if len(self.told) > 1 else "".join(self.told)


@dataclass(frozen=True, slots=True)
class ReplayedLabels:
    """`agent.Labels` that say what was recorded; of files never looked at, that they are not the workspace's."""

    trusted: dict[tuple[str, ...], list[bool]]

    async def is_trusted(self, paths: Sequence[str], said: str = "") -> bool:  # noqa: ARG002 - the Protocol's shape
        """What the recording says next, and at its end the last."""
        found = self.trusted.get(tuple(paths), [False])
        return found.pop(0) if len(found) > 1 else found[0]

    async def doubt(self, since: float, until: float) -> None:
        """Nothing changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Replays only the usage rows of the model that judges commands, each before the tool call that it judged; no
    model is asked, since its decisions are already in the recorded calls."""

    calls: ReplayedTrack
    own: ReplayedTrack
    cassette: Cassette
    ledger: Ledger

    async def judge(self, context: CallContext) -> None:
        """Write the rows that belong before this call."""
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
    """Toolbox that uses the recorded tools, and the real ones once the replay is live."""

    is_live: Callable[[], bool]
    recorded: Toolbox
    own: Toolbox

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Mapping[str, Any]]:
        """As `Toolbox`."""
        return (self.own if self.is_live() else self.recorded).resolve(name, arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Wraps a hook, which is called only while `needed` is true."""

    hook: Hook
    needed: Callable[[], bool]

    async def before_call(self, proposed: Proposed) -> None:
        """As the hook."""
        if self.needed():
            await self.hook.before_call(proposed)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """As the hook."""
        return await self.hook.after_call(proposed, answer) if self.needed() else answer
