"""The replayer: models, tools, time and ids come from a cassette."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from hermes_agent.agent.agent import Agent, Toolbox
from hermes_agent.agent.compaction.settings import CompactionSettings
from hermes_agent.agent.hooks import Hook, Proposed
from hermes_agent.agent.prompt import Environment
from hermes_agent.agent.tail import TailSource
from hermes_agent.core.budget import Budget
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Location
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Outcome
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.model import Model
from hermes_agent.core.records import revive
from hermes_agent.core.tool import Answer, CallContext, Tool
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.cassette.lines import Answered, Asked, Called, RunBegun
from hermes_agent.replay.cassette.mail import ReplayedGate
from hermes_agent.replay.cassette.playing import Player
from hermes_agent.replay.cassette.reading import Cassette
from hermes_agent.replay.cassette.recorded_calls import call_of
from hermes_agent.replay.cassette.redacting import Redact
from hermes_agent.replay.cassette.replayed_calls import Calls, ReplayedToolbox
from hermes_agent.replay.cassette.replayed_model import LiveFrom, played
from hermes_agent.replay.cassette.stops import ReplayedStops
from hermes_agent.replay.cassette.tracks import ReplayedTrack
from hermes_agent.replay.ledger import RunLedger
from hermes_agent.replay.seam import Live, Look, ReplaySeam, RunSeam, Schemas
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session

JUDGE = "judge"
"""The purpose of what is asked about commands."""

SIDE_BY_SIDE = 10_000
"""Calls at a time: none waits for a place, since their order is that of the recording."""


class Replayer:
    """A `Seam` that plays a cassette, with nothing live in it."""

    def __init__(self, player: Player, redact: Redact) -> None:
        self._player = player
        self._redact = redact
        self._begun: dict[str, RunBegun] = {}
        self._books: dict[str, RunLedger] = {}
        self.clock: Clock = player.clock
        self.ids: Ids = player.ids

    def own(self, session: str, purpose: str = "") -> RunSeam:
        """Time, ids and mail of the recording; where nothing but answers comes from it, all mail is found."""
        track = self._player.track(session, purpose)
        asked = not track.is_empty
        if not self._player.how.driven:
            return RunSeam(clock=track.clock, ids=track.ids, asked=asked)
        when = ReplayedStops(track).when
        return RunSeam(clock=track.clock, ids=track.ids, gate=ReplayedGate(track), when=when, asked=asked)

    def made(self, session: Session) -> None:
        """A session was made: it stands for the next one of the recording."""
        self._player.made(session.id)

    def arrival(self) -> float:
        """When the message came in, in the recording."""
        return self._player.arrival()

    def arrived(self, session: str, inbound: Inbound, at: float) -> None:
        """Nothing is kept."""

    async def changed(self, session: str, store: Store, since: int | None = None) -> None:
        """Nothing is kept."""

    async def start_run(self, session: Session, store: Store) -> None:  # noqa: ARG002  the Protocol's shape
        """A run begins, as it did then."""
        self._begun[session.id] = await self._player.begin(session.id)

    def refused(self, session: str, error: HermesError) -> None:
        """Nothing is kept."""

    async def ended(self, session: str, outcome: Outcome, number: int, *, released: bool) -> None:  # noqa: ARG002  told afterwards
        """The run is over, as it was then."""
        await self._player.over(session)

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:
        """What answers from the recording."""
        if purpose and isinstance(ledger, RunLedger):
            self._player.track(session, purpose).within(self._player.track(session))
        elif isinstance(ledger, RunLedger):
            self._books[session] = ledger
        return await self._player.model(session, purpose, self._redact, ledger, live)

    async def environment(self, session: str, look: Look) -> Environment:  # noqa: ARG002  the Protocol's shape
        """What was found then."""
        found: Environment = revive(Environment, self._player.environment(session))
        return found

    def offered(self, session: str, tools: Schemas) -> Schemas:
        """The process's own tools; where all comes from the recording, those that were offered then."""
        return self._player.offered(session) or tools if self._player.how.driven else tools

    def tail(self, session: str, sources: Sequence[TailSource]) -> Sequence[TailSource]:
        """What was told then."""
        names = self._player.names_told(session) or [each.name for each in sources]
        return [ReplayedSource(name=name, player=self._player) for name in names]

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent with the recorded limits; its calls get their recorded results."""
        begun, calls = self._begun[session], self._player.calls(session)
        compactor = agent.compactor
        if compactor is not None and begun.compaction:
            compactor = replace(compactor, settings=revive(CompactionSettings, begun.compaction))
        return replace(
            agent,
            compactor=compactor,
            tools=ReplayedToolbox(cassette=self._player.cassette, calls=calls, redact=self._redact, own=agent.tools),
            hooks=(Permitted(calls=calls, judge=self._judge(session)),),
            budget=Budget(limits=begun.limits),
            effort=begun.effort,
            max_parallel=SIDE_BY_SIDE,
            attended=self._player.cassette.header.process.attended,
            location=None,  # Nothing is begun anywhere.
        )

    def _judge(self, session: str) -> Judge | None:
        own = self._player.track(session, JUDGE)
        if own.is_empty:
            return None
        book = self._books[session].by(own.clock)
        return Judge(calls=self._player.track(session), own=own, cassette=self._player.cassette, ledger=book)


class LiveReplayer(ReplaySeam):
    """A live `Seam` whose models answer from a cassette up to a step; `runs_tools` says whether tools run then."""

    def __init__(self, player: Player, redact: Redact, clock: Clock, ids: Ids) -> None:
        super().__init__(clock, ids)
        self._player = player
        self._redact = redact
        self._models: dict[str, Model] = {}

    def made(self, session: Session) -> None:
        """A session was made: it stands for the next one of the recording."""
        self._player.made(session.id)

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:
        """The recording's steps, then the real model; for a session it is the same one in every run."""
        key = f"{session}/{purpose}"
        made = await self._player.model(session, purpose, self._redact, ledger, live)
        before = self._models.get(key)
        if isinstance(made, LiveFrom) and isinstance(before, LiveFrom):
            made.go_on_from(before)
        self._models[key] = made
        return made

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent; its calls get recorded results as long as its model's answers are recorded ones."""
        model = self._models.get(f"{session}/")

        def is_live() -> bool:
            return self._player.how.runs_tools and isinstance(model, LiveFrom) and model.is_live

        async def location(workspace: str) -> Location:
            return await agent.location(workspace) if agent.location is not None and is_live() else NOWHERE

        calls = self._player.calls(session)
        recorded = ReplayedToolbox(cassette=self._player.cassette, calls=calls, redact=self._redact, own=agent.tools)
        switching = Switching(is_live=is_live, recorded=recorded, own=agent.tools)
        hooks = tuple(When(hook=hook, needed=is_live) for hook in agent.hooks)
        return replace(agent, tools=switching, hooks=hooks, location=location)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedSource:
    """A source of the tail that says what it said then."""

    name: str
    player: Player

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  the recording knows
        """What it said at this place of the recording."""
        return self.player.section_text(session, self.name)


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
class Permitted:
    """A hook that says of a call what was said in the recording; `judge` is None where none was asked."""

    calls: Calls
    judge: Judge | None = None

    async def before_call(self, proposed: Proposed) -> None:
        """Raise what kept the call from being run."""
        if self.judge is not None:
            await self.judge.judge(proposed.context)
        await self.calls.permit(proposed.context)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """The answer that the call had in the end: every hook has seen it then."""
        return await self.calls.final(proposed.context, answer)


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
