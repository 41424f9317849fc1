"""Queue of learning jobs, claimed under leases, and the counters that decide when a review is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.claims import Claims, Lease
from hermes_agent.store.transaction import Columns, Engine, Many, One, Row, Tables, Transaction, Write, marks, storable
from hermes_agent.store.workers import Workers

COUNT = (
    "INSERT INTO learning_count (session, iterations, turns) VALUES ($1, $2, $3) ON CONFLICT (session) DO UPDATE SET "
    "iterations = learning_count.iterations + excluded.iterations, turns = learning_count.turns + excluded.turns "
    "RETURNING iterations, turns"
)
COUNTED = "SELECT iterations, turns FROM learning_count WHERE session = $1"
RESET = {
    "skills": "UPDATE learning_count SET iterations = 0 WHERE session = $1",
    "memory": "UPDATE learning_count SET turns = 0 WHERE session = $1",
}
EMPTY = "SELECT what, empty FROM learning_pace WHERE home = $home AND principal = $1"
PACE = (
    "INSERT INTO learning_pace (home, principal, what, empty) VALUES ($home, $1, $2, $3) "
    "ON CONFLICT (home, principal, what) DO UPDATE SET empty = CASE WHEN $3 = 0 THEN 0 ELSE learning_pace.empty + 1 END"
)


class Pace(Tables):
    """Counters that set the pace of reviews: tool rounds and messages per session, empty reviews in a row per
    person."""

    async def count(self, tx: Transaction, session: str, iterations: int, turns: int) -> tuple[int, int]:
        """Add to the counters of a session; their new values."""
        row = await tx.row(COUNT, session, iterations, turns)
        assert row is not None
        return int(row[0]), int(row[1])

    async def counted(self, session: str) -> tuple[int, int]:
        """Tool rounds and messages since the last reviews."""
        row = await self._engine.read(lambda tx: tx.row(COUNTED, session), brief=True)
        return (int(row[0]), int(row[1])) if row else (0, 0)

    async def reset(self, tx: Transaction, session: str, what: str) -> None:
        """Reset the counter for reviews of `skills` or of `memory`."""
        await tx.run(RESET[what], session)

    async def empty(self, tx: Transaction, principal: str) -> dict[str, int]:
        """The number of reviews in a row that kept nothing for this person, by subject."""
        return {row[0]: int(row[1]) for row in await tx.rows(EMPTY, principal)}

    async def note(self, tx: Transaction, principal: str, what: str, *, empty: bool) -> None:
        """Record whether a review was empty; one that was not resets the count."""
        await tx.run(PACE, principal, what, int(empty))


JOB = "id, kind, session, principal, what, first, last, state, attempts, created, ended, told"
FIELDS = f"{JOB}, calls, input, cached, output, cost, kept, waiting, refused, note"
QUEUE = (
    "INSERT INTO learning_job (home, id, kind, session, principal, what, first, last, state, epoch, attempts, created, "
    "calls, input, cached, output, kept, waiting, refused, told, note) "
    "VALUES ($home, $1, $2, $3, $4, $5, $6, $7, 'queued', 0, 0, $8, 0, 0, 0, 0, 0, 0, 0, 0, $9) ON CONFLICT (id) DO "
    "NOTHING"
)
END = (
    "state = $4, ended = $5, calls = $6, input = $7, cached = $8, output = $9, cost = $10, kept = $11, waiting = $12, "
    "refused = $13, note = $14"
)
GET = f"SELECT {FIELDS} FROM learning_job WHERE home = $home AND id = $1"
LIST = (
    f"SELECT {FIELDS} FROM learning_job WHERE home = $home AND (CAST($1 AS TEXT) = '' OR kind = $1) "
    "AND (CAST($2 AS TEXT) = '' OR session = $2) AND created >= $3 ORDER BY created DESC, id DESC LIMIT $4"
)
UNTOLD = (
    f"SELECT {FIELDS} FROM learning_job WHERE home = $home AND told = 0 AND ended IS NOT NULL AND session <> '' "
    "AND kept + waiting > 0 ORDER BY created"
)
TOLD = "UPDATE learning_job SET told = 1 WHERE home = $home AND id = $1"
OVERLAP, AND = "overlap:", "+"  # no name holds these
OVERLAPPED = (
    "INSERT INTO learning_support (home, item, session, at) VALUES ($home, $1, $2, $3) "
    "ON CONFLICT (item, session) DO NOTHING"
)
OVERLAPS = f"SELECT DISTINCT item FROM learning_support WHERE home = $home AND item LIKE '{OVERLAP}%'"
CONSIDERED = "DELETE FROM learning_support WHERE home = $home AND item = $1"
MOST_ATTEMPTS = 3
"""So often a job is begun; one that took so many processes along is given up."""


class JobKind(StrEnum):
    """Kind of a learning job: `review` a conversation, a `curator` pass, `retract` what only a deleted conversation
    supported, `probe` the constraints that are due."""

    REVIEW = "review"
    CURATOR = "curator"
    RETRACT = "retract"
    PROBE = "probe"


class JobState(StrEnum):
    """State of a job; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Cost and outcome of a job: tokens, US dollars (None: unknown price), changes `kept`, `waiting` proposals,
    `refused` calls; `note` is its last word. `overlaps` are skills that a review saw overlap, `considered` those
    that a curator pass has examined."""

    calls: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float | None = 0.0
    kept: int = 0
    waiting: int = 0
    refused: int = 0
    note: str = ""
    overlaps: tuple[tuple[str, ...], ...] = ()
    considered: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkept(Account):
    """Account of a curator job that asked a model about the subject `what`, and whether that `brought` anything."""

    what: str
    brought: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A learning job. `what` are its subjects joined by `+` (`skills+memory`); `first` and `last` number the events
    of `session` that it covers; `account` is complete once it ended."""

    id: str
    kind: JobKind
    session: str
    principal: str
    what: str
    first: int
    last: int
    created: float
    state: JobState = JobState.QUEUED
    attempts: int = 0
    ended: float | None = None
    account: Account = Account()
    told: bool = False

    @property
    def subjects(self) -> frozenset[str]:
        """Its subjects as a set."""
        return frozenset(filter(None, self.what.split("+")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A learning job with its lease."""

    job: Job
    lease: Lease


used_of = Columns(Account, "calls, input, cached, output, cost, kept, waiting, refused, note")
of_job = Columns(Job, JOB)


def job_of(row: Row) -> Job:
    """The job of a row, with its account."""
    return of_job(row, account=used_of(row[12:]))


class Learning(Tables):
    """Queue of learning jobs. `pace` records the outcome of each review and upkeep."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers, pace: Pace) -> None:
        super().__init__(engine)
        self._clock, self._pace = clock, pace
        self._claims = Claims(engine, workers, "learning_job", FIELDS)
        self.ready = self._claims.ready

    async def queue(self, tx: Transaction, job: Job) -> None:
        """Add a job; an existing one of that id stays unchanged."""
        span = (job.first, job.last, job.created, storable(self._engine.redact(job.account.note)))
        await tx.run(QUEUE, job.id, job.kind.value, job.session, job.principal, job.what, *span)

    async def claim(self, kinds: Sequence[JobKind] = tuple(JobKind)) -> Claim | None:
        """Claim the job that waited longest; None where there is none. Jobs with too many attempts are ended as
        failed."""
        which = f"AND kind IN ({marks(len(kinds), 2)})"
        while (found := await self._claims.claim(which, *(kind.value for kind in kinds))) is not None:
            claim = Claim(job=job_of(found[1]), lease=found[0])
            if claim.job.attempts <= MOST_ATTEMPTS:
                return claim
            await self.end(claim, JobState.FAILED, Account(cost=None, note="Given up: the program died in it again."))
        return None

    async def check(self, claim: Claim) -> None:
        """Send a heartbeat, and raise `LostLease` where the job belongs to another worker now."""
        await self._claims.check(claim.lease)

    async def release(self, claim: Claim, note: str = "", *, counts: bool = False) -> None:
        """Put the job back into the queue. With `counts` that is a failed attempt; without, this process is leaving."""
        await self._claims.release(claim.lease, note, counts=counts)

    async def end(self, claim: Claim, state: JobState, account: Account) -> None:
        """End the job with its account, and update pace and overlaps once. Does nothing for a lost claim."""
        used = used_of.of(replace(account, note=self._engine.redact(account.note)))
        now, job = self._clock.now(), claim.job

        async def change(tx: Transaction) -> None:
            if not await self._claims.end(tx, claim.lease, END, state.value, now, *used):
                return
            for names in account.overlaps:
                await tx.run(OVERLAPPED, _overlap(names), job.session, now)
            for names in account.considered:
                await tx.run(CONSIDERED, _overlap(names))
            if state is JobState.DONE:
                for what, brought in sorted(_brought(job, account).items()):
                    await self._pace.note(tx, job.principal, what, empty=not brought)

        await self._engine.write(change)

    async def overlaps(self) -> list[tuple[str, ...]]:
        """Names of skills that reviews saw overlap and no curator pass has examined yet."""
        rows = await self._engine.read(lambda tx: tx.rows(OVERLAPS))
        return sorted(tuple(row[0].removeprefix(OVERLAP).split(AND)) for row in rows)

    get = One[[str], Job](GET, job_of)
    """The job of that id."""
    untold = Many[[], Job](UNTOLD, job_of)
    """Jobs that produced something and were not reported to their conversation."""
    mark_reported = Write[[str]](TOLD)
    """Record that the job was reported to its conversation."""

    async def list(
        self, kind: JobKind | None = None, session: str = "", *, since: float = 0.0, limit: int = 100
    ) -> list[Job]:
        """Jobs, the newest first."""
        return [
            job_of(row)
            for row in await self._engine.read(
                lambda tx: tx.rows(LIST, kind.value if kind else "", session, since, limit)
            )
        ]


def _overlap(names: Sequence[str]) -> str:
    return f"{OVERLAP}{AND.join(names)}"


def _brought(job: Job, account: Account) -> dict[str, bool]:
    if isinstance(account, Upkept):
        return {account.what: account.brought}
    return dict.fromkeys(job.subjects, account.kept + account.waiting > 0) if job.kind is JobKind.REVIEW else {}
