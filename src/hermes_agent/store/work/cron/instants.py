"""Table of the instants of scheduled jobs, which are claimed under leases."""

from __future__ import annotations

from dataclasses import replace

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import LostLease
from hermes_agent.store.claims import Claims, Lease
from hermes_agent.store.transaction import Columns, Engine, Many, TimedTables, Transaction, storable, written
from hermes_agent.store.work.cron.records import Ahead, Claimed, Instant
from hermes_agent.store.workers import Workers

NEW = (
    "INSERT INTO cron_instant (home, id, job, due, ready_at, late_at, queues, state, why, counts, ended, epoch, "
    "attempts, tries, note, session, words, letters, filed) VALUES ($home, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
    "0, 0, 0, '', '', '', '[]', 1) ON CONFLICT (job, due) DO NOTHING"
)
FIELDS = (
    "job, due, state, why, counts, ready_at, late_at, queues, attempts, tries, session, started, ended, words, letters"
)
CAN_BEGIN = (
    "session = '' AND (queues = 0 OR NOT EXISTS (SELECT 1 FROM cron_instant AS other WHERE other.job = "
    "cron_instant.job AND other.ended IS NULL AND other.state = 'running' AND other.id <> cron_instant.id))"
)
BUSY = (
    "(SELECT count(*) FROM cron_instant AS busy WHERE busy.home = $home AND busy.ended IS NULL "
    "AND busy.state = 'running'"
)
WHICH = f"AND ready_at <= $2 AND {CAN_BEGIN} AND {BUSY} AND busy.id <> cron_instant.id) < $3"
LATER = (
    "UPDATE cron_instant SET owner = NULL, state = 'queued', session = '', tries = tries + 1, ready_at = $2 "
    "WHERE id = $1"
)
ENDED = "state = $4, why = $5, words = $6, letters = $7, ended = $8, filed = $9"
END = (
    "UPDATE cron_instant SET owner = NULL, state = $2, why = $3, words = $4, letters = $5, ended = $6, filed = $7 "
    "WHERE id = $1 AND ended IS NULL"
)
BY_SESSION = f"SELECT {FIELDS} FROM cron_instant WHERE session = $1 AND ended IS NULL"
RUNNING = f"SELECT {FIELDS} FROM cron_instant WHERE job = $1 AND ended IS NULL AND state = 'running' AND due <> $2"
# Whose run ended without its agent: it could not begin, was refused, or its session is gone.
LEFT = (
    f"SELECT {FIELDS} FROM cron_instant WHERE home = $home AND ended IS NULL AND session <> '' AND NOT EXISTS "
    "(SELECT 1 FROM inbox WHERE inbox.lane = cron_instant.session AND inbox.ended IS NULL)"
)
OF_JOB = (
    f"SELECT {FIELDS} FROM cron_instant WHERE job = $1 AND (state <> 'queued' OR why = 'manual' OR tries > 0) "
    "ORDER BY due DESC LIMIT $2"
)
LAST_WORDS = "SELECT words FROM cron_instant WHERE job = $1 AND state = 'ran' AND words <> '' ORDER BY due DESC LIMIT 1"
UNFILED = f"SELECT {FIELDS} FROM cron_instant WHERE home = $home AND filed = 0 AND ended IS NOT NULL LIMIT 100"
FILED = "UPDATE cron_instant SET filed = 1 WHERE id = $1"
NEXT = (
    "SELECT (SELECT min(look_at) FROM cron_job WHERE home = $home AND state = 'on'), (SELECT ready_at FROM "
    "cron_instant WHERE home = $home AND ended IS NULL AND state = 'queued' AND owner IS NULL "
    f"AND {CAN_BEGIN} AND {BUSY}) < $1 ORDER BY ready_at LIMIT 1), {BUSY}), (SELECT count(*) FROM "
    "cron_instant WHERE home = $home AND filed = 0 "
    "AND ended IS NOT NULL)"
)


new_of = Columns(Instant, "id, job, due, ready_at, late_at, queues, state, why, counts, ended")
instant_of = Columns(Instant, FIELDS)


