"""The session's side of the inbox: what waits, what this run took, and how that ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from hermes_agent.core.clock import Clock
from hermes_agent.core.inbound import Inbound
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Transaction

Change = Callable[[Transaction], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One message that waits in the inbox, with its row's id."""

    id: int
    inbound: Inbound


class Mailbox:
    """Mail of one lane under its lease. The store is looked at only when somebody rang or something was left."""

    def __init__(self, store: Store, lease: Lease, clock: Clock) -> None:
        self._clock = clock
        self._store = store
        self._lease = lease
        self._rung = asyncio.Event()
        self._rung.set()
        self._left = False
        self._taken: list[int] = list(lease.taken)
        self.released = False

    def ring(self) -> None:
        """Somebody put mail into the inbox."""
        self._rung.set()

    @property
    def took(self) -> bool:
        """Whether this run took any mail."""
        return bool(self._taken)

    @property
    def has_mail(self) -> bool:
        """Whether there may be mail that was not taken."""
        return self._left or self._rung.is_set()

    async def wait(self) -> None:
        """Return when somebody rang since the last look."""
        await self._rung.wait()

    async def read(self) -> tuple[Mail, ...]:
        """The mail that waits, in the order of arrival."""
        if not self.has_mail:
            return ()
        self._rung.clear()
        self._left = True  # Until it is read: whoever is stopped in the middle of this look has to look again.
        waiting = await self._store.inbox.waiting(self._lease)
        self._left = False
        return tuple(Mail(id=row, inbound=inbound) for row, inbound in waiting)

    def leave(self) -> None:
        """Mail was read and not taken: it is looked at again at the next turn."""
        self._left = True

    def take(self, mail: Sequence[Mail]) -> Change:
        """Mark mail as taken by this run, as part of the commit of its messages."""
        ids = [letter.id for letter in mail]

        async def change(tx: Transaction) -> None:
            await self._store.inbox.take(tx, self._lease, ids)

        self._taken.extend(ids)
        return change

    def settle(self, ending: Ending, reason: str = "") -> Change:
        """The end of every message that this run took, as part of the run's end; `released` tells afterwards whether
        the lane was given back or more mail waits."""
        at = self._clock.now()

        async def change(tx: Transaction) -> None:
            self.released = await self._store.inbox.finish(tx, self._lease, self._taken, ending, reason=reason, at=at)

        return change

    def next_run(self) -> None:
        """The lane was kept because mail came too late for the run that ended: it is looked at anew."""
        self._taken = []
        self._rung.set()
