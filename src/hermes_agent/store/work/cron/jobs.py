"""Tables of scheduled jobs, with the planning of their instants, and of instants, which are claimed under leases."""

from __future__ import annotations

from dataclasses import replace

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import LostLease
from hermes_agent.store.claims import Claims, Lease
from hermes_agent.store.transaction import Columns, Engine, Has, Many, One, TimedTables, Transaction, storable, written
from hermes_agent.store.work.cron.records import Ahead, Claimed, Instant, Job, JobState, Planned
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
        self.check, self.release = self._claims.check, self._claims.release

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


async def insert(tx: Transaction, each: Instant) -> bool:
    """Add the row of an instant; False where there is one."""
    return await tx.run(NEW, *new_of.of(each)) > 0


MOST_SHOWN = 500
"""Ended instants that are kept of a job."""
KEPT = 2 * 86_400
"""Seconds for which each is kept, so that a clock that is set back repeats none."""
JOB = "id, principal, name, body, state, why, remaining, planned_to, told, version, created"
PUT = (
    "INSERT INTO cron_job (home, id, principal, name, body, state, why, remaining, planned_to, look_at, told, version, "
    "created, changed) VALUES ($home, $1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 1, $9, $9) "
    "ON CONFLICT (home, principal, name) DO NOTHING"
)
EDIT = (
    "UPDATE cron_job SET name = $3, body = $4, state = $5, why = $6, remaining = $7, planned_to = $8, look_at = 0, "
    "told = 0, version = version + 1, changed = $9 WHERE home = $home AND id = $1 AND version = $2"
)
GET = f"SELECT {JOB} FROM cron_job WHERE home = $home AND id = $1"
FIND = (
    f"SELECT {JOB} FROM cron_job WHERE home = $home AND (id = $1 OR name = $1) "
    "AND (CAST($2 AS TEXT) = '' OR principal = $2) ORDER BY created, id"
)
LIST = (
    f"SELECT {JOB} FROM cron_job WHERE home = $home AND (CAST($1 AS TEXT) = '' OR principal = $1) ORDER BY created, id"
)
DUE = (
    f"SELECT {JOB} FROM cron_job WHERE home = $home AND state = 'on' AND id > $3 AND (look_at <= $1 OR id IN "
    "(SELECT job FROM cron_instant WHERE home = $home AND ended IS NULL AND state = 'queued' AND why <> 'manual' "
    "AND tries = 0 AND ready_at <= $1 GROUP BY job HAVING count(*) > 1 OR min(late_at) <= $1)) ORDER BY id LIMIT $2"
)
FREE = "ended IS NULL AND state = 'queued' AND owner IS NULL AND why <> 'manual' AND tries = 0"
LOOKED = (
    "UPDATE cron_job SET planned_to = $3, look_at = $4, state = $6 WHERE id = $1 AND planned_to = $2 "
    "AND version = $5 AND state = 'on'"
)
COMES = (
    "UPDATE cron_instant SET ready_at = 0 WHERE home = $home AND ended IS NULL AND state = 'queued' AND ready_at > $1 "
    "AND $1 > 0 AND (why = 'manual' OR tries > 0)"
)
GONE = f"DELETE FROM cron_instant WHERE job = $1 AND due = $2 AND {FREE}"
UNPLAN = f"DELETE FROM cron_instant WHERE job = $1 AND {FREE}"
OLD = (
    "DELETE FROM cron_instant WHERE job = $1 AND ended IS NOT NULL AND due < $3 AND due < (SELECT due FROM "
    "cron_instant WHERE job = $1 AND ended IS NOT NULL ORDER BY due DESC LIMIT 1 OFFSET $2)"
)
DROP = ("DELETE FROM cron_instant WHERE job = $1 AND session = ''", "DELETE FROM cron_job WHERE id = $1")
COUNT = "UPDATE cron_job SET remaining = $2, state = $3, why = $4, told = $5 WHERE id = $1"
TOLD = "UPDATE cron_job SET told = $2 WHERE id = $1"
REPLAN = "UPDATE cron_job SET look_at = 0 WHERE home = $home AND state = 'on' AND planned_to >= $1"


