"""The outbox: stores each outgoing message before it is sent, in order per chat, and ends it with a receipt or a
reason."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from hermes_agent.core.chat import Content, Conversation, Letter, Piece, Slot, SlotState, lost
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LostLease
from hermes_agent.core.records import revive
from hermes_agent.store.transaction import (
    Engine,
    One,
    Row,
    TimedTables,
    Transaction,
    Value,
    Write,
    marks,
    plain,
    storable,
    written,
)
from hermes_agent.store.workers import LET_LETTERS_GO, Workers

log = logging.getLogger(__name__)

FIELDS = (
    "id, key, place, body, session, version, state, pieces, epoch, attempts, repeats, error, at, "
    "coalesce((SELECT source_id FROM inbox WHERE inbox.id = outbox.inbox), '')"
)
NEW = (
    "INSERT INTO outbox (home, key, channel, place, session, inbox, body, version, draft, state, due, pieces, owner, "
    "epoch, "
    "attempts, repeats, ready_at, error, at) VALUES ($home, $1, $2, $3, $4, $5, $6, 1, {draft}, '{state}', {due}, "
    "'[]', "
    "{owner}, 1, 0, 0, 0, '', $7) ON CONFLICT (home, key) DO "
)
# New content of a slot that is shown, or being shown: it is changed there.
PUT = NEW.format(draft=0, state="pending", due=1, owner="NULL") + (
    "UPDATE SET body = excluded.body, inbox = excluded.inbox, version = outbox.version + 1, draft = 0, due = 1, "
    "state = CASE WHEN outbox.state IN ('sent', 'failed') THEN 'pending' ELSE outbox.state END, "
    "attempts = 0, ready_at = 0, ended = NULL RETURNING id"
)
BODY = "SELECT body FROM outbox WHERE home = $home AND key = $1"
REWRITE = (
    "UPDATE outbox SET body = $2, version = version + 1, due = 1, "
    "state = CASE WHEN state IN ('sent', 'failed') THEN 'pending' ELSE state END, attempts = 0, ready_at = 0, "
    "ended = NULL WHERE home = $home AND key = $1"
)
# A draft that an earlier process left is held again, but not one that may be there already.
OPEN = NEW.format(draft=1, state="sending", due=0, owner="$8") + (
    "UPDATE SET owner = excluded.owner, epoch = outbox.epoch + 1, "
    "state = CASE outbox.pieces WHEN '[]' THEN 'sending' ELSE outbox.state END "
    f"WHERE outbox.draft = 1 AND outbox.owner IS NULL AND outbox.state <> 'unsure' RETURNING {FIELDS}"
)
FIRST = (
    "home = $home AND due = 1 AND owner IS NULL AND channel IN ({channels}) "
    "AND NOT EXISTS (SELECT 1 FROM outbox AS ahead WHERE ahead.home = outbox.home AND ahead.due = 1 AND ahead.place "
    "= outbox.place "
    "AND ahead.id < outbox.id)"
)
# A time more than an hour ahead was written before the clock was set back: it has come.
READY = f"{FIRST} AND (ready_at <= $1 OR ready_at > $1 + 3600)"
PROBE = f"SELECT 1 FROM outbox WHERE {READY} LIMIT 1"
# Materialized: a subquery with a limit may be asked once for each row, and then has none.
CLAIM = (
    f"WITH first AS MATERIALIZED (SELECT id FROM outbox WHERE {READY} ORDER BY id LIMIT $3 "
    "FOR NO KEY UPDATE SKIP LOCKED) "
    "UPDATE outbox SET owner = $2, epoch = epoch + 1 WHERE owner IS NULL AND id IN (SELECT id FROM first) "
    f"RETURNING {FIELDS}"
)
MARK = "UPDATE outbox SET state = 'sending', pieces = $4, repeats = $5 WHERE id = $1 AND owner = $2 AND epoch = $3"
# What was put in the meantime is still to be shown; a draft has nothing left to do before its run ends.
NEWER = "(draft = 0 AND version > $7)"
SETTLE = (
    "UPDATE outbox SET owner = NULL, pieces = $4, repeats = $5, "
    f"state = CASE WHEN {NEWER} AND CAST($6 AS TEXT) IN ('sent', 'failed') THEN 'pending' ELSE $6 END, "
    f"due = CASE WHEN draft = 1 OR (CAST($6 AS TEXT) IN ('sent', 'failed') AND NOT {NEWER}) THEN 0 ELSE 1 END, "
    f"attempts = CASE WHEN {NEWER} THEN 0 ELSE attempts + $8 END, ready_at = $9, error = $10, ended = $11 "
    "WHERE id = $1 AND owner = $2 AND epoch = $3"
)
UNREADABLE = "its record is damaged"
FAIL = (
    "UPDATE outbox SET owner = NULL, state = 'failed', due = 0, error = $2, ended = $3 "
    "WHERE id = $1 AND state <> 'sent'"
)
WAITS = "SELECT 1 FROM outbox WHERE home = $home AND due = 1 AND place = $1 LIMIT 1"
NEXT = f"SELECT min(ready_at) FROM outbox WHERE {FIRST}"
FIND = f"SELECT {FIELDS} FROM outbox WHERE home = $home AND {{by}} = $1"
COUNTS = (
    "SELECT state, count(*), sum(CASE WHEN repeats > 0 THEN 1 ELSE 0 END) FROM outbox WHERE home = $home GROUP BY state"
)
FAILED = f"SELECT {FIELDS} FROM outbox WHERE home = $home AND state = 'failed' ORDER BY id DESC LIMIT $1"
PRUNE = "DELETE FROM outbox WHERE home = $home AND due = 0 AND ended < $1"
LONGEST_PAUSE = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Number of slots by state, and how many have a piece that may have been sent twice."""

    states: Mapping[str, int]
    repeated: int


