"""Tables of scheduled jobs and of their instants, which are claimed under leases."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LostLease
from hermes_agent.core.outbound import SlotState
from hermes_agent.core.records import revive
from hermes_agent.store.bodies import plain, storable, written
from hermes_agent.store.claims import IS_HELD, Claims, Lease
from hermes_agent.store.transaction import Engine, Row, TimedTables, Transaction, Value, marks
from hermes_agent.store.workers import Workers


class Kind(StrEnum):
    """Kind of a schedule: a cron line, an interval, one time."""

    CRON = "cron"
    EVERY = "every"
    AT = "at"


class JobState(StrEnum):
    """State of a job: `done` has no instants left, `broken` cannot run at all."""

    ON = "on"
    PAUSED = "paused"
    DONE = "done"
    BROKEN = "broken"


class InstantState(StrEnum):
    """State of an instant: waiting for its time, under way, and the four ends."""

    PLANNED = "queued"
    RUNNING = "running"
    RAN = "ran"
    FAILED = "failed"
    MISSED = "missed"
    SKIPPED = "skipped"


class CatchUp(StrEnum):
    """What becomes of instants whose time passed while nobody worked: none runs, the last one, or each."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"


class Overlap(StrEnum):
    """What becomes of an instant whose job still runs: it is skipped, waits, or stops that run."""

    SKIP = "skip"
    QUEUE = "queue"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a job runs. `spec` is five cron fields, the seconds of an interval (counted from `anchor`), or a time in
    seconds since 1970; `note` says what was assumed about the words."""

    kind: Kind
    spec: str
    zone: str
    anchor: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a job does, and how.

    - `origin` is the conversation (by key) that made it, `author` wrote it: owner, member, agent or import;
    - `script` runs first, and its output stands before the prompt, or is the message where no `agent` runs; a `gate`
      that fails, or whose last line is `{"wakeAgent": false}`, skips the instant;
    - `deliver` are targets: `origin`, `local`, `all`, or a chat;
    - `window` (None: by the schedule) is how late an instant may begin, `jitter` the most seconds of its delay;
    - `seconds` limits a run, `money` (nanodollars) and `tokens` too; `ends` is when it stops for good;
    - `quiet`: failures are shown in lists alone.
    """

    schedule: Schedule
    prompt: str = ""
    skills: tuple[str, ...] = ()
    script: str = ""
    gate: str = ""
    agent: bool = True
    model: str = ""
    effort: str = ""
    toolsets: tuple[str, ...] | None = None
    folder: str = ""
    origin: str = ""
    author: str = "owner"
    deliver: tuple[str, ...] = ("origin",)
    quiet: bool = False
    context_from: tuple[str, ...] = ()
    catch_up: CatchUp = CatchUp.LAST
    window: float | None = None
    overlap: Overlap = Overlap.SKIP
    jitter: int = 0
    seconds: int = 1800
    retries: int = 2
    money: int | None = None
    tokens: int | None = None
    ends: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A scheduled job. `remaining` is how often it still runs (None: without end), `planned_to` the moment up to which
    its instants are rows, `told` when its owner was told last that it fails (0: it does not)."""

    id: str
    principal: str
    name: str
    plan: Plan
    created: float
    state: JobState = JobState.ON
    why: str = ""
    remaining: int | None = None
    planned_to: int = 0
    told: float = 0.0
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One instant of a job. `due` is its identity; `counts` is how many the row stands for; `tries` are runs that
    failed for the provider's sake; `words` is what came of it, `letters` its keys in the outbox."""

    job: str
    due: int
    state: InstantState = InstantState.PLANNED
    why: str = ""
    counts: int = 1
    ready_at: float = 0.0
    late_at: float = 0.0
    queues: bool = False
    attempts: int = 0
    tries: int = 0
    session: str = ""
    started: float | None = None
    ended: float | None = None
    words: str = ""
    letters: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Its id, from which everything that it starts is named."""
        return f"{self.job}@{self.due}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """An instant with its lease."""

    instant: Instant
    lease: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What planning a job changes: rows to make (also merged ones that are over), to delete (by due), and the moment of
    the next look; `done`: there are none any more."""

    new: tuple[Instant, ...]
    gone: tuple[int, ...]
    to: int
    look_at: float
    done: bool = False


