"""Lanes: the work queue of each session. The owner of a lane works on the session's mail in order, until it ends,
fails or is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes_agent.core.clock import Clock
from hermes_agent.core.events import VOCABULARY
from hermes_agent.store.leases import Lease, fence
from hermes_agent.store.transaction import Change, Engine, Row, TimedTables, Transaction, marks, storable
from hermes_agent.store.workers import Timings, Workers

# A time more than an hour ahead was written before the clock was set back: it has come.
READY = "owner IS NULL AND pending > 0 AND (ready_at <= $1 OR ready_at > $1 + 3600)"
# A lane may be kept to one machine, and its log may hold events of a vocabulary that this version does not know.
MINE = " AND (machine IS NULL OR machine = '{machine}') AND words <= {words}"
CALM = " AND crashes < {suspect}"
HOW = "id, epoch, attempts, crashes, error, waits"
PROBE = f"SELECT 1 FROM lane WHERE {READY} AND home = $home AND queue IN ({{queues}}){{calm}} LIMIT 1"
CLAIM = (
    "UPDATE lane SET owner = $2, epoch = epoch + 1 WHERE owner IS NULL AND id = "
    f"(SELECT id FROM lane WHERE {READY} AND home = $home AND queue = $3{{which}} ORDER BY queued LIMIT 1 "
    f"FOR NO KEY UPDATE SKIP LOCKED) RETURNING {HOW}"
)
ONE = " AND id = ${number}"
MAKE = (
    "INSERT INTO lane (home, id, queue, pending, queued, ready_at, epoch, stop_epoch, attempts, crashes, error) "
    "VALUES ($home, $1, $2, 0, 0, 0, 0, 0, 0, 0, '') ON CONFLICT (id) DO NOTHING"
)
HOLD = f"UPDATE lane SET owner = $2, epoch = epoch + 1 WHERE id = $1 AND owner IS NULL RETURNING {HOW}"
MAIL = "SELECT id, state FROM inbox WHERE lane = $1 AND ended IS NULL ORDER BY id"
# Who held a lane for something else changes nothing of its back-off.
RELEASE = (
    "UPDATE lane SET owner = NULL, attempts = attempts + $3, "
    "ready_at = CASE WHEN CAST($2 AS DOUBLE PRECISION) > 0 OR $3 = 1 THEN $2 ELSE ready_at END, "
    "error = CASE WHEN $3 = 1 THEN $4 ELSE error END WHERE id = $1 RETURNING attempts"
)
INSIST = "UPDATE lane SET ready_at = 0, attempts = 0, crashes = 0 WHERE id = $1 AND pending > 0"
STOP = "UPDATE lane SET stop_epoch = epoch WHERE id = $1 AND owner IS NOT NULL RETURNING owner"
STOP_WITH = (
    "UPDATE lane SET stop_epoch = epoch WHERE id = $1 AND owner IS NOT NULL AND EXISTS (SELECT 1 FROM inbox "
    "WHERE inbox.id = $2 AND inbox.lane = lane.id AND inbox.state = 'taken' AND inbox.ended IS NULL) RETURNING owner"
)
STOPS = (
    "SELECT id, '' FROM lane WHERE owner = $1 AND stop_epoch = epoch UNION ALL "
    "SELECT lane.id, inbox.withdraws FROM lane JOIN inbox ON inbox.lane = lane.id "
    "WHERE lane.owner = $1 AND inbox.withdraws <> '' AND inbox.ended IS NULL ORDER BY 1, 2"
)
WAITS = "UPDATE lane SET waits = $2 WHERE id = $1"
NEXT = (
    "SELECT min(ready_at) FROM lane WHERE owner IS NULL AND pending > 0 AND home = $home AND queue IN ({queues}){calm}"
)
NEXT_OF = f"{NEXT} AND id IN ({{lanes}})"
LONGEST_PAUSE = 300.0


class Lanes(TimedTables):
    """Claims lanes as leases: each has a higher epoch than the one before, and every later write of its holder
    carries it."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers, timings: Timings) -> None:
        super().__init__(engine, clock)
        self._workers = workers
        self._timings = timings
        self._turn, self._found = 0, False

    async def claim(self, queues: Sequence[str], lane: str | None = None, *, suspects: bool = True) -> Lease | None:
        """Claim the lane that waited longest (or `lane`, if it is ready); None where no lane is ready. The queues
        take turns.

        With `suspects` False, lanes that may have crashed a worker are left out unless named.
        """
        await self._workers.freshen()
        now = self._clock.now()
        one = () if lane is None else (lane,)
        which = self._which(suspects or lane is not None)
        expected, self._found = self._workers.heard() or self._found, False
        if not expected and await self._engine.read(_probe(queues, now, one, which), brief=True) is None:
            return None  # Looking takes no write lock; after a ring or a claim there is something to be expected.
        sql = CLAIM.format(which=which + (ONE.format(number=4) if one else ""))
        turn = self._turn % len(queues)

        async def change(tx: Transaction) -> tuple[Row, list[Row]] | None:
            # One queue a statement: the first lanes of several would be found by sorting all that are ready.
            for queue in (*queues[turn:], *queues[:turn]):
                if (row := await tx.row(sql, now, self._workers.id, queue, *one)) is not None:
                    # A statement of its own: one that claims and reads would see mail that another worker has ended.
                    return row, await tx.rows(MAIL, row[0])
            return None

        lease = await self._own(change)
        self._turn, self._found = self._turn + 1, lease is not None
        return lease

    async def hold(self, lane: str, queue: str) -> Lease | None:
        """Own a lane, with or without mail, to write to the log outside of a run; None where a run is under way."""
        await self._workers.freshen()

        async def change(tx: Transaction) -> tuple[Row, list[Row]] | None:
            await tx.run(MAKE, lane, queue)
            row = await tx.row(HOLD, lane, self._workers.id)
            return None if row is None else (row, await tx.rows(MAIL, lane))

        return await self._own(change)

    async def _own(self, change: Change[tuple[Row, list[Row]] | None]) -> Lease | None:
        generation = self._workers.generation
        try:
            claimed = await self._engine.write(change, durable=False)
        except asyncio.CancelledError:
            self._workers.recheck()
            raise
        return None if claimed is None else self._lease(*claimed, generation)

    async def release(self, lease: Lease, *, error: str = "", delay: float | None = None) -> bool:
        """Give the lane back with its mail. With an `error` that is a failed attempt; False if it was the last.

        The next attempt comes after `delay` seconds (default: doubling from 1). Raises `LostLease`.
        """
        now, failed = self._clock.now(), 1 if error else 0
        pause = delay if delay is not None else min(LONGEST_PAUSE, 2.0**lease.attempts) * failed
        again = now + min(pause, LONGEST_PAUSE) if pause else 0.0

        async def change(tx: Transaction) -> int:
            await fence(tx, lease)
            row = await tx.row(RELEASE, lease.lane, again, failed, storable(self._engine.redact(error)))
            tx.rings.add("")
            return 0 if row is None else int(row[0])

        return await self._engine.write(change) < self._timings.attempts

    async def insist(self, session: str) -> bool:
        """Make the session's open mail ready again at a person's request, whatever its failures; False where none is
        open."""

        async def change(tx: Transaction) -> bool:
            tx.rings.add("")
            return await tx.run(INSIST, session) > 0

        return await self._engine.write(change)

    async def stop(self, session: str, mail: int | None = None) -> bool:
        """Tell the owner of the session's lane (if it has that mail in hand, where named) to stop; False where
        nobody owns it."""

        async def change(tx: Transaction) -> bool:
            row = await (tx.row(STOP, session) if mail is None else tx.row(STOP_WITH, session, mail))
            if row is not None:
                tx.rings.add(row[0])
            return row is not None

        return await self._engine.write(change)

    async def stops(self) -> list[tuple[str, str]]:
        """After a wake-up: lanes of this worker that were told to stop, and lanes with a withdrawn message, with its
        `identity`."""
        return [
            (row[0], row[1]) for row in await self._engine.read(lambda tx: tx.rows(STOPS, self._workers.id), brief=True)
        ]

    async def waits(self, tx: Transaction, lease: Lease, said: bool) -> None:
        """Record whether the lease's run only waits for a person. Raises `LostLease`."""
        await fence(tx, lease)
        await tx.run(WAITS, lease.lane, int(said))

    async def next_ready(
        self, queues: Sequence[str], lanes: Sequence[str] | None = None, *, suspects: bool = True
    ) -> float | None:
        """Seconds until the first waiting lane (of `lanes`, where given) may be claimed; None where none waits.
        `suspects` as in `claim`."""
        if lanes is not None and not lanes:
            return None
        ids = lanes or ()
        sql = (NEXT_OF if ids else NEXT).format(
            queues=marks(len(queues), 1),
            lanes=marks(len(ids), 1 + len(queues)),
            calm=self._which(suspects or bool(ids)),
        )

        row = await self._engine.read(lambda tx: tx.row(sql, *queues, *ids), brief=True)
        if row is None or row[0] is None:
            return None
        seconds = row[0] - self._clock.now()
        return max(0.0, seconds) if seconds <= LONGEST_PAUSE * 12 else 0.0

    def _which(self, suspects: bool) -> str:
        mine = MINE.format(machine=self._workers.machine.replace("'", "''"), words=VOCABULARY)
        return mine if suspects else mine + CALM.format(suspect=self._timings.suspect)

    def _lease(self, row: Row, mail: list[Row], generation: int) -> Lease:
        lane, epoch, attempts, crashes, error, waits = row
        poison = f"Given up after {attempts} failed attempts: {error}" if attempts >= self._timings.attempts else ""
        return Lease(
            lane=lane,
            worker=self._workers.id,
            epoch=epoch,
            waiting=tuple(row[0] for row in mail if row[1] == "new"),
            taken=tuple(row[0] for row in mail if row[1] != "new"),
            attempts=attempts,
            crashes=crashes,
            suspect=crashes >= self._timings.suspect,
            deadly=crashes >= self._timings.crashes,
            waits=bool(waits),
            poison=poison,
            generation=generation,
        )


def _probe(queues: Sequence[str], now: float, one: tuple[str, ...], which: str) -> Change[Row | None]:
    more = which + (ONE.format(number=2 + len(queues)) if one else "")
    return lambda tx: tx.row(PROBE.format(queues=marks(len(queues), 2), calm=more), now, *queues, *one)
