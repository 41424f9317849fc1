"""Learning jobs: their background worker, the counters that queue reviews, and statistics of costs and results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum

from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, LostLease, StoreError
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.host.logs import log_of
from hermes_agent.host.tasks import spawn
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Job, JobKind, JobState
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.usage import UsageRow

log = logging.getLogger(__name__)

Does = Callable[[Claim], Awaitable[Account]]
"""Does one job; raises `HermesError` where it could not."""
Tells = Callable[[Job], Awaitable[bool]]
"""Tells the conversation what came of a job; False where that has to wait."""


class Unfinished(HermesError):
    """A job that could not be completed; `account` has its cost and outcome until then."""

    def __init__(self, reason: str, account: Account) -> None:
        super().__init__(reason)
        self.account = account


class Jobs:
    """Background worker that runs the learning jobs of a store in this process, one at a time. `tells` is called
    for each job that produced something."""

    def __init__(self, store: Store, does: Mapping[JobKind, Does], tells: Tells) -> None:
        self._store, self._does, self._tells = store, does, tells
        self._task: asyncio.Task[int] | None = None
        self._again = self._leaving = False

    @property
    def busy(self) -> bool:
        """Whether a job is in progress."""
        return self._task is not None and not self._task.done()

    def ring(self) -> None:
        """Start working on the queue, unless that is in progress."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = spawn(self._until_rest(), name="learning")

    async def run(self) -> int:
        """Do all queued jobs; their number."""
        self.ring()
        assert self._task is not None
        return await asyncio.shield(self._task)

    async def finish(self) -> None:
        """Finish the current job and start no other."""
        self._leaving = True
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))

    async def close(self) -> None:
        """Stop and release the current job."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _until_rest(self) -> int:
        done = 0
        while self._again:
            self._again = False
            while not self._leaving and (claim := await self._store.learning.claim(list(self._does))) is not None:
                await self._do(claim)
                done += 1
            await self._report()
        return done

    async def _do(self, claim: Claim) -> None:
        # Boundary: one job.
        try:
            account = await self._does[claim.job.kind](claim)
            log_of("learning", session=claim.job.session).info("%s %s: done", claim.job.kind, claim.job.id)
            await self._store.learning.end(claim, JobState.DONE, account)
        except asyncio.CancelledError:
            with suppress(StoreError):
                await asyncio.shield(self._store.learning.release(claim, "The program ended."))
            raise
        except LostLease:
            log.warning("job %s was taken over", claim.job.id)
        except Unfinished as error:
            await self._failed(claim, error.account)
        except HermesError as error:
            await self._failed(claim, Account(cost=None, note=str(error)))
        except Exception as error:
            log.exception("job %s failed", claim.job.id)
            await self._failed(claim, Account(cost=None, note=f"{type(error).__name__}: {error}"))

    async def _failed(self, claim: Claim, account: Account) -> None:
        """End it: what it was about is seen again with what comes next; nothing is tried over and over."""
        log.info("job %s: %s", claim.job.id, account.note)
        await self._store.learning.end(claim, JobState.FAILED, account)

    async def _report(self) -> None:
        for job in await self._store.learning.untold():
            if await self._tells(job):
                await self._store.learning.mark_reported(job.id)


PATIENCE = 1
"""So many reviews in a row may keep nothing before the interval doubles with each further one."""
MOST_DOUBLINGS = 6


class What(StrEnum):
    """Subject of a review. `skills` is due by rounds of tool calls, `memory` by messages of people."""

    SKILLS = "skills"
    MEMORY = "memory"


TOOL = {What.SKILLS: "skill_manage", What.MEMORY: "memory"}
"""The tool without which an agent reviews nothing of that kind."""


def stretched(interval: int, empty: int) -> int:
    """The interval after so many empty reviews in a row."""
    return interval << min(max(0, empty - PATIENCE), MOST_DOUBLINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """Counts the tool rounds and messages of an ended run, and queues a review that is due; implements `agent.Closing`.
    `intervals` lists what may be reviewed (empty: nothing is counted); `rung` is called after a commit that queued
    work."""

    store: Store
    clock: Clock
    ids: Ids
    principal: str
    intervals: Mapping[What, int]
    rung: Callable[[], None]

    def changes(self, session: Session, ended: RunEnded) -> Sequence[Change]:
        """The changes that count, and queue a due review after a complete reply."""
        if not self.intervals:
            return ()
        counted = {What.SKILLS: session.rounds, What.MEMORY: session.heard}
        last, store = session.number + 1, self.store  # The end itself is the last event.
        job = Job(
            id=self.ids.short(),
            kind=JobKind.REVIEW,
            session=session.id,
            principal=self.principal,
            what="",
            first=1,
            last=last,
            created=self.clock.now(),
        )

        async def change(tx: Transaction) -> None:
            now = await store.pace.count(tx, session.id, counted[What.SKILLS], counted[What.MEMORY])
            if ended.outcome is not Outcome.ANSWERED:
                return
            due = await self._due(tx, dict(zip(What, now, strict=True)))
            for what in due:
                await store.pace.reset(tx, session.id, what)
            if due:
                await store.learning.queue(tx, replace(job, what="+".join(due)))
            if await store.lessons.any(tx, job.created):
                # Before the review: what is in force bounds what it may add.
                probe = replace(job, id=f"{job.id}p", kind=JobKind.PROBE, created=job.created - 0.001)
                await store.learning.queue(tx, probe)
            if due or await store.learning.ready(tx):
                self.rung()

        return (change,)

    async def _due(self, tx: Transaction, counts: Mapping[What, int]) -> list[What]:
        reached = [what for what, interval in self.intervals.items() if interval and counts[what] >= interval]
        if not reached:
            return []
        empty = await self.store.pace.empty(tx, self.principal)
        return [what for what in reached if counts[what] >= stretched(self.intervals[what], empty.get(what, 0))]


NONE = Account()
COUNTED = ("calls", "input", "cached", "output", "kept", "waiting", "refused")


async def used_by(store: Store, session: str, job: str, account: Account = NONE) -> Account:
    """The account with the cost of a job's calls; `cost` None where a price is unknown."""
    return with_usage(account, [row for row in await store.usage.rows(session) if row.run == job])


