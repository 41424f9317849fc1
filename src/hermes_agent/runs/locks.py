"""Named leases of a process that are not runs: a bot token, a chat's command queue, a session held for a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from hermes_agent.runs.one_run import give_back
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Transaction

KEPT = "kept"
"""The queue of lanes that stand for something; nobody claims from it."""


class Locks:
    """Named leases of this process that are not runs. `wake` keeps the lease's owner alive."""

    def __init__(self, store: Store, wake: Callable[[], None]) -> None:
        self._store = store
        self._wake = wake
        self._leases: dict[str, Lease] = {}

    @property
    def names(self) -> Set[str]:
        """The held lanes."""
        return self._leases.keys()

    async def acquire(self, name: str, queue: str = KEPT) -> Lease | None:
        """Hold the named lock until `release` or the end of the process; None where another process holds it. Before
        each use, check `store.workers.alive`."""
        lease = await self._store.lanes.hold(name, queue)
        if lease is None:
            await self._store.workers.reap()  # Who holds it may have died.
            lease = await self._store.lanes.hold(name, queue)
        return self._held(lease)

    async def claim(self, queue: str, lane: str | None = None) -> Lease | None:
        """Claim a lane of a queue for work other than sessions; held until `on_released`."""
        return self._held(await self._store.lanes.claim([queue], lane))

    def on_released(self, lease: Lease) -> None:
        """Forget a lane that was released by the commit that ended its mail."""
        self._forget(lease)

    async def release(self, lease: Lease) -> None:
        """Release a lane without touching its mail. If that cannot be written now, the sweep does it later."""
        if self._forget(lease) and not await give_back(self._store, lease):
            self._wake()

    def _forget(self, lease: Lease) -> bool:
        """Drop the lease if it is still the current one. Returns False for a stale lease: a newer one must stay."""
        if self._leases.get(lease.lane) != lease:
            return False
        del self._leases[lease.lane]
        return True

    def _held(self, lease: Lease | None) -> Lease | None:
        if lease is not None:
            self._leases[lease.lane] = lease
            self._wake()
        return lease


async def refuse(store: Store, lease: Lease, reason: str) -> None:
    """Refuse all mail of a lane that nobody can work on, and release it."""
    ids: Sequence[int] = lease.pending

    async def change(tx: Transaction) -> bool:
        return await store.inbox.finish(tx, lease, ids, Ending.REFUSED, reason=reason)

    while not await store.write(change):
        ids = [row for row, _ in await store.inbox.waiting(lease)]
