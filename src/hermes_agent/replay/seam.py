"""Interface between runs and the world (seam), with the live implementation, and the ledger of a run's model calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.mailbox import Gate, OpenGate
from hermes_agent.agent.prompt import Environment, TailSource
from hermes_agent.agent.stop import When, at_once
from hermes_agent.core.chat import Inbound
from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, LimitReached, LostLease
from hermes_agent.core.events import MessageTaken, Notice, Outcome
from hermes_agent.core.messages import Model, Origin, ToolSchema, said
from hermes_agent.core.spending import Grant, Limit, Rules, day_of
from hermes_agent.providers.broker import CallOpened, CallSettled, Ledger
from hermes_agent.providers.routing.endpoint import Sizes
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.usage import OpenCall, UsageRow

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


GO_EASY = "{warning} What is left is reserved for what matters most: finish that, and say what remains undone."
UNPRICED = "The price of {model} is unknown: what it costs is not counted against `{limits}` (`budget.unknown_price`)."


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Shared state of a process's ledgers: store, clock and spending rules. `unpriced`: models already reported as
    having no price."""

    store: Store
    clock: Clock
    rules: Rules = field(default_factory=Rules)
    sizes: Sizes = field(default_factory=Sizes)
    unpriced: set[str] = field(default_factory=set)

    def within(self, *own: Limit) -> Book:
        """The book with tighter limits (of run or job) for one piece of work."""
        limits = {(limit.scope, limit.purpose): limit for limit in self.rules.limits}
        for limit in own:
            there = limits.get((limit.scope, ""), limit)
            least = _least(there.money, limit.money), _least(there.tokens, limit.tokens)
            limits[limit.scope, ""] = replace(limit, money=least[0], tokens=least[1])
        kept = tuple(each for each in limits.values() if (each.money, each.tokens) != (None, None))
        return replace(self, rules=replace(self.rules, limits=kept))

    def row(self, call: CallOpened, principal: str, job: str = "") -> UsageRow:
        """The usage row of a call that starts now."""
        at = self.clock.now()
        return UsageRow(
            call_id=call.call_id,
            session=call.session,
            run=call.run,
            turn=call.turn,
            purpose=call.purpose,
            provider=call.provider,
            model=call.model,
            credential=call.credential,
            shape=call.shape.text,
            prefix=call.prefix,
            messages=call.messages,
            at=at,
            principal=principal,
            job=job,
            day=day_of(at),
        )

    def unheld(self, call: CallOpened) -> str:
        """A warning that no money limit applies to this call, as its price is unknown; once per process and model,
        else empty."""
        limits = [f"budget.{limit.scope}.money" for limit in self.rules.limits if limit.money is not None]
        name = call.bid.model
        if call.bid.rate is not None or not limits or name in self.unpriced:
            return ""
        self.unpriced.add(name)
        return UNPRICED.format(model=name, limits="`, `".join(limits))


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


class StoredLedger:
    """`Ledger` for calls outside of runs: commits its own transaction before and after each call. They are charged to
    `job` too."""

    def __init__(self, book: Book, principal: str, job: str = "") -> None:
        self._book = book
        self._principal, self._job = principal, job
        self.sizes = book.sizes

    async def open(self, call: CallOpened) -> Grant:
        """Reserve the row and budget of a call. Raises `LimitReached`."""
        row, book = self._book.row(call, self._principal, self._job), self._book
        opened = await book.store.write(
            lambda tx: book.store.usage.reserve(tx, row, call.bid, book.rules), durable=False
        )
        return granted(opened)

    async def complete(self, call: CallSettled) -> None:
        """Complete the row."""
        await self._book.store.write(lambda tx: enter(self._book.store, tx, call), durable=False)


class RunLedger:
    """`Ledger` for the calls of one run: the reservation commits with the log entries before the call, the
    completion with those of the reply."""

    def __init__(self, book: Book, journal: Journal, record: Session) -> None:
        self._book = book
        self._journal = journal
        self._record = record
        self.sizes = book.sizes

    def by(self, clock: Clock) -> RunLedger:
        """The same ledger with rows dated by that clock."""
        return RunLedger(replace(self._book, clock=clock), self._journal, self._record)

    async def open(self, call: CallOpened) -> Grant:
        """Commit the call's reservation and all entries posted before it. Raises `LimitReached`.

        Warns the person, and the agent from its next turn on, when a limit is nearly used up.
        """
        book, journal = self._book, self._journal
        row = book.row(call, self._record.principal, self._record.job)
        made: list[OpenCall] = []

        async def change(tx: Transaction) -> None:
            made[:] = [await book.store.usage.reserve(tx, row, call.bid, book.rules)]

        await journal.commit(changes=[change], durable=False)
        grant = granted(made[0])
        for warning in made[0].warnings:
            told = said(GO_EASY.format(warning=warning), Origin.RUNTIME)
            journal.post(Notice(text=warning, level="warning"), MessageTaken(message=told))
        if unheld := book.unheld(call):
            journal.post(Notice(text=unheld, level="warning"))
        return grant

    async def complete(self, call: CallSettled) -> None:
        """Post the completion; commit it separately if the lease was lost, as the call was paid anyway."""

        async def change(tx: Transaction) -> None:
            await enter(self._book.store, tx, call)

        try:
            self._journal.post(changes=[change])
        except LostLease:
            await self._book.store.write(change)


def granted(opened: OpenCall) -> Grant:
    """The granted budget. Raises the `LimitReached` that refused it."""
    if isinstance(opened.granted, LimitReached):
        raise opened.granted
    return opened.granted


async def enter(store: Store, tx: Transaction, call: CallSettled) -> None:
    """Complete a call's usage row."""
    await store.usage.complete(tx, call.call_id, call.usage, call.cost, call.outcome, call.seconds)
