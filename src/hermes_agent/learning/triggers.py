"""When a conversation is reviewed: counted in the store with the end of each run, on every surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.core.ids import Ids
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Job, JobKind
from hermes_agent.store.transaction import Transaction

PATIENCE = 1
"""So many reviews in a row may keep nothing before the interval doubles with each further one."""
MOST_DOUBLINGS = 6


class What(StrEnum):
    """What a review is about. `skills` is due by rounds of tools, `memory` by messages of people."""

    SKILLS = "skills"
    MEMORY = "memory"


TOOL = {What.SKILLS: "skill_manage", What.MEMORY: "memory"}
"""The tool without which an agent reviews nothing of that kind."""


def stretched(interval: int, empty: int) -> int:
    """The interval after so many reviews in a row that kept nothing."""
    return interval << min(max(0, empty - PATIENCE), MOST_DOUBLINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggers:
    """A run's `Closing`: counts, and puts a review in line where one is due.

    `intervals` has what this agent may review (empty: it counts nothing); `rung` is called when the end is committed
    that leaves work to do.
    """

    store: Store
    clock: Clock
    ids: Ids
    principal: str
    intervals: Mapping[What, int]
    rung: Callable[[], None]

    def changes(self, session: Session, ended: RunEnded) -> Sequence[Change]:
        """The counting, and after a reply that was given whole the review that is due."""
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
