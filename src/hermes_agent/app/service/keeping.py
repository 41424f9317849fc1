"""Lanes that are held beside runs: a bot's token that one process may use, commands of one chat, a session for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from hermes_agent.app.service.running import give_back
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Transaction

KEPT = "kept"
"""The queue of lanes that stand for something; nobody claims from it."""


class Keeping:
    """What this process holds beside its runs; `look` sees to it that its owner stays alive for the others."""

    def __init__(self, store: Store, look: Callable[[], None]) -> None:
        self._store = store
        self._look = look
        self._leases: dict[str, Lease] = {}

    @property
    def names(self) -> Set[str]:
        """The lanes that are held."""
        return self._leases.keys()

    async def keep(self, name: str, queue: str = KEPT) -> Lease | None:
        """Be the one process that holds what this name stands for, until `let_go` or its end; None where another one
        does. Whoever acts on it asks `store.workers.alive` before."""
        lease = await self._store.lanes.hold(name, queue)
        if lease is None:
            await self._store.workers.reap()  # Who holds it may have died.
            lease = await self._store.lanes.hold(name, queue)
        return self._held(lease)

    async def take(self, queue: str, lane: str | None = None) -> Lease | None:
        """Claim a lane of a queue that is no session's, and hold it until it is `dropped`."""
        return self._held(await self._store.lanes.claim([queue], lane))

    def dropped(self, lease: Lease) -> None:
        """The lane was given back with the end of its mail."""
        self._forgotten(lease)

    async def let_go(self, lease: Lease) -> None:
        """Give a lane back as it is; where that cannot be written, it is swept when it can."""
        if self._forgotten(lease) and not await give_back(self._store, lease):
            self._look()

    def _forgotten(self, lease: Lease) -> bool:
        """Whether it was held; what is held since it was lost stays so."""
        if self._leases.get(lease.lane) != lease:
            return False
        del self._leases[lease.lane]
        return True

    def _held(self, lease: Lease | None) -> Lease | None:
        if lease is not None:
            self._leases[lease.lane] = lease
            self._look()
        return lease


async def refuse(store: Store, lease: Lease, reason: str) -> None:
    """End all mail of a lane that nobody can work on, and give it back."""
    ids: Sequence[int] = lease.pending

    async def change(tx: Transaction) -> bool:
        return await store.inbox.finish(tx, lease, ids, Ending.REFUSED, reason=reason)

    while not await store.write(change):
        ids = [row for row, _ in await store.inbox.waiting(lease)]
