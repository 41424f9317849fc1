"""The seam between runs and the world; `Recorder` and `Replayer` are others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.mailbox import Gate, OpenGate
from hermes_agent.agent.prompt import Environment
from hermes_agent.agent.stop import When, at_once
from hermes_agent.agent.tail import TailSource
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Outcome
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.model import Model, ToolSchema
from hermes_agent.providers.broker import Ledger
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session

Live = Callable[[Ledger], Awaitable[Model]]
"""Makes the model that is really asked, writing into this book."""
Schemas = tuple[ToolSchema, ...]
Look = Callable[[], Awaitable[Environment]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeam:
    """What a session, or a purpose beside it, has of its own: its time, its ids, which mail it finds, and when a stop
    strikes. `asked` says of a purpose in a replay whether a model was asked for it; None: whoever is configured may
    be."""

    clock: Clock
    ids: Ids
    gate: Gate = field(default_factory=OpenGate)
    when: When = at_once
    asked: bool | None = None


class Seam:
    """What stands between a run and the world; this one is the world as it is.

    - `clock` and `ids` are those of the process, `own` those of one session, or of what goes on beside it for a
      `purpose`;
    - `made`, `arrived` and `changed` are told what came from outside; `arrival` says when it came; a command that had
      the log to itself has changed what follows the number `since`;
    - `start_run` opens a run, before its `model` is made; both may raise what keeps the run from beginning, and
      `refused` is told of that; `ended` closes it, at that number of the log, not `released` where there is more mail;
    - `environment` finds out the surroundings, `offered` are the tools of a new prompt, `tail` says what is told beside
      each message; `outfit` gives the agent that runs.
    """

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self.clock = clock
        self.ids = ids

    def own(self, session: str, purpose: str = "") -> RunSeam:  # noqa: ARG002  the Protocol's shape
        """The machine's clock, the process's ids."""
        return RunSeam(clock=self.clock, ids=self.ids)

    def made(self, session: Session) -> None:
        """Nothing is kept."""

    def arrival(self) -> float:
        """Now."""
        return self.clock.now()

    def arrived(self, session: str, inbound: Inbound, at: float) -> None:
        """Nothing is kept."""

    async def changed(self, session: str, store: Store, since: int | None = None) -> None:
        """Nothing is kept."""

    async def start_run(self, session: Session, store: Store) -> None:
        """Nothing is needed."""

    def refused(self, session: str, error: HermesError) -> None:
        """Nothing is kept."""

    async def ended(self, session: str, outcome: Outcome, number: int, *, released: bool) -> None:
        """Nothing is needed."""

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:  # noqa: ARG002  the Protocol's shape
        """The model itself."""
        return await live(ledger)

    async def environment(self, session: str, look: Look) -> Environment:  # noqa: ARG002  the Protocol's shape
        """What is found."""
        return await look()

    def offered(self, session: str, tools: Schemas) -> Schemas:  # noqa: ARG002  the Protocol's shape
        """The process's own tools."""
        return tools

    def tail(self, session: str, sources: Sequence[TailSource]) -> Sequence[TailSource]:  # noqa: ARG002  the Protocol's shape
        """The sources themselves."""
        return sources

    def outfit(self, session: str, agent: Agent) -> Agent:  # noqa: ARG002  the Protocol's shape
        """The agent as it is."""
        return agent
