"""The recorder: everything runs as it does without one, and is written to a cassette."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.hooks import Hook, Proposed
from hermes_agent.agent.prompt import Environment
from hermes_agent.agent.tail import TailSource
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import GoingInCircles, HermesError
from hermes_agent.core.events import Outcome
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.model import Model
from hermes_agent.core.tool import Answer
from hermes_agent.providers.broker import Ledger
from hermes_agent.replay.cassette.lines import Arrived, RecordedSection, RunOver, Seen
from hermes_agent.replay.cassette.mail import RecordedGate
from hermes_agent.replay.cassette.recorded_calls import RecordedCalls
from hermes_agent.replay.cassette.recording import Recorder
from hermes_agent.replay.ledger import RunLedger
from hermes_agent.replay.seam import Live, Look, RunSeam, Schemas
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session


class RecordingSeam:
    """A `Seam` that writes a cassette."""

    def __init__(self, recorder: Recorder) -> None:
        self.clock: Clock = recorder.clock
        self.ids: Ids = recorder.ids
        self._recorder = recorder
        self._offered: dict[str, Schemas] = {}

    def own(self, session: str, purpose: str = "") -> RunSeam:
        """A clock that stands still between the things that come in, and ids of the recording."""
        track = self._recorder.track(session, purpose)
        stops, gate = self._recorder.stops(session), RecordedGate(self._recorder.file, track)
        return RunSeam(clock=track.clock, ids=track.ids, gate=gate, when=stops.when)

    def made(self, session: Session) -> None:
        """A session was made."""
        self._recorder.made(session)

    def arrival(self) -> float:
        """Now."""
        return self.clock.now()

    def arrived(self, session: str, inbound: Inbound, at: float) -> None:
        """A message is in the inbox."""
        self._recorder.add(Arrived(track=self._recorder.name(session), at=at, inbound=inbound))

    async def changed(self, session: str, store: Store, since: int | None = None) -> None:
        """A command changed the session."""
        await self._recorder.changed(session, store, since)

    async def start_run(self, session: Session, store: Store) -> None:
        """A run begins."""
        await self._recorder.start_run(session, store)

    def refused(self, session: str, error: HermesError) -> None:
        """It cannot."""
        self._recorder.refused(session, error)

    async def ended(self, session: str, outcome: Outcome, number: int, *, released: bool) -> None:
        """The run is over."""
        name = self._recorder.name(session)
        self._recorder.stops(session).over()
        self._recorder.add(RunOver(track=name, outcome=outcome, number=number, released=released))

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:
        """The model, its exchanges recorded."""
        return await self._recorder.model(session, purpose, ledger, live, in_run=isinstance(ledger, RunLedger))

    async def environment(self, session: str, look: Look) -> Environment:
        """What is found, recorded."""
        found = await look()
        tools = self._offered.get(session, ())
        self._recorder.add(Seen(track=self._recorder.name(session), facts=asdict(found), tools=tools))
        return found

    def offered(self, session: str, tools: Schemas) -> Schemas:
        """The process's own tools, recorded with the surroundings."""
        self._offered[session] = tools
        return tools

    def tail(self, session: str, sources: Sequence[TailSource]) -> Sequence[TailSource]:  # noqa: ARG002  the Protocol's shape
        """The sources, what they say recorded."""
        return [RecordedSource(source=each, recorder=self._recorder) for each in sources]

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent, its calls recorded."""
        compaction = {} if agent.compactor is None else asdict(agent.compactor.settings)
        self._recorder.begun(session, agent.budget.limits, agent.effort, compaction=compaction)
        calls = self._recorder.calls(session)
        return replace(agent, tools=calls.toolbox(agent.tools), hooks=(RecordedHooks(hooks=agent.hooks, calls=calls),))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSource:
    """A source of the tail, what it says recorded."""

    source: TailSource
    recorder: Recorder

    @property
    def name(self) -> str:
        """As the source's."""
        return self.source.name

    async def words(self, session: str, heard: str) -> str:
        """As the source says it."""
        words = await self.source.words(session, heard)
        self.recorder.add(RecordedSection(track=self.recorder.name(session), name=self.name, words=words))
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHooks:
    """All hooks of an agent as one, what comes of the call recorded."""

    hooks: tuple[Hook, ...]
    calls: RecordedCalls

    async def before_call(self, proposed: Proposed) -> None:
        """Ask each hook. A run that ends here, or is ended, has no answer that `after_call` would see."""
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
        self.calls.may_run(proposed.call.id)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """What the hooks make of the answer is what came of the call."""
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