class CronInstants(TimedTables):
    """Instants of jobs. They are claimed by whoever fires them."""

    left = Many[[], Instant](LEFT, instant_of)
    """Instants whose run is over and did not say so."""
    unfiled = Many[[], Instant](UNFILED, instant_of)
    """Instants that ended, and whose result is in no file yet."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers) -> None:
        super().__init__(engine, clock)
        self._claims = Claims(engine, workers, "cron_instant", FIELDS, order="ready_at, id")
        self.check = self._claims.check

    async def ask_for(self, instant: Instant) -> Instant:
        """Add an instant that a person asked for, at the first second that has none."""

        async def change(tx: Transaction) -> Instant:
            found = instant
            while not await insert(tx, found):
                found = replace(found, due=found.due + 1)
            tx.rings.add("")
            return found

        return await self._engine.write(change)

    async def ahead(self, most: int) -> Ahead:
        """What comes next, where `most` instants may be under way."""
        row = await self._engine.read(lambda tx: tx.row(NEXT, most), brief=True)
        assert row is not None
        return Ahead(look_at=row[0], ready_at=row[1], running=int(row[2]), unfiled=int(row[3]))

    async def claim(self, most: int) -> Claimed | None:
        """Claim the instant that is due longest, where fewer than `most` are under way; also one whose worker died."""
        found = await self._claims.claim(WHICH, self._clock.now(), most)
        return None if found is None else Claimed(lease=found[0], instant=instant_of(found[1]))

    async def release(self, lease: Lease, note: str = "", *, counts: bool = False) -> None:
        """Leave an instant to others, as `Claims.release`, and wake them."""
        await self._claims.release(lease, note, counts=counts)
        await self._engine.write(_ring)

    async def begun(self, tx: Transaction, lease: Lease, session: str) -> None:
        """Note the session that runs an instant. Raises `LostLease`."""
        if not await self._claims.end(tx, lease, "session = $4, started = $5", session, self._clock.now()):
            raise LostLease(f"Another worker runs {lease.id}.")

    async def end(self, tx: Transaction, ended: Instant, lease: Lease | None, *, files: bool) -> bool:
        """End an instant (its state, why, words, letters), with a file to be written; False where it has ended, or
        where the lease of the one that is claimed is lost."""
        said, letters = storable(self._engine.redact(ended.words)), written(ended.letters)
        tx.rings.add("")
        facts = (ended.state.value, storable(ended.why), said, letters, self._clock.now(), int(not files))
        if lease is not None:
            return await self._claims.end(tx, lease, ENDED, *facts)
        return await tx.run(END, ended.id, *facts) > 0

    async def retry(self, tx: Transaction, instant: Instant, at: float) -> None:
        """Put an instant back, to be tried again at a time."""
        tx.rings.add("")
        await tx.run(LATER, instant.id, at)

    async def by_session(self, tx: Transaction, session: str) -> Instant | None:
        """The instant that a session runs."""
        row = await tx.row(BY_SESSION, session)
        return None if row is None else instant_of(row)

    async def running(self, instant: Instant) -> list[Instant]:
        """Other instants of the same job that are under way."""
        return [
            instant_of(row) for row in await self._engine.read(lambda tx: tx.rows(RUNNING, instant.job, instant.due))
        ]

    async def of(self, job: str, most: int = 20) -> list[Instant]:
        """Instants of a job, the latest first, without those that are planned."""
        return [instant_of(row) for row in await self._engine.read(lambda tx: tx.rows(OF_JOB, job, most))]

    async def last_words(self, job: str) -> str:
        """What the last instant that ran said; empty for nothing."""
        return await self._one(lambda row: str(row[0]), LAST_WORDS, job) or ""

    async def filed(self, instant: Instant) -> None:
        """Note that the file of an instant is there."""
        await self._engine.write(lambda tx: tx.run(FILED, instant.id), durable=False)


async def _ring(tx: Transaction) -> None:
    tx.rings.add("")


async def insert(tx: Transaction, each: Instant) -> bool:
    """Add the row of an instant; False where there is one."""
    return await tx.run(NEW, *new_of.of(each)) > 0
