"""Work queue on a table: claims rows under leases with a fencing epoch."""

from __future__ import annotations

import asyncio

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LostLease
from hermes_agent.store.transaction import Engine, Row, Transaction, Value, marks, storable
from hermes_agent.store.workers import Workers

# Whose worker is gone is nobody's: its row goes when it leaves, and is taken away when it died.
FREE = "home = $home AND ended IS NULL AND (owner IS NULL OR owner NOT IN (SELECT id FROM worker))"
READY = "SELECT 1 FROM {table} WHERE {free} LIMIT 1"
CLAIM = (
    "UPDATE {table} SET owner = $1, epoch = epoch + 1, attempts = attempts + 1, state = 'running' WHERE id = "
    "(SELECT id FROM {table} WHERE {free} {which} ORDER BY {order} LIMIT 1 "
    "FOR NO KEY UPDATE SKIP LOCKED) RETURNING id, epoch, {fields}"
)
IS_HELD = "id = $1 AND owner = $2 AND epoch = $3 AND ended IS NULL"
HELD = "SELECT 1 FROM {table} WHERE {held}"
LET_GO = "UPDATE {table} SET owner = NULL, state = 'queued', note = $4, attempts = attempts - $5 WHERE {held}"
# Of claims that were cancelled, and may have been committed all the same.
FORGOTTEN = "UPDATE {table} SET owner = NULL, state = 'queued' WHERE owner = $1 AND ended IS NULL AND id NOT IN ({ids})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on the row `id` of a work queue, until another worker gets a higher `epoch`."""

    id: str
    worker: str
    epoch: int

    @property
    def key(self) -> tuple[str, str, int]:
        """The first parameters of a statement with the condition `IS_HELD`."""
        return self.id, self.worker, self.epoch


class Claims:
    """A work queue on one table with `id`, `home`, `state`, `owner`, `epoch`, `attempts`, `ended`, `note`, and what
    `order` names; its name must be in `store.workers.CLAIMED` too. Every write of a holder checks `IS_HELD`."""

    def __init__(self, engine: Engine, workers: Workers, table: str, fields: str, order: str = "created, id") -> None:
        self._engine, self._workers = engine, workers
        self._table, self._fields, self._order = table, fields, order
        self._in_hand: set[str] = set()
        self._forgot = False

    def _sql(self, text: str, which: str = "", ids: str = "") -> str:
        return text.format(
            table=self._table, free=FREE, held=IS_HELD, which=which, fields=self._fields, ids=ids, order=self._order
        )

    async def ready(self, tx: Transaction) -> bool:
        """Whether a row can be claimed."""
        return await tx.row(self._sql(READY)) is not None

    async def claim(self, which: str = "", *values: Value) -> tuple[Lease, Row] | None:
        """Claim the row that waited longest, also one whose worker died; None where there is none. `which` is an
        extra condition with parameters from `$2` on."""
        await self._workers.freshen()
        await self._workers.reap()
        if self._forgot:
            kept = sorted(self._in_hand) or [""]
            sql = self._sql(FORGOTTEN, ids=marks(len(kept), 2))
            await self._engine.write(lambda tx: tx.run(sql, self._workers.id, *kept))
            self._forgot = False
        sql = self._sql(CLAIM, which)
        try:  # A power failure ends the worker too: whoever comes next finds the row free, with the claim or without.
            row = await self._engine.write(lambda tx: tx.row(sql, self._workers.id, *values), durable=False)
        except asyncio.CancelledError:
            self._forgot = True
            raise
        if row is None:
            return None
        self._in_hand.add(row[0])
        return Lease(id=row[0], worker=self._workers.id, epoch=int(row[1])), row[2:]

    async def check(self, lease: Lease) -> None:
        """Send a heartbeat, and raise `LostLease` where the row belongs to another worker now."""
        await self._workers.freshen()
        if await self._engine.read(lambda tx: tx.row(self._sql(HELD), *lease.key), brief=True) is None:
            self._in_hand.discard(lease.id)
            raise LostLease(f"Another worker does the job {lease.id}, or it is over; this one writes nothing more.")

    async def release(self, lease: Lease, note: str = "", *, counts: bool = False) -> None:
        """Put the row back into the queue, and wake the others. With `counts` that is a failed attempt; without, this
        process is leaving."""
        self._in_hand.discard(lease.id)

        async def change(tx: Transaction) -> None:
            await tx.run(self._sql(LET_GO), *lease.key, storable(note), 0 if counts else 1)
            tx.rings.add("")

        await self._engine.write(change)

    async def end(self, tx: Transaction, lease: Lease, columns: str, *values: Value) -> bool:
        """End the row within a change: `columns` are set, with parameters from `$4` on. False where the lease is
        lost; then the rest of the change must not happen."""
        self._in_hand.discard(lease.id)
        return (
            await tx.run(f"UPDATE {self._table} SET owner = NULL, {columns} WHERE {IS_HELD}", *lease.key, *values) > 0
        )
