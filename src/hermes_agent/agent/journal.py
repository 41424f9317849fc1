"""The one writer of a session's log: events are numbered, committed under the lease, then shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from hermes_agent.agent.session import Session
from hermes_agent.core.clock import Clock
from hermes_agent.core.events import Durable, Entry, Live, Seen
from hermes_agent.core.inbound import Inbound
from hermes_agent.core.model import Prefix
from hermes_agent.core.section import Section
from hermes_agent.store.database import Store
from hermes_agent.store.effects import Intent
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Transaction

Change = Callable[[Transaction], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One message that waits in the inbox, with its row's id."""

    id: int
    inbound: Inbound


class Journal:
    """Commits what happens in one run.

    Everything passed to one `commit` is in one transaction with the check of the lease; a lost lease raises `LostLease`
    and nothing of it is written. A commit that has begun is carried through even when its caller is cancelled, so that
    the view and the log never disagree.
    """

    def __init__(
        self, store: Store, lease: Lease, session: Session, clock: Clock, show: Callable[[Seen], None]
    ) -> None:
        self.session = session
        self._store = store
        self._lease = lease
        self._clock = clock
        self._show = show
        self._turn_taking = asyncio.Lock()
        self._rung = asyncio.Event()
        self._rung.set()
        self._left = False
        self.taken: list[int] = list(lease.taken)
        self.released = False

    async def commit(self, *events: Durable, changes: Sequence[Change] = ()) -> None:
        """Write the events, and what belongs to them, at once."""
        try:
            await asyncio.shield(self._commit(events, changes))
        except asyncio.CancelledError:
            async with self._turn_taking:  # the write that was under way is over
                raise

    async def _commit(self, events: tuple[Durable, ...], changes: Sequence[Change]) -> None:
        async with self._turn_taking:
            now, first, session = self._clock.now(), self.session.number + 1, self.session
            entries = tuple(
                Entry(number=first + offset, run=session.run, at=now, event=event)
                for offset, event in enumerate(events)
            )

            async def write(tx: Transaction) -> None:
                await self._store.history.append(tx, self._lease, entries)
                for change in changes:
                    await change(tx)

            await self._store.write(write)
            for entry in entries:
                session.apply(entry)
                self._show(Seen(session=session.id, number=entry.number, run=entry.run, at=now, event=entry.event))

    def alive(self) -> None:
        """Raise `LostLease` where this process was away for too long; asked right before an effect."""
        self._store.workers.alive(self._lease)

    def live(self, event: Live) -> None:
        """Show an event that is not kept."""
        session = self.session
        self._show(Seen(session=session.id, number=session.number, run=session.run, at=self._clock.now(), event=event))

    def intend(self, intent: Intent) -> Change:
        """The effect record of a call, as part of a commit."""

        async def change(tx: Transaction) -> None:
            await self._store.effects.intend(tx, self._lease, intent)

        return change

    def finish_effect(self, call_id: str) -> Change:
        """The effect's end, as part of the commit of its result."""

        async def change(tx: Transaction) -> None:
            await self._store.effects.finish(tx, self._lease, call_id)

        return change

    def keep_prefix(self, prefix: Prefix, sections: tuple[Section, ...]) -> Change:
        """The prefix under its hash, as part of the commit that freezes it."""

        async def change(tx: Transaction) -> None:
            await self._store.prefixes.put(tx, prefix, sections)

        return change

    def take(self, mail: Sequence[Mail]) -> Change:
        """Mark mail as taken by this run, as part of the commit of its messages."""
        ids = [letter.id for letter in mail]

        async def change(tx: Transaction) -> None:
            await self._store.inbox.take(tx, self._lease, ids)

        self.taken.extend(ids)
        return change

    def settle_mail(self, ending: Ending, reason: str = "") -> Change:
        """The end of every message that this run took, as part of the run's end; gives the lane back unless mail
        waits."""

        async def change(tx: Transaction) -> None:
            self.released = await self._store.inbox.finish(tx, self._lease, self.taken, ending, reason=reason)

        return change

    def next_run(self) -> None:
        """The lane was kept because mail came too late for the run that ended: it is looked at anew."""
        self.taken = []
        self._rung.set()

    def ring(self) -> None:
        """Somebody put mail into the inbox."""
        self._rung.set()

    @property
    def has_mail(self) -> bool:
        """Whether there may be mail that was not taken."""
        return self._left or self._rung.is_set()

    async def wait_for_mail(self) -> None:
        """Return when somebody rang since the last look."""
        await self._rung.wait()

    async def read_mail(self) -> tuple[Mail, ...]:
        """The mail that waits; empty without a look at the store where nobody rang and nothing was left."""
        if not self.has_mail:
            return ()
        self._rung.clear()
        self._left = False
        waiting = await self._store.inbox.waiting(self._lease)
        return tuple(Mail(id=row, inbound=inbound) for row, inbound in waiting)

    def leave(self) -> None:
        """Mail was read and not taken: it is looked at again at the next turn."""
        self._left = True
