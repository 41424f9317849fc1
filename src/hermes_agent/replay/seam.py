"""Interface between runs and the world (seam), with the live implementation; `Recorder` and the replayers replace
it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.mailbox import Gate, OpenGate
from hermes_agent.agent.prompt import Environment, TailSource
from hermes_agent.agent.stop import When, at_once
from hermes_agent.core.chat import Inbound
from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Outcome
from hermes_agent.core.messages import Model, ToolSchema
from hermes_agent.providers.broker import Ledger
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session

Live = Callable[[Ledger], Awaitable[Model]]
"""Makes the model that is really asked, writing into this book."""
Schemas = tuple[ToolSchema, ...]
Look = Callable[[], Awaitable[Environment]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeam:
    """What one session, or one of its background purposes, gets from the world: clock, ids, mail gate and the
    timing of stops. `asked`: in a replay, whether a model was asked for the purpose; None: decide by the settings."""

    clock: Clock
    ids: Ids
    gate: Gate = field(default_factory=OpenGate)
    when: When = at_once
    asked: bool | None = None


class Seam:
    """Interface between a run and the world; this class passes everything through live.

    - `clock` and `ids` are the process's, `own` those of one session or of its background `purpose`;
    - `made`, `arrived` and `changed` report outside events; `arrival` gives the arrival time; `since`: the log
      number after which a command with exclusive access wrote;
    - `start_run` opens a run, before its `model` is made; both may raise to prevent the run, which `refused`
      reports; `ended` closes it at a log number, not `released` if more mail waits;
    - `environment` reads the prompt environment, `offered` are the tools of a new prompt, `tail` wraps the prompt
      tail sources; `outfit` prepares the agent.
    """

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self.clock = clock
        self.ids = ids

    def own(self, session: str, purpose: str = "") -> RunSeam:  # noqa: ARG002  the Protocol's shape
        """The real clock and the process's ids."""
        return RunSeam(clock=self.clock, ids=self.ids)

    def made(self, session: Session) -> None:
        """No-op."""

    def arrival(self) -> float:
        """Now."""
        return self.clock.now()

    def arrived(self, session: str, inbound: Inbound, at: float) -> None:
        """No-op."""

    async def changed(self, session: str, store: Store, since: int | None = None) -> None:
        """No-op."""

    async def start_run(self, session: Session, store: Store) -> None:
        """No-op."""

    def refused(self, session: str, error: HermesError) -> None:
        """No-op."""

    async def ended(self, session: str, outcome: Outcome, number: int, *, released: bool) -> None:
        """No-op."""

    async def model(self, session: str, purpose: str, ledger: Ledger, live: Live) -> Model:  # noqa: ARG002  the Protocol's shape
        """The model itself."""
        return await live(ledger)

    async def environment(self, session: str, look: Look) -> Environment:  # noqa: ARG002  the Protocol's shape
        """Read the environment."""
        return await look()

    def offered(self, session: str, tools: Schemas) -> Schemas:  # noqa: ARG002  the Protocol's shape
        """The process's own tools."""
        return tools

    def tail(self, session: str, sources: Sequence[TailSource]) -> Sequence[TailSource]:  # noqa: ARG002  the Protocol's shape
        """The sources unchanged."""
        return sources

    def outfit(self, session: str, agent: Agent) -> Agent:  # noqa: ARG002  the Protocol's shape
        """The agent unchanged."""
        return agent
