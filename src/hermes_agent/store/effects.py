"""Effect records: the committed intent of a tool call before it acts, and its result."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Effect, EffectState, Location
from hermes_agent.store.leases import Lease, fence
from hermes_agent.store.transaction import Columns, Many, Row, TimedTables, Transaction, storable

INTEND = (
    "INSERT INTO effect (session, call_id, tool, effect, key, summary, state, handle, at, machine, place, boot) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, '', $8, $9, $10, $11) ON CONFLICT (session, call_id) DO NOTHING"
)
FINISH = "UPDATE effect SET state = $3 WHERE session = $1 AND call_id = $2"
HOLD = "UPDATE effect SET handle = $3 WHERE session = $1 AND call_id = $2"
OPEN = (
    "SELECT call_id, tool, effect, key, summary, state, at, machine, place, boot, handle FROM effect "
    "WHERE session = $1 AND state <> 'done' ORDER BY at, call_id"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The intent of a tool call: its tool, effect class, idempotency key and one line for a person; for an `exec`
    effect also where it will be recorded."""

    call_id: str
    tool: str
    effect: Effect
    key: str
    summary: str
    location: Location = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRecord:
    """State of one call; `at` is when its intent was committed."""

    intent: Intent
    state: EffectState
    at: float


intent_of = Columns(Intent, "call_id, tool, effect, key, summary")
location_of = Columns(Location, "machine, place, boot, handle")


def record_of(row: Row) -> EffectRecord:
    """The record of a row."""
    return EffectRecord(intent=intent_of(row, location=location_of(row[7:])), state=EffectState(row[5]), at=row[6])


class Effects(TimedTables):
    """Table of effect records, one per tool call; written under the session's lease."""

    open = Many[[str], EffectRecord](OPEN, record_of, brief=True)
    """The effects of a session without a result, oldest first."""

    async def intend(self, tx: Transaction, lease: Lease, intent: Intent, at: float | None = None) -> None:
        """Record the intent, as of `at` (None: now). A call that was intended before an interruption keeps its record.
        Raises `LostLease`."""
        await fence(tx, lease)
        state, now = EffectState.INTENT.value, self._clock.now() if at is None else at
        await tx.run(INTEND, lease.lane, *intent_of.of(intent), state, now, *location_of.of(intent.location)[:-1])

    async def hold(self, tx: Transaction, lease: Lease, call_id: str, handle: str) -> None:
        """Record the handle under which the call goes on elsewhere. Raises `LostLease`."""
        await fence(tx, lease)
        await tx.run(HOLD, lease.lane, call_id, storable(handle))

    async def finish(self, tx: Transaction, lease: Lease, call_id: str) -> None:
        """Mark the call as done, in the transaction that logs its result. Raises `LostLease`."""
        await fence(tx, lease)
        await tx.run(FINISH, lease.lane, call_id, EffectState.DONE.value)
