"""The inbox: stores each message before it is acknowledged, accepts it once, and ends it exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache

from hermes_agent.core.chat import SAID, TAKEN_BACK, Inbound
from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LostLease
from hermes_agent.core.records import revive
from hermes_agent.store.leases import Lease, fence
from hermes_agent.store.transaction import (
    Columns,
    Engine,
    Has,
    One,
    Row,
    TimedTables,
    Transaction,
    marks,
    plain,
    storable,
    written,
)

ACCEPT = (
    "INSERT INTO inbox (home, source, source_id, lane, body, state, reason, at, epoch, token, withdraws, replaces) "
    "VALUES ($home, $1, $2, $3, $4, 'new', '', $5, 0, $6, $7, $8) ON CONFLICT (home, source, source_id) DO NOTHING "
    "RETURNING id"
)
ACCEPTED = "SELECT id FROM inbox WHERE home = $home AND source = $1 AND source_id = $2 AND token = $3"
# Mail that comes while a lane waits (for a back-off, or for more mail) does not shorten the wait.
COUNT = (
    "INSERT INTO lane (home, id, queue, pending, queued, ready_at, epoch, stop_epoch, attempts, crashes, error) "
    "VALUES ($home, $1, $2, 1, $3, $4, 0, 0, 0, 0, '') ON CONFLICT (id) DO UPDATE SET "
    "pending = lane.pending + 1, "
    "queue = CASE WHEN lane.pending = 0 THEN excluded.queue ELSE lane.queue END, "
    "queued = CASE WHEN lane.pending = 0 THEN excluded.queued ELSE lane.queued END, "
    "ready_at = CASE WHEN lane.pending = 0 OR excluded.ready_at > 0 THEN excluded.ready_at ELSE lane.ready_at END "
    "RETURNING owner, pending"
)
# A session is used with each message: the list, `hermes -c` and pruning go by it.
USED = "UPDATE session SET updated = $2 WHERE id = $1 AND updated < $2"
WAITING = (
    "SELECT id, body, source, source_id FROM inbox WHERE lane = $1 AND ended IS NULL AND state = 'new' ORDER BY id"
)
TAKE = (
    "UPDATE inbox SET state = 'taken', epoch = $2 WHERE lane = $1 AND ended IS NULL "
    "AND (state = 'new' OR epoch = $2) AND id IN ({ids})"
)
END = (
    "UPDATE inbox SET state = $2, reason = $3, ended = $4, epoch = $5 "
    "WHERE lane = $1 AND ended IS NULL AND id IN ({ids})"
)
ENDED_BY_ME = "SELECT count(*) FROM inbox WHERE lane = $1 AND epoch = $2 AND ended IS NOT NULL AND id IN ({ids})"
# What was told to stop has ended: the order is not for what comes next under the same lease.
SETTLE = (
    "UPDATE lane SET pending = pending - $2, attempts = 0, crashes = 0, error = '', ready_at = 0, "
    "stop_epoch = 0, "
    "owner = CASE WHEN pending > $2 THEN owner END WHERE id = $1 RETURNING pending"
)
# Where a message waits or is worked on, also as what a command said, and as it was changed.
WRITTEN = (
    "SELECT id, lane, body FROM inbox WHERE home = $home AND source = $1 AND source_id IN ($2, $3) AND ended IS NULL "
    "UNION ALL "
    "SELECT id, lane, body FROM inbox WHERE home = $home AND source = $1 AND replaces = $2 AND replaces <> '' "
    "AND ended IS NULL "
    "ORDER BY 1"
)
OPEN = "SELECT body, state FROM inbox WHERE lane = $1 AND ended IS NULL ORDER BY id"
DROPPED = (
    "SELECT withdraws FROM inbox WHERE lane = $1 AND id > $2 AND withdraws <> '' AND ended IS NOT NULL ORDER BY id"
)
DROP = "UPDATE inbox SET state = 'refused', reason = $2, ended = $3 WHERE lane = $1 AND ended IS NULL AND id IN ({ids})"
FORGET_MAIL = (
    "UPDATE inbox SET state = 'refused', reason = $2, ended = $3 "
    "WHERE lane = $1 AND ended IS NULL AND withdraws IN ({ids})"
)
UNCOUNT = "UPDATE lane SET pending = pending - $2 WHERE id = $1"
NEVER = (
    "INSERT INTO inbox (home, source, source_id, lane, body, state, reason, at, ended, epoch, token) "
    "VALUES ($home, $1, $2, '', '', 'refused', $3, $4, $4, 0, '') ON CONFLICT (home, source, source_id) DO NOTHING "
    "RETURNING id"
)
FORGET = "DELETE FROM inbox WHERE home = $home AND lane = '' AND ended < $1"
UNDER_WAY = "SELECT 1 FROM inbox WHERE lane = $1 AND ended IS NULL AND state = 'taken' LIMIT 1"
OTHER = "SELECT 1 FROM inbox WHERE lane = $1 AND id <> $2 AND ended IS NULL LIMIT 1"
BODY = "SELECT body FROM inbox WHERE id = $1 AND home = $home"
AT = "SELECT id, lane, state, reason FROM inbox WHERE id = $1 AND home = $home"
FIND = "SELECT id, lane, state, reason FROM inbox WHERE home = $home AND source = $1 AND source_id = $2"
SMALL = 10_000  # characters of a body that is kept in mind for its second reading
NEVER_SECONDS = 7 * 24 * 3600.0
"""How long it is known that a message was deleted which never came."""


class Ending(StrEnum):
    """How mail ends: answered, refused with a reason, or waiting with a reason for something that other mail will
    bring."""

    ANSWERED = "answered"
    REFUSED = "refused"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Status of a message: `state` is `new`, `taken` (part of the log) or the name of an `Ending`."""

    id: int
    session: str
    state: str
    reason: str