def with_usage(account: Account, rows: Sequence[UsageRow]) -> Account:
    """The account with the cost of these calls."""
    costs = [row.cost for row in rows]
    return replace(
        account,
        calls=len(rows),
        input=sum(row.usage.input for row in rows),
        cached=sum(row.usage.cached for row in rows),
        output=sum(row.usage.output for row in rows),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Totals of the learning jobs of one kind. `cost` counts known prices only; `unpriced` is the number of jobs
    with an unknown price, `empty` of those that kept nothing."""

    jobs: int = 0
    empty: int = 0
    failed: int = 0
    calls: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float = 0.0
    unpriced: int = 0
    kept: int = 0
    waiting: int = 0
    refused: int = 0

    @property
    def cached_share(self) -> float:
        """Share of the input from the provider's cache, 0 to 1."""
        return self.cached / self.input if self.input else 0.0


def together(jobs: Iterable[Job]) -> Sum:
    """Totals of these jobs."""
    ended = [job for job in jobs if job.ended is not None and job.state is not JobState.DROPPED]
    accounts = [job.account for job in ended]
    return Sum(
        jobs=len(ended),
        empty=sum(each.kept + each.waiting == 0 for each in accounts),
        failed=sum(job.state is JobState.FAILED for job in ended),
        cost=sum((each.cost or 0.0 for each in accounts), 0.0),
        unpriced=sum(each.cost is None for each in accounts),
        **{name: sum(getattr(each, name) for each in accounts) for name in COUNTED},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Costs and results of learning: totals of ended jobs by kind, the latest jobs, constraints in force (`bounded`
    have an end, `rules` are prohibitions), and the number of queued jobs."""

    kinds: dict[str, Sum]
    latest: list[Job]
    bounded: int
    rules: int
    in_line: int