job_of = Columns(Job, JOB.replace("body", "plan"))
changes = Columns(Job, "name, plan, state, why, remaining, planned_to")


class CronJobs(TimedTables):
    """Scheduled jobs. The instants that are planned are rows too."""

    get = One[[str], Job](GET, job_of)
    """The job of that id."""
    are_on = Has[[]]("SELECT 1 FROM cron_job WHERE home = $home AND state = 'on' LIMIT 1", brief=True)
    """Whether a job of this home is on."""
    waiting = Many[[str], int](f"SELECT due FROM cron_instant WHERE job = $1 AND {FREE} ORDER BY due")
    """The planned instants of a job."""

    async def add(self, *jobs: Job) -> frozenset[str]:
        """Add jobs in one commit; the ids of those that are new: the others' person has a job of that name."""

        async def change(tx: Transaction) -> frozenset[str]:
            tx.rings.add("")
            new = set[str]()
            for job in jobs:
                if await tx.run(PUT, job.id, job.principal, *changes.of(job), job.created):
                    new.add(job.id)
            return frozenset(new)

        return await self._engine.write(change)

    async def edit(self, job: Job, *over: Instant) -> bool:
        """Write a changed job; False where somebody changed it meanwhile. Its planned instants are made anew, and the
        instants that are `over` are added."""

        async def change(tx: Transaction) -> bool:
            if not await tx.run(EDIT, job.id, job.version, *changes.of(job), self._clock.now()):
                return False
            await tx.run(UNPLAN, job.id)
            for each in over:
                await insert(tx, each)
            tx.rings.add("")
            return True

        return await self._engine.write(change)

    async def drop(self, job: str) -> None:
        """Delete a job with its instants, but for one that runs."""

        async def change(tx: Transaction) -> None:
            for sql in DROP:
                await tx.run(sql, job)

        await self._engine.write(change)

    async def find(self, name: str, principal: str = "") -> list[Job]:
        """The jobs of that id or name, of one person or all."""
        return [job_of(row) for row in await self._engine.read(lambda tx: tx.rows(FIND, name, principal))]

    async def all(self, principal: str = "") -> list[Job]:
        """Jobs of one person (empty: of all), the oldest first."""
        return [job_of(row) for row in await self._engine.read(lambda tx: tx.rows(LIST, principal))]

    async def due(self, after: str = "", most: int = 200) -> list[Job]:
        """Jobs whose instants are to be planned now, or decided about, by id."""
        now = self._clock.now()
        return [job_of(row) for row in await self._engine.read(lambda tx: tx.rows(DUE, now, most, after))]

    async def plan(self, tx: Transaction, job: Job, planned: Planned) -> tuple[Instant, ...] | None:
        """Apply a plan; the rows that were made. None where another process planned first."""
        state = JobState.DONE if planned.done else JobState.ON
        looked = (job.planned_to, planned.to, planned.look_at, job.version, state.value)
        if not await tx.run(LOOKED, job.id, *looked):
            return None
        for due in planned.gone:
            await tx.run(GONE, job.id, due)
        await tx.run(OLD, job.id, MOST_SHOWN, planned.to - KEPT)
        return tuple([each for each in planned.new if await insert(tx, each)])

    async def replan(self, since: float) -> None:
        """Have the jobs planned anew that were planned up to this moment or a later one; what waited for such a moment
        waits no more."""

        async def change(tx: Transaction) -> None:
            await tx.run(REPLAN, since)
            await tx.run(COMES, since)

        await self._engine.write(change)

    async def count(self, tx: Transaction, job: Job) -> None:
        """Write what an end changed in its job; one that goes on no more has no planned instants."""
        if job.state is not JobState.ON:
            await tx.run(UNPLAN, job.id)
        await tx.run(COUNT, job.id, job.remaining, job.state.value, storable(job.why), job.told)

    async def mark_told(self, tx: Transaction, job: str) -> None:
        """Note that the owner of a job was told that it fails."""
        await tx.run(TOLD, job, self._clock.now())

    async def read(self, tx: Transaction, job: str) -> Job | None:
        """The job of that id, within a change."""
        row = await tx.row(GET, job)
        return None if row is None else job_of(row)