mail_of = Columns(Mail, "id, session, state, reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Mail whose row is damaged or was written by a later version; its text is a sentence for the sender."""

    id: int
    source: str
    source_id: str
    why: str

    def __str__(self) -> str:
        return (
            f"A message could not be read and was set aside (row {self.id} of the inbox, from {self.source}: "
            f"{self.why}). Please send it again."
        )


class Inbox(TimedTables):
    """Table of incoming messages for sessions. Reading and ending mail needs the session's lease."""

    def __init__(self, engine: Engine, clock: Clock, ids: Ids) -> None:
        super().__init__(engine, clock)
        self._ids = ids

    async def accept(
        self,
        inbound: Inbound,
        session: str,
        queue: str,
        ready_at: float | None = None,
        tx: Transaction | None = None,
        *,
        at: float | None = None,
    ) -> int | None:
        """Store the message and make it ready for a worker; its id, or None where it was accepted before.

        `ready_at` (seconds since 1970, at most an hour ahead) delays the run, so that messages in quick
        succession are read together. Uses `tx` where given. `at` is when it arrived; None: now.
        """
        token, body = self._ids.short(), written(inbound)
        now = self._clock.now() if at is None else at
        identity = (inbound.source, inbound.source_id)

        async def change(tx: Transaction) -> int | None:
            row = await tx.row(ACCEPT, *identity, session, body, now, token, inbound.withdraws, inbound.replaces)
            if row is None:
                row = await tx.row(ACCEPTED, *identity, token)
                return None if row is None else int(row[0])
            lane = await tx.row(COUNT, session, queue, row[0], ready_at or 0.0)
            await tx.run(USED, session, now)
            _ring(tx, lane)
            return int(row[0])

        return await (self._engine.write(change) if tx is None else change(tx))

    async def withdraw(
        self, inbound: Inbound, queue: str, *, moderated: bool = False, at: float | None = None
    ) -> dict[str, Inbound]:
        """Withdraw the message `inbound.withdraws`, and edits of it, where they have no end yet: queues mail about
        it in these lanes, returned by name. A message that has not arrived yet will not be accepted.

        It counts if the author deleted the message, or the chat (`moderated`) did, or the platform does not say
        who.
        """
        token, by = inbound.withdraws, inbound.principal.user
        key = (inbound.source, token, f"{token}{SAID}")
        now = self._clock.now()

        def counts(written: Inbound) -> bool:
            there = written.conversation.chat == inbound.conversation.chat
            return by in ("", written.principal.user) or (moderated and there)

        async def change(tx: Transaction) -> dict[str, Inbound]:
            rows = await tx.rows(WRITTEN, *key)
            if not rows:
                await tx.run(FORGET, now - NEVER_SECONDS)
                if await tx.row(NEVER, *key[:2], TAKEN_BACK, now) is not None:
                    return {}
                rows = await tx.rows(WRITTEN, *key)  # It has come meanwhile.
            mail = {
                lane: replace(inbound, source_id=f"{inbound.source_id}:{lane}")
                for _, lane, body in rows
                if isinstance(written := _read(body), Inbound) and counts(written)
            }
            for lane, back in mail.items():
                await self.accept(back, lane, queue, tx=tx, at=at)
            return mail

        return await self._engine.write(change)

    async def drop(
        self, tx: Transaction, lease: Lease, ids: Sequence[int], at: float, reason: str = TAKEN_BACK
    ) -> None:
        """End mail that nobody will read: withdrawn, withdrawing, or unreadable. Raises `LostLease`."""
        await fence(tx, lease)
        ended = await tx.run(DROP.format(ids=marks(len(ids), 4)), lease.lane, storable(reason), at, *ids)
        await tx.run(UNCOUNT, lease.lane, ended)

    async def forget(self, tx: Transaction, lease: Lease, taken_back: Sequence[str], at: float) -> None:
        """End the mail that withdrew these messages (by identity), read or not. Raises `LostLease`."""
        await fence(tx, lease)
        sql = FORGET_MAIL.format(ids=marks(len(taken_back), 4))
        ended = await tx.run(sql, lease.lane, TAKEN_BACK, at, *taken_back)
        await tx.run(UNCOUNT, lease.lane, ended)

    async def open(self, lease: Lease) -> list[tuple[Inbound, bool]]:
        """The readable mail of the lane without an end, in order, each with whether it is part of the log."""
        rows = await self._engine.read(lambda tx: tx.rows(OPEN, lease.lane), brief=True)
        return [(read, state != "new") for body, state in rows if isinstance(read := _read(body), Inbound)]

    async def withdrawn(self, lease: Lease, since: int) -> list[str]:
        """The messages (by identity) that ended mail of the lane, later than the row `since`, withdrew."""
        return [row[0] for row in await self._engine.read(lambda tx: tx.rows(DROPPED, lease.lane, since), brief=True)]

    async def waiting(self, lease: Lease) -> list[tuple[int, Inbound | Unreadable]]:
        """The mail of the lane that no run took yet, in order."""
        rows = await self._engine.read(lambda tx: tx.rows(WAITING, lease.lane), brief=True)
        return [(row, _read(body, row, source, source_id)) for row, body, source, source_id in rows]

    async def take(self, tx: Transaction, lease: Lease, ids: Sequence[int]) -> int:
        """Mark mail as part of the log, in the transaction that logs it; the number of rows. Raises `LostLease`."""
        await fence(tx, lease)
        return await tx.run(TAKE.format(ids=marks(len(ids), 3)), lease.lane, lease.epoch, *ids) if ids else 0

    async def finish(
        self,
        tx: Transaction,
        lease: Lease,
        ids: Sequence[int],
        ending: Ending,
        *,
        reason: str = "",
        at: float | None = None,
    ) -> bool:
        """End mail, each row once. True: the lane was released. False: it has more mail, and the lease stays.

        `at` is when it ended; None: now. May be repeated after its commit's acknowledgement was lost. Raises
        `LostLease`.
        """
        try:
            await fence(tx, lease)
        except LostLease:
            if await self._ended_by(tx, lease, ids):
                return True
            raise
        ended = 0
        if ids:
            facts = (
                ending.value,
                storable(self._engine.redact(reason)),
                self._clock.now() if at is None else at,
                lease.epoch,
            )
            ended = await tx.run(END.format(ids=marks(len(ids), 6)), lease.lane, *facts, *ids)
        row = await tx.row(SETTLE, lease.lane, ended)
        assert row is not None  # The fence has seen and locked it.
        return bool(row[0] == 0)

    under_way = Has[[str]](UNDER_WAY, brief=True)
    """Whether a run of the session, in any process, is working on mail."""
    has_other = Has[[str, int]](OTHER, brief=True)
    """Whether the session has other open mail than that row."""
    find = One[[str, str], Mail](FIND, mail_of, brief=True)
    """Status of the message with that identity: its source, and its id there."""
    at = One[[int], Mail](AT, mail_of, brief=True)
    """Status of the message in that row."""

    async def digest(self, row: int) -> str:
        """The digest of the message in that row (see `Inbound`); empty where it has none, was deleted, or cannot be
        read."""
        found = await self._engine.read(lambda tx: tx.rows(BODY, row), brief=True)
        return "".join(read.digest for (body,) in found if isinstance(read := _read(body), Inbound))

    async def _ended_by(self, tx: Transaction, lease: Lease, ids: Sequence[int]) -> bool:
        if not ids:
            return False
        row = await tx.row(ENDED_BY_ME.format(ids=marks(len(ids), 3)), lease.lane, lease.epoch, *ids)
        return row is not None and row[0] == len(ids)


def _read(body: str, row: int = 0, source: str = "", source_id: str = "") -> Inbound | Unreadable:
    try:
        return _small(body) if len(body) < SMALL else _inbound(body)
    except ValueError as error:
        return Unreadable(id=row, source=source, source_id=source_id, why=str(error))


def _inbound(body: str) -> Inbound:
    found: Inbound = revive(Inbound, plain(body))
    return found


_small = lru_cache(maxsize=64)(_inbound)  # A run reads its message twice: for the model that it names, and to take it.


def _ring(tx: Transaction, lane: Row | None) -> None:
    # A lane that was already ready has rung; an owned one concerns its owner alone.
    assert lane is not None  # RETURNING gives the row that was inserted or updated.
    owner, pending = lane
    if owner is not None:
        tx.rings.add(owner)
    elif pending == 1:
        tx.rings.add("")
