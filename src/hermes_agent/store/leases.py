"""The lease on a lane: who may write to a session, and the check that every such write makes."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LostLease
from hermes_agent.store.transaction import Transaction

FENCE = "SELECT 1 FROM lane WHERE id = $1 AND owner = $2 AND epoch = $3 FOR NO KEY UPDATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on the session `lane`, until another worker is given a higher `epoch`.

    `waiting` are the ids of mail nobody read yet, `taken` of mail that is already part of the log but has no answer: a
    run was interrupted. `attempts` counts how often the task failed, `crashes` how often its machine did; `suspect`:
    often enough that the task may be the cause; `waits`: it did nothing but wait for a person. Where `poison` is not
    empty it is the sentence why this mail must be refused instead of tried again. `generation` is the worker's own
    count of how often it may have been given up by the others.
    """

    lane: str
    worker: str
    epoch: int
    waiting: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()
    attempts: int = 0
    crashes: int = 0
    suspect: bool = False
    waits: bool = False
    poison: str = ""
    generation: int = 0

    @property
    def pending(self) -> tuple[int, ...]:
        """The ids of all mail that has no answer yet, in order."""
        return tuple(sorted((*self.taken, *self.waiting)))


async def fence(tx: Transaction, lease: Lease) -> None:
    """Raise `LostLease` unless the lane is still this lease's; it stays so until the transaction ends."""
    key = (lease.lane, lease.worker, lease.epoch)
    if key in tx.fenced:
        return
    if not await tx.holds(FENCE, *key):
        raise LostLease(f"Another worker continues session {lease.lane}; this one writes nothing more.")
    tx.fenced.add(key)