MANUAL = "manual"
"""The reason of an instant that a person asked for."""
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
FIND = f"SELECT {JOB} FROM cron_job WHERE home = $home AND (id = $1 OR name = $1) AND (CAST($2 AS TEXT) = '' OR principal = $2)"
LIST = f"SELECT {JOB} FROM cron_job WHERE home = $home AND (CAST($1 AS TEXT) = '' OR principal = $1) ORDER BY created, id"
DUE = (
    f"SELECT {JOB} FROM cron_job WHERE home = $home AND state = 'on' AND (look_at <= $1 OR id IN (SELECT job FROM "
    "cron_instant WHERE home = $home AND ended IS NULL AND state = 'queued' AND why <> 'manual' AND tries = 0 AND ready_at <= $1 "
    "GROUP BY job HAVING count(*) > 1 OR min(late_at) <= $1)) ORDER BY id LIMIT $2"
)
FREE = "ended IS NULL AND state = 'queued' AND owner IS NULL AND why <> 'manual' AND tries = 0"
WAITING = f"SELECT due FROM cron_instant WHERE job = $1 AND {FREE} ORDER BY due"
LOOKED = (
    "UPDATE cron_job SET planned_to = $3, look_at = $4, state = $6 WHERE id = $1 AND planned_to = $2 AND version = $5 "
    "AND state = 'on'"
)
NEW = (
    "INSERT INTO cron_instant (home, id, job, due, ready_at, late_at, queues, state, why, counts, epoch, attempts, tries, "
    "note, session, ended, words, letters, filed) VALUES ($home, $1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, 0, '', '', "
    "$10, '', '[]', 1) ON CONFLICT (job, due) DO NOTHING"
)
GONE = f"DELETE FROM cron_instant WHERE job = $1 AND due = $2 AND {FREE}"
UNPLAN = f"DELETE FROM cron_instant WHERE job = $1 AND {FREE}"
OLD = (
    "DELETE FROM cron_instant WHERE job = $1 AND ended IS NOT NULL AND due < (SELECT due FROM cron_instant WHERE job = $1 "
    "AND ended IS NOT NULL ORDER BY due DESC LIMIT 1 OFFSET $2) AND due < $3"
)
DROP = ("DELETE FROM cron_instant WHERE job = $1 AND session = ''", "DELETE FROM cron_job WHERE id = $1")
FIELDS = (
    "job, due, state, why, counts, ready_at, late_at, queues, attempts, tries, session, started, ended, words, letters"
)
CAN_BEGIN = (
    "session = '' AND (queues = 0 OR NOT EXISTS (SELECT 1 FROM cron_instant AS other WHERE other.job = cron_instant.job "
    "AND other.ended IS NULL AND other.state = 'running' AND other.id <> cron_instant.id))"
)
WHICH = (
    f"AND ready_at <= $2 AND {CAN_BEGIN} AND (SELECT count(*) FROM cron_instant AS busy WHERE busy.home = $home AND "
    "busy.ended IS NULL AND busy.state = 'running' AND busy.id <> cron_instant.id) < $3"
)
BEGUN = f"UPDATE cron_instant SET owner = NULL, session = $4, started = $5 WHERE {IS_HELD}"
LATER = "UPDATE cron_instant SET owner = NULL, state = 'queued', session = '', tries = tries + 1, ready_at = $2 WHERE id = $1"
END = (
    "UPDATE cron_instant SET owner = NULL, state = $2, why = $3, words = $4, letters = $5, ended = $6, filed = $7 "
    "WHERE id = $1 AND ended IS NULL"
)
BY_SESSION = f"SELECT {FIELDS} FROM cron_instant WHERE session = $1 AND ended IS NULL"
RUNNING = f"SELECT {FIELDS} FROM cron_instant WHERE job = $1 AND ended IS NULL AND state = 'running' AND due <> $2"
# Whose run ended without its agent: it could not begin, was refused, or its session is gone.
LEFT = (
    f"SELECT {FIELDS}, coalesce((SELECT reason FROM inbox WHERE inbox.lane = cron_instant.session ORDER BY inbox.id LIMIT "
    "1), '') FROM cron_instant WHERE home = $home AND ended IS NULL AND session <> '' AND NOT EXISTS (SELECT 1 FROM inbox "
    "WHERE inbox.lane = cron_instant.session AND inbox.ended IS NULL)"
)
OF_JOB = f"SELECT {FIELDS} FROM cron_instant WHERE job = $1 ORDER BY due DESC LIMIT $2"
LAST_WORDS = (
    "SELECT words FROM cron_instant WHERE job = $1 AND state = 'ran' AND words <> '' ORDER BY due DESC LIMIT 1"
)
UNFILED = f"SELECT {FIELDS} FROM cron_instant WHERE home = $home AND filed = 0 AND ended IS NOT NULL LIMIT 100"
FILED = "UPDATE cron_instant SET filed = 1 WHERE id = $1"
COUNT = "UPDATE cron_job SET remaining = $2, state = $3, why = $4, told = $5 WHERE id = $1"
NEXT = (
    "SELECT (SELECT min(look_at) FROM cron_job WHERE home = $home AND state = 'on'), (SELECT min(ready_at) FROM "
    f"cron_instant WHERE home = $home AND ended IS NULL AND state = 'queued' AND owner IS NULL AND {CAN_BEGIN} AND "
    "(SELECT count(*) FROM cron_instant AS busy WHERE busy.home = $home AND busy.ended IS NULL AND busy.state = 'running') "
    "< $1), (SELECT count(*) FROM cron_instant WHERE home = $home AND ended IS NULL AND state = 'running'), "
    "(SELECT count(*) FROM cron_instant WHERE home = $home AND filed = 0 AND ended IS NOT NULL)"
)
NEXT_OF = "SELECT min(due) FROM cron_instant WHERE job = $1 AND ended IS NULL AND state = 'queued'"
SENT = "SELECT state FROM outbox WHERE home = $home AND key IN ({keys})"
REPLAN = "UPDATE cron_job SET look_at = 0 WHERE home = $home AND state = 'on'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What comes next in a home: when jobs are planned again, when an instant can begin (None: none), how many are
    under way, and how many results are not files yet."""

    look_at: float | None
    ready_at: float | None
    running: int
    unfiled: int


class CronTables(TimedTables):
    """Jobs and instants. Instants are claimed by whoever fires them."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers) -> None:
        super().__init__(engine, clock)
        self._claims = Claims(engine, workers, "cron_instant", FIELDS, order="ready_at, id")
        self.release, self.check = self._claims.release, self._claims.check

    # 1. Jobs

    async def add(self, job: Job) -> bool:
        """Add a job; False where its person has one of that name."""
        columns = (*_columns(job)[:5], job.remaining, job.planned_to, job.created)

        async def change(tx: Transaction) -> bool:
            tx.rings.add("")
            return await tx.run(PUT, job.id, job.principal, *columns) > 0

        return await self._engine.write(change)

    async def edit(self, job: Job, *over: Instant) -> bool:
        """Write a changed job; False where somebody changed it meanwhile. Its planned instants are made anew, and the
        instants that are `over` are added."""

        async def change(tx: Transaction) -> bool:
            columns = (*_columns(job)[:4], job.remaining, job.planned_to, self._clock.now())
            if not await tx.run(EDIT, job.id, job.version, *columns):
                return False
            await tx.run(UNPLAN, job.id)
            for each in over:
                await self._insert(tx, each)
            tx.rings.add("")
            return True

        return await self._engine.write(change)

    async def drop(self, job: str) -> None:
        """Delete a job with its instants, but for one that runs."""

        async def change(tx: Transaction) -> None:
            for sql in DROP:
                await tx.run(sql, job)

        await self._engine.write(change)

    async def get(self, job: str) -> Job | None:
        """The job of that id."""
        return await self._one(_job, GET, job)

    async def find(self, name: str, principal: str = "") -> list[Job]:
        """The jobs of that id or name, of one person or all."""
        return [_job(row) for row in await self._engine.read(lambda tx: tx.rows(FIND, name, principal))]

    async def list(self, principal: str = "") -> list[Job]:
        """Jobs of one person (empty: of all), the oldest first."""
        return [_job(row) for row in await self._engine.read(lambda tx: tx.rows(LIST, principal))]

    # 2. Planning

    async def to_plan(self, most: int = 200) -> list[Job]:
        """Jobs whose instants are to be planned now, or decided about."""
        now = self._clock.now()
        return [_job(row) for row in await self._engine.read(lambda tx: tx.rows(DUE, now, most))]

    async def waiting(self, job: str) -> list[int]:
        """The planned instants of a job."""
        return [int(row[0]) for row in await self._engine.read(lambda tx: tx.rows(WAITING, job))]

    async def plan(self, tx: Transaction, job: Job, planned: Planned) -> tuple[Instant, ...] | None:
        """Apply a plan; the rows that were made. None where another process planned first."""
        state = JobState.DONE if planned.done else JobState.ON
        looked = (job.planned_to, planned.to, planned.look_at, job.version, state.value)
        if not await tx.run(LOOKED, job.id, *looked):
            return None
        for due in planned.gone:
            await tx.run(GONE, job.id, due)
        await tx.run(OLD, job.id, MOST_SHOWN, planned.to - KEPT)
        return tuple([each for each in planned.new if await self._insert(tx, each)])

    async def ask_for(self, instant: Instant) -> None:
        """Add an instant that a person asked for."""

        async def change(tx: Transaction) -> None:
            await self._insert(tx, instant)
            tx.rings.add("")

        await self._engine.write(change)

    async def replan(self) -> None:
        """Have all jobs planned anew."""
        await self._engine.write(lambda tx: tx.run(REPLAN))

    async def ahead(self, most: int) -> Ahead:
        """What comes next, where `most` instants may be under way."""
        row = await self._engine.read(lambda tx: tx.row(NEXT, most), brief=True)
        assert row is not None
        return Ahead(look_at=row[0], ready_at=row[1], running=int(row[2]), unfiled=int(row[3]))

    # 3. Firing

    async def claim(self, most: int) -> Claimed | None:
        """Claim the instant that is due longest, where fewer than `most` are under way; also one whose worker died."""
        found = await self._claims.claim(WHICH, self._clock.now(), most)
        return None if found is None else Claimed(lease=found[0], instant=_instant(found[1]))

    async def begun(self, tx: Transaction, lease: Lease, session: str) -> None:
        """Note the session that runs an instant. Raises `LostLease`."""
        if not await tx.run(BEGUN, *lease.key, session, self._clock.now()):
            raise LostLease(f"Another worker runs {lease.id}.")

    async def end(self, tx: Transaction, ended: Instant, *, files: bool) -> bool:
        """End an instant (its state, why, words, letters), with a file to be written; False where it has ended."""
        said, letters = storable(self._engine.redact(ended.words)), written(ended.letters)
        tx.rings.add("")
        facts = (ended.state.value, storable(ended.why), said, letters, self._clock.now(), int(not files))
        return await tx.run(END, ended.id, *facts) > 0

    async def retry(self, tx: Transaction, instant: Instant, at: float) -> None:
        """Put an instant back, to be tried again at a time."""
        tx.rings.add("")
        await tx.run(LATER, instant.id, at)

    async def count(self, tx: Transaction, job: Job) -> None:
        """Write what an end changed in its job; one that goes on no more has no planned instants."""
        if job.state is not JobState.ON:
            await tx.run(UNPLAN, job.id)
        await tx.run(COUNT, job.id, job.remaining, job.state.value, storable(job.why), job.told)

    async def job_in(self, tx: Transaction, job: str) -> Job | None:
        """The job of that id, within a change."""
        row = await tx.row(GET, job)
        return None if row is None else _job(row)

    async def by_session(self, tx: Transaction, session: str) -> Instant | None:
        """The instant that a session runs."""
        row = await tx.row(BY_SESSION, session)
        return None if row is None else _instant(row)

    async def running(self, instant: Instant) -> list[Instant]:
        """Other instants of the same job that are under way."""
        return [_instant(row) for row in await self._engine.read(lambda tx: tx.rows(RUNNING, instant.job, instant.due))]

    async def left(self) -> list[tuple[Instant, str]]:
        """Instants whose run is over and did not say so, with the reason that their message got."""
        return [(_instant(row[:-1]), row[-1]) for row in await self._engine.read(lambda tx: tx.rows(LEFT))]

    # 4. What came of it

    async def instants(self, job: str, most: int = 20) -> list[Instant]:
        """Instants of a job, the latest first."""
        return [_instant(row) for row in await self._engine.read(lambda tx: tx.rows(OF_JOB, job, most))]

    async def next_of(self, job: str) -> int | None:
        """When the next instant of a job is due."""
        return await self._one(lambda row: row[0], NEXT_OF, job)

    async def last_words(self, job: str) -> str:
        """What the last instant that ran said; empty for nothing."""
        return await self._one(lambda row: str(row[0]), LAST_WORDS, job) or ""

    async def delivery(self, letters: Sequence[str]) -> str:
        """Whether the letters of an instant were delivered: `none`, `sent`, or the worst state of its rows in the outbox;
        `unknown` where the outbox forgot them."""
        if not letters:
            return "none"
        sql = SENT.format(keys=marks(len(letters), 1))
        states = {row[0] for row in await self._engine.read(lambda tx: tx.rows(sql, *letters))}
        worst = (SlotState.FAILED, SlotState.UNSURE, SlotState.SENDING, SlotState.PENDING, SlotState.SENT)
        return next((each.value for each in worst if each.value in states), "unknown")

    async def unfiled(self) -> list[Instant]:
        """Instants that ended, and whose result is in no file yet."""
        return [_instant(row) for row in await self._engine.read(lambda tx: tx.rows(UNFILED))]

    async def filed(self, instant: Instant) -> None:
        """Note that the file of an instant is there."""
        await self._engine.write(lambda tx: tx.run(FILED, instant.id), durable=False)

    async def _insert(self, tx: Transaction, each: Instant) -> bool:
        when: tuple[Value, ...] = (each.id, each.job, each.due, each.ready_at, each.late_at, int(each.queues))
        return await tx.run(NEW, *when, each.state.value, each.why, each.counts, each.ended) > 0


def _columns(job: Job) -> tuple[str, str, str, str]:
    return job.name, storable(written(job.plan)), job.state.value, storable(job.why)


def _job(row: Row) -> Job:
    return Job(
        id=row[0],
        principal=row[1],
        name=row[2],
        plan=revive(Plan, plain(row[3])),
        state=JobState(row[4]),
        why=row[5],
        remaining=row[6],
        planned_to=row[7],
        told=row[8],
        version=row[9],
        created=row[10],
    )


def _instant(row: Row) -> Instant:
    job, due, state, why, counts, ready_at, late_at, queues, attempts, tries, session, started, ended, words, letters = row
    return Instant(
        job=job,
        due=due,
        state=InstantState(state),
        why=why,
        counts=counts,
        ready_at=ready_at,
        late_at=late_at,
        queues=bool(queues),
        attempts=attempts,
        tries=tries,
        session=session,
        started=started,
        ended=ended,
        words=words,
        letters=tuple(plain(letters)),
    )