def _slot(row: Row, *, whole: bool = True) -> Slot:
    """Raises `ValueError` for what cannot be read; where it need not be `whole` it has no content then."""
    try:
        content, pieces = revive(Content, plain(row[3])), tuple(revive(Piece, each) for each in plain(row[7]))
    except ValueError:
        if whole:
            raise
        content, pieces = Content(text=""), ()
    return Slot(
        id=row[0],
        key=row[1],
        to=Conversation.parse(row[2]),
        content=content,
        session=row[4],
        version=row[5],
        state=SlotState(row[6]),
        pieces=pieces,
        epoch=row[8],
        attempts=row[9],
        repeats=row[10],
        error=row[11],
        at=row[12],
        answers=row[13],
    )


class Outbox(TimedTables):
    """Table of outbox slots. The deliverer of a slot holds it under an epoch; a slot that a dead holder was sending
    becomes `unsure`."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers) -> None:
        super().__init__(engine, clock)
        self._workers = workers

    async def put(
        self, tx: Transaction, letter: Letter, *, at: float | None = None, wake: bool = True, error: str = ""
    ) -> int:
        """Add or replace a message as part of a change; the slot's id. The same key replaces the content shown under
        it. With an `error` it can never be sent, and is recorded as failed.

        Wakes the deliverer unless `wake` is False: this process delivers it itself.
        """
        row = await tx.row(PUT, *_columns(letter), self._clock.now() if at is None else at)
        assert row is not None  # RETURNING gives the row that was inserted or updated.
        if error:
            await tx.run(FAIL, row[0], error, self._clock.now())
        elif wake:
            tx.rings.add("")
        return int(row[0])

    async def answered(self, tx: Transaction, key: str, answer: str, *, wake: bool = True) -> bool:
        """Replace a question by its answer and remove its buttons; False where no question is open there."""
        row = await tx.row(BODY, key)
        if row is None:
            return False
        try:
            asked = revive(Content, plain(row[0]))
        except ValueError:  # Whoever delivers it says so.
            return False
        if not asked.question:
            return False
        body = written(Content(text=f"{asked.text}\n\n{answer}" if answer else asked.text))
        if wake:
            tx.rings.add("")
        return await tx.run(REWRITE, key, body) > 0

    async def waits(self, to: Conversation) -> bool:
        """Whether messages to that place are still due, which a new draft would overtake."""
        return await self._engine.read(lambda tx: tx.row(WAITS, to.place.key), brief=True) is not None

    async def open(self, letter: Letter) -> Slot | None:
        """Hold a draft slot, new or left by an earlier process, with what is shown of it. None where its outcome is
        open or the final content is there."""
        await self._workers.freshen()
        now = self._clock.now()
        row = await self._engine.write(lambda tx: tx.row(OPEN, *_columns(letter), now, self._workers.id), durable=False)
        return None if row is None else next(_readable([row]), None)

    async def claim(self, channels: Sequence[str], most: int = 50) -> list[Slot]:
        """Hold the due slots of these channels, oldest first, at most one per place."""
        await self._workers.freshen()
        now = self._clock.now()
        probe = PROBE.format(channels=marks(len(channels), 2))
        if await self._engine.read(lambda tx: tx.row(probe, now, *channels), brief=True) is None:
            return []
        sql = CLAIM.format(channels=marks(len(channels), 4))
        rows = await self._engine.write(lambda tx: tx.rows(sql, now, self._workers.id, most, *channels), durable=False)
        slots = list(_readable(rows))
        for row in rows if len(slots) < len(rows) else ():
            if row[0] not in [slot.id for slot in slots]:
                await self._engine.write(partial(self._lose, row=row, at=now))
        return sorted(slots, key=lambda slot: slot.id)

    async def _lose(self, tx: Transaction, row: Row, at: float) -> None:
        """Give up a slot that cannot be read, so that its place goes on, and say so there."""
        await tx.run(FAIL, row[0], UNREADABLE, at)
        await self.put(tx, lost(row[0], Conversation.parse(row[2]), UNREADABLE))

    async def start(self, slot: Slot, pieces: Sequence[Piece], *, repeats: int = 0) -> None:
        """Record that the next piece is about to be sent: from now on a crash leaves its outcome open.

        Raises `LostLease` where another process holds the slot.
        """
        await self._held(slot, MARK, written(tuple(pieces)), slot.repeats + repeats)

    async def complete(
        self,
        slot: Slot,
        state: SlotState,
        pieces: Sequence[Piece],
        *,
        error: str = "",
        delay: float = 0.0,
        repeats: int = 0,
    ) -> None:
        """Release a slot: `sent` or `failed` for good, otherwise due again after `delay` seconds.

        Raises `LostLease` where another process holds it.
        """
        now = self._clock.now()
        over = state in (SlotState.SENT, SlotState.FAILED)
        again = 0.0 if over or not delay else now + min(delay, LONGEST_PAUSE)
        facts = (written(tuple(pieces)), slot.repeats + repeats, state.value, slot.version)
        more = (1 if error else 0, again, storable(self._engine.redact(error)), now if over else None)
        await self._held(slot, SETTLE, *facts, *more)

    async def give_back(self, keep: Collection[int] = ()) -> int:
        """Release everything that this worker holds, except the slots `keep`; slots being sent become `unsure`.
        Returns their number."""
        kept = f" AND id NOT IN ({marks(len(keep), 2)})" if keep else ""
        return await self._engine.write(
            lambda tx: tx.run(f"{LET_LETTERS_GO}{kept}", self._workers.id, *keep), durable=False
        )

    async def next_ready(self, channels: Sequence[str]) -> float | None:
        """Seconds until the next slot of these channels may be claimed; None where none waits."""
        if not channels:
            return None

        row = await self._engine.read(
            lambda tx: tx.row(NEXT.format(channels=marks(len(channels), 1)), *channels), brief=True
        )
        if row is None or row[0] is None:
            return None
        seconds = row[0] - self._clock.now()
        return max(0.0, seconds) if seconds <= LONGEST_PAUSE else 0.0

    find = One[[str], Slot](FIND.format(by="key"), partial(_slot, whole=False))
    """The slot of that key."""
    get = One[[int], Slot](FIND.format(by="id"), partial(_slot, whole=False))
    """The slot of that id."""
    prune = Write[[float]](PRUNE, durable=False)
    """Delete slots that ended before that time (seconds since 1970); their number."""

    async def tally(self) -> Tally:
        """Number of slots by state."""
        rows = await self._engine.read(lambda tx: tx.rows(COUNTS))
        return Tally(states={row[0]: row[1] for row in rows}, repeated=sum(int(row[2]) for row in rows))

    async def failed(self, most: int = 20) -> list[Slot]:
        """The undeliverable slots, latest first."""
        return [_slot(row, whole=False) for row in await self._engine.read(lambda tx: tx.rows(FAILED, most))]

    async def _held(self, slot: Slot, sql: str, *facts: Value) -> None:
        params = (slot.id, self._workers.id, slot.epoch, *facts)
        if not await self._engine.write(lambda tx: tx.run(sql, *params), durable=False):
            raise LostLease(f"Somebody else delivers {slot.key} by now.")


def _columns(letter: Letter) -> tuple[str, str, str, str, int, str]:
    place = letter.to.place
    return letter.key, place.platform, place.key, letter.session, letter.inbox, written(letter.content)


def _readable(rows: Sequence[Row]) -> Iterator[Slot]:
    """The slots that can be read."""
    for row in rows:
        try:
            yield _slot(row)
        except ValueError:
            log.exception("slot %s cannot be read", row[0])
