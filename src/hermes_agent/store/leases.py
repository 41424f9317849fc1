"""Fencing of lanes: the lease that allows writing to a session, checked in every such write."""

from __future__ import annotations

from dataclasses import replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LogBehind, LostLease, StoreError
from hermes_agent.store.transaction import Transaction

FENCE = "SELECT 1 FROM lane WHERE id = $1 AND owner = $2 AND epoch = $3"
FENCE = f"{FENCE} FOR NO KEY UPDATE"
# What is appended moves the head of the log from where its writer saw it: after a standby was promoted without the last
# commits, an entry that comes next by its writer's own count would leave a hole.
ADVANCE = (
    "UPDATE lane SET head = $5, words = CASE WHEN words < $6 THEN $6 ELSE words END "
    "WHERE id = $1 AND owner = $2 AND epoch = $3 AND head = $4 RETURNING 1"
)
WHY = "SELECT owner, epoch, head FROM lane WHERE id = $1"
IS_DELETED = "SELECT 1 FROM session WHERE id = $1 AND deleted IS NOT NULL"
WENT_BACK = (
    "the database went back to an earlier state (a standby took over without the last commits, or a backup was put in "
    "its place)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on the session `lane`, until another worker gets a higher `epoch`.

    `waiting` are the ids of unread mail, `taken` those of mail in the log without an answer: a run was
    interrupted. `attempts` counts failures of the task, `crashes` deaths of its worker; `suspect`: so many deaths
    that the task may be the cause; `deadly`: so many that it waits until a person retries it; `waits`: its run
    only waited for a person. `poison`, where not empty, says why this mail must be refused instead of retried.
    `generation` counts how often others may have declared this worker dead.
    """

    lane: str
    worker: str
    epoch: int
    waiting: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()
    attempts: int = 0
    crashes: int = 0
    suspect: bool = False
    deadly: bool = False
    waits: bool = False
    poison: str = ""
    generation: int = 0

    def retried(self) -> Lease:
        """The lease for a retry that a person requested, regardless of earlier failures."""
        return replace(self, poison="", deadly=False)

    @property
    def pending(self) -> tuple[int, ...]:
        """The ids of all mail without an answer, in order."""
        return tuple(sorted((*self.taken, *self.waiting)))

    @property
    def era(self) -> int:
        """A number that changes with each promotion of a standby, after which epochs start anew above all earlier
        ones."""
        return self.epoch >> 32


async def fence(tx: Transaction, lease: Lease) -> None:
    """Raise `LostLease` unless the lane still belongs to this lease; holds until the transaction ends."""
    key = (lease.lane, lease.worker, lease.epoch)
    if key not in tx.fenced and not await tx.holds(FENCE, *key):
        raise await _refusal(tx, lease)
    tx.fenced.add(key)


async def advance(tx: Transaction, lease: Lease, first: int, last: int, words: int = 1) -> None:
    """Move the head of the lease's log over the entries `first` to `last`, which need version `words` of the event
    vocabulary. Raises `LostLease`, or `LogBehind` unless `first` comes next."""
    key = (lease.lane, lease.worker, lease.epoch)
    if not await tx.holds(ADVANCE, *key, first - 1, last, words):
        raise await _refusal(tx, lease, first)
    tx.fenced.add(key)


async def _refusal(tx: Transaction, lease: Lease, number: int | None = None) -> StoreError:
    """Why a lease does not hold, or its entry does not fit."""
    row = await tx.row(WHY, lease.lane)
    if row is None and await tx.row(IS_DELETED, lease.lane) is not None:
        return LostLease(f"Session {lease.lane} was deleted; nothing more is written.")
    if row is None or row[1] < lease.epoch:
        return LogBehind(f"Session {lease.lane} stopped: its claim is gone, {WENT_BACK}.")
    owner, epoch, last = row
    if number is None or (owner, epoch) != (lease.worker, lease.epoch):
        return LostLease(f"Another worker continues session {lease.lane}; this one writes nothing more.")
    return LogBehind(
        f"Session {lease.lane} stopped: entry {number} was next and its log ends at {last}, {WENT_BACK}.", last
    )
