"""The one writer of a session's log: events are numbered, committed under the lease, then shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from hermes_agent.agent.in_hand import InHand
from hermes_agent.agent.mailbox import Change, Mailbox
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import StoreError
from hermes_agent.core.events import Durable, Entry, Live, Seen
from hermes_agent.core.model import Prefix
from hermes_agent.core.section import Section
from hermes_agent.store.database import Store
from hermes_agent.store.effects import Intent
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Transaction

LINGER = 0.02
"""Seconds that something posted waits for company: a reply, quick reads and the next request share one commit."""


class Spawn(Protocol):
    """Runs work beside its caller and keeps it until it ends (`host.tasks.spawn`)."""

    def __call__(self, work: Coroutine[Any, Any, None], *, name: str) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one call brought: entries with the changes that belong to them, or a live event that comes after them."""

    entries: tuple[Entry, ...] = ()
    changes: tuple[Change, ...] = ()
    live: Live | None = None
    durable: bool = False


Beside = Callable[[Sequence[Entry]], Sequence[Change]]
"""What else belongs into the commit of these entries."""


class Journal:
    """Commits what happens in one run.

    What is posted becomes part of the view at once and of the log in that order, within `LINGER`; what comes in that
    time or while a commit is under way shares the next one. Everything of one call is in one transaction with the
    check of the lease. Events are shown in their order, durable ones when they are committed. A commit that has begun
    is carried through even when its caller is cancelled, so that the view and the log never disagree; after a failure
    (`LostLease`, a full disk) every further call raises it.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        session: Session,
        *,
        clock: Clock,
        show: Callable[[Seen], None],
        spawn: Spawn,
    ) -> None:
        self.session = session
        self.mailbox = Mailbox(store, lease, clock)
        self.in_hand = InHand(told=lease.waits)
        self._store = store
        self._lease = lease
        self._clock = clock
        self._show = show
        self._spawn = spawn
        self._pending: list[Batch] = []
        self._flushing: Awaitable[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure: StoreError | None = None
        self._shown = 0
        self.beside: Beside | None = None

    async def commit(self, *events: Durable, changes: Sequence[Change] = (), durable: bool = True) -> None:
        """Write the events, and what belongs to them; when this returns they are committed, like everything that was
        posted. With `durable` False a power failure may take them back (the death of the process never does)."""
        self.post(*events, changes=changes, durable=durable)
        await self.settled()

    def post(self, *events: Durable, changes: Sequence[Change] = (), durable: bool = False) -> None:
        """Write the events soon, in their order. Nothing may be done to the world on the strength of them before
        `settled`."""
        if self._failure is not None:
            raise self._failure
        now, first, session = self._clock.now(), self.session.number + 1, self.session
        entries = tuple(
            Entry(number=first + offset, run=session.run, at=now, event=event) for offset, event in enumerate(events)
        )
        for entry in entries:
            session.apply(entry)
        self._add(Batch(entries=entries, changes=tuple(changes), durable=durable))

    def live(self, event: Live) -> None:
        """Show an event that is not kept, after those that were posted before it."""
        if self._flushing is None and not self._pending:
            self._show_live(event)
        else:
            self._pending.append(Batch(live=event))

    async def settled(self) -> None:
        """Return when everything that was posted is committed. Raises what kept it from being so."""
        self._begin()
        if self._flushing is not None:
            await asyncio.shield(self._flushing)
        if self._failure is not None:
            raise self._failure

    async def tell_waiting(self) -> None:
        """Have the store know whether the run does nothing but wait for a person, where that has changed: then it is
        not what the program dies of."""
        waits = self.in_hand.waits
        if waits is self.in_hand.told:
            return
        self.in_hand.told = waits
        await self.commit(changes=[lambda tx: self._store.lanes.waits(tx, self._lease, waits)], durable=False)

    def alive(self) -> None:
        """Raise `LostLease` where this process was away for too long; asked right before an effect."""
        self._store.workers.alive(self._lease)

    def intend(self, intent: Intent) -> Change:
        """The effect record of a call, as part of a commit."""
        at = self._clock.now()
        return lambda tx: self._store.effects.intend(tx, self._lease, intent, at)

    def finish_effect(self, call_id: str) -> Change:
        """The effect's end, as part of the commit of its result."""
        return lambda tx: self._store.effects.finish(tx, self._lease, call_id)

    def keep_prefix(self, prefix: Prefix, sections: tuple[Section, ...]) -> Change:
        """The prefix under its hash, and the session's from now on, as part of the commit that freezes it."""

        async def change(tx: Transaction) -> None:
            await self._store.prefixes.put(tx, prefix, sections)
            await self._store.sessions.set_prefix(tx, self.session.id, prefix.hash)

        return change

    def _add(self, batch: Batch) -> None:
        self._pending.append(batch)
        if self._flushing is None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._begin)

    def _begin(self) -> None:
        """Write what is pending, if nobody does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending and self._flushing is None:
            self._flushing = self._spawn(self._flush(), name=f"journal {self.session.id}")

    async def _flush(self) -> None:
        written = False
        try:
            while self._pending:
                batches, self._pending = self._pending, []
                await self._write(batches)
                for batch in batches:
                    self._show_batch(batch)
            written = True
        except StoreError as failure:
            self._failure = failure
        finally:
            self._flushing = None
            if not written and self._failure is None:
                self._failure = StoreError("The log could not be written: logs/hermes.log says why.")

    async def _write(self, batches: list[Batch]) -> None:
        entries = [entry for batch in batches for entry in batch.entries]
        changes = [change for batch in batches for change in batch.changes]
        if self.beside is not None:
            changes += self.beside(entries)

        async def write(tx: Transaction) -> None:
            await self._store.history.append(tx, self._lease, entries)
            for change in changes:
                await change(tx)

        if entries or changes:
            await self._store.write(write, durable=any(batch.durable for batch in batches))

    def _show_batch(self, batch: Batch) -> None:
        for entry in batch.entries:
            self._shown = entry.number
            self._show(
                Seen(session=self.session.id, number=entry.number, run=entry.run, at=entry.at, event=entry.event)
            )
        if batch.live is not None:
            self._show_live(batch.live)

    def _show_live(self, event: Live) -> None:
        session, number = self.session, self._shown or self.session.number
        self._show(Seen(session=session.id, number=number, run=session.run, at=self._clock.now(), event=event))
