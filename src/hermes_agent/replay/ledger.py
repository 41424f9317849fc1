"""Usage ledgers in the store: reserve a row and budget before each model call, and complete it afterwards."""

from __future__ import annotations

from dataclasses import field, replace

from hermes_agent.agent.journal import Journal
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LimitReached, LostLease
from hermes_agent.core.events import MessageTaken, Notice
from hermes_agent.core.messages import Origin, said
from hermes_agent.core.spending import Grant, Limit, Rules, day_of
from hermes_agent.providers.broker import CallOpened, CallSettled
from hermes_agent.providers.routing.endpoint import Sizes
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.usage import OpenCall, UsageRow

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
