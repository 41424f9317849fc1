"""The deck that records: everything is as it is without one, and is written down."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.hooks import Hook, Proposed
from hermes_agent.agent.prompt import Surroundings
from hermes_agent.app.decks.deck import Live, Look, Own, Schemas
from hermes_agent.core.budget import Limits
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError, StoreError
from hermes_agent.core.events import Outcome
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.model import Model
from hermes_agent.core.tool import Answer
from hermes_agent.providers.broker import Ledger
from hermes_agent.providers.cassette.recorded_calls import RecordedCalls
from hermes_agent.providers.cassette.recording import Recorder
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session


class RecordingDeck:
    """A `Deck` that writes a cassette."""

    def __init__(self, recorder: Recorder) -> None:
        self.clock: Clock = recorder.clock
        self.ids: Ids = recorder.ids
        self._recorder = recorder
        self._offered: dict[str, Schemas] = {}

    def own(self, session: str, purpose: str = "") -> Own:
        """A clock that stands still between the things that come in, and ids of the recording."""
        track = self._recorder.track(session, purpose)
        return Own(clock=track.clock, ids=track.ids, gate=self._recorder.gate(session))

    def made(self, session: Session) -> None:
        """A session was made."""
        self._recorder.made(session)

    def arrival(self) -> float:
        """Now."""
        return self.clock.now()

    def arrived(self, session: str, inbound: Inbound, at: float) -> None:
        """A message is in the inbox."""
        self._recorder.arrived(session, inbound, at)

    def stopped(self, session: str, reason: str) -> None:
        """Somebody said stop."""
        self._recorder.stopped(session, reason)

    async def begin(self, session: Session, store: Store) -> None:
        """A run begins."""
        await self._recorder.take_up(session, store)

    def refused(self, session: str, error: HermesError) -> None:
        """It cannot."""
        self._recorder.begun(session, Limits(), "", error)

    async def ended(self, session: str, outcome: Outcome, number: int, *, released: bool) -> None:
        """The run is over."""
        self._recorder.over(session, outcome, number, released=released)

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:
        """The model, its exchanges recorded."""
        return await self._recorder.model(session, purpose, ledger, live)

    async def look(self, session: str, look: Look) -> Surroundings:
        """What is found, recorded."""
        found = await look()
        self._recorder.surroundings(session, asdict(found), self._offered.get(session, ()))
        return found

    def offered(self, session: str, tools: Schemas) -> Schemas:
        """The process's own tools, recorded with the surroundings."""
        self._offered[session] = tools
        return tools

    def outfit(self, session: str, agent: Agent) -> Agent:
        """The agent, its calls recorded."""
        self._recorder.begun(session, agent.budget.limits, agent.effort)
        calls = self._recorder.calls(session)
        return replace(agent, tools=calls.toolbox(agent.tools), hooks=(RecordedHooks(hooks=agent.hooks, calls=calls),))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHooks:
    """All hooks of an agent as one, what comes of the call recorded."""

    hooks: tuple[Hook, ...]
    calls: RecordedCalls

    async def before_call(self, proposed: Proposed) -> None:
        """Ask each hook; a call that may not run has its end."""
        inside = replace(proposed, context=self.calls.context(proposed.context))
        try:
            for hook in self.hooks:
                await hook.before_call(inside)
        except StoreError:
            raise
        except HermesError as error:
            self.calls.ends(proposed.call.id, proposed.tool.schema.name, proposed.arguments, error)
            raise
        self.calls.may_run(proposed.call.id)

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:
        """What the hooks make of the answer is what came of the call."""
        came: Answer | HermesError = answer
        try:
            for hook in reversed(self.hooks):
                answer = await hook.after_call(proposed, answer)
            came = answer
        except StoreError:
            raise
        except HermesError as error:
            came = error
            raise
        finally:
            self.calls.ends(proposed.call.id, proposed.tool.schema.name, proposed.arguments, came)
        return answer
