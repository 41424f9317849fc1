"""The learning account: what reviews used, by the ledger of usage, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Job, JobState
from hermes_agent.store.usage import UsageRow

NONE = Account()


async def used_by(store: Store, session: str, job: str, account: Account = NONE) -> Account:
    """The account with what the calls of a job used; `cost` None where a price is unknown."""
    return with_usage(account, [row for row in await store.usage.rows(session) if row.run == job])


def with_usage(account: Account, rows: Sequence[UsageRow]) -> Account:
    """The account with what these calls used."""
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
    """Jobs of one kind together. `cost` counts known prices only; `unpriced` says how many jobs have an unknown one,
    `empty` how many kept nothing."""

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
        """How much of what was asked came from the provider's cache, 0 to 1."""
        return self.cached / self.input if self.input else 0.0


def together(jobs: Iterable[Job]) -> Sum:
    """What these jobs used and brought."""
    total = Sum()
    for job in jobs:
        if job.ended is None or job.state is JobState.DROPPED:
            continue
        account = job.account
        total = Sum(
            jobs=total.jobs + 1,
            empty=total.empty + (account.kept + account.waiting == 0),
            failed=total.failed + (job.state is JobState.FAILED),
            calls=total.calls + account.calls,
            input=total.input + account.input,
            cached=total.cached + account.cached,
            output=total.output + account.output,
            cost=total.cost + (account.cost or 0.0),
            unpriced=total.unpriced + (account.cost is None),
            kept=total.kept + account.kept,
            waiting=total.waiting + account.waiting,
            refused=total.refused + account.refused,
        )
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What learning used and brought: jobs that ended by kind, the latest ones, lessons in force (those with an end,
    and the prohibitions), and how many jobs are in line."""

    kinds: dict[str, Sum]
    latest: list[Job]
    bounded: int
    rules: int
    in_line: int
