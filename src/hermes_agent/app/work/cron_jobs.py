"""Making and changing scheduled jobs: parses what a person or the agent wants, and checks who may have it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from itertools import islice
from typing import TYPE_CHECKING

from hermes_agent.app.work.cron_drafts import Draft, Drafting
from hermes_agent.app.work.cron_facts import InstantFacts, JobFacts, instant_facts, job_facts
from hermes_agent.app.work.cron_places import LOCAL, ORIGIN, scripts_in
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import Home, environment
from hermes_agent.host.time_zone import machine_zone
from hermes_agent.store.database import Store
from hermes_agent.store.work.cron.records import (
    MANUAL,
    Instant,
    InstantState,
    Job,
    JobState,
    Kind,
    Plan,
)
from hermes_agent.work.cron.planning import over, passed
from hermes_agent.work.cron.schedule import instants, parse

if TYPE_CHECKING:
    from hermes_agent.app.settings import Settings

LONGEST_NAME = 60
SAME = 600
"""Seconds between two sayings of `in 20m` that mean one job."""
NOBODY = "Nobody is running it: start `hermes gateway run` or `hermes worker`."


class UnknownJob(HermesError):
    """No job of this person has this id or name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronService:
    """The jobs of a home, for one person at a time. `toolsets` are those that a job may name. Raises `HermesError` for
    what they may not do."""

    store: Store
    clock: Clock
    settings: Settings
    home: Home
    toolsets: tuple[str, ...] = ()

    @property
    def drafts(self) -> Drafting:
        """What checks drafts."""
        channels = self.settings.gateway.channels
        return Drafting(channels=channels, scripts=scripts_in(self.home), toolsets=self.toolsets)

    @property
    def zone(self) -> str:
        """The time zone of schedules that name none."""
        return self.settings.cron.timezone or machine_zone(environment())

    async def create(self, who: Principal, draft: Draft, origin: str = "", author: str = "") -> Job:
        """Make a job. One of that name that is the same is returned."""
        job = await self.drafted(who, draft, origin, author)
        there = [each for each in await self.store.cron_jobs.find(job.name, who.key) if each.name == job.name]
        if there:
            return _same(there[0], job.plan)
        if not await self.store.cron_jobs.add(job):
            return await self.create(who, draft, origin, author)
        return job

    async def drafted(self, who: Principal, draft: Draft, origin: str = "", author: str = "") -> Job:
        """The job that a draft means, checked and not made."""
        now, own = self.clock.now(), [each for each in await self.all(who) if each.principal == who.key]
        if len(own) >= self.settings.cron.max_jobs and draft.name not in [each.name for each in own]:
            raise HermesError(f"There are {self.settings.cron.max_jobs} jobs already (`cron.max_jobs`): remove some.")
        base = Plan(
            schedule=parse(draft.schedule or "", draft.zone or self.zone, now),
            author=author or who.standing.value,
            origin=origin,
            deliver=(ORIGIN if self.drafts.is_chat(origin) else LOCAL,),
            seconds=self.settings.cron.run_seconds,
        )
        made = await self.drafts.plan(who, draft, base, own)
        return Job(
            id=RandomIds().short(),
            principal=who.key,
            name=_name(draft.name or _short(made)),
            plan=made,
            created=now,
            planned_to=int(now),
            remaining=draft.repeat or (1 if made.schedule.kind is Kind.AT else None),
        )

    async def edit(self, who: Principal, name: str, draft: Draft, author: str = "") -> Job:
        """Change a job; its instants are planned anew. An `author` is who wrote its new prompt."""
        return await self._write(await self.changed(who, await self.find(who, name), draft, author))

    async def changed(self, who: Principal, job: Job, draft: Draft, author: str = "") -> Job:
        """The job that a draft makes of one, checked and not written."""
        base, now = job.plan, self.clock.now()
        if draft.schedule is not None or draft.zone is not None:
            said = draft.schedule if draft.schedule is not None else _said(base)
            base = replace(base, schedule=parse(said, draft.zone or base.schedule.zone, now))
        if draft.prompt is not None:
            base = replace(base, author=author or who.standing.value)
        made = await self.drafts.plan(who, draft, base, await self.all(who))
        remaining = job.remaining if draft.repeat is None else draft.repeat or None
        if draft.schedule is not None and draft.repeat is None:
            remaining = 1 if made.schedule.kind is Kind.AT else None if job.remaining == 0 else remaining
        state = JobState.PAUSED if job.state is JobState.PAUSED else JobState.ON
        return replace(job, plan=made, name=_name(draft.name or job.name), remaining=remaining, state=state, why="")

    async def pause(self, who: Principal, name: str) -> Job:
        """Pause a job."""
        job = await self.find(who, name)
        return await self._write(replace(job, state=JobState.PAUSED, why=f"by {who.key}"), planned_to=job.planned_to)

    async def resume(self, who: Principal, name: str) -> Job:
        """Let a job go on; what would have been meanwhile is one skipped row."""
        job, now = await self.find(who, name), self.clock.now()
        if job.state is JobState.ON:
            return job
        went_by = await asyncio.to_thread(passed, job, now)
        skipped = over(job, went_by, now, InstantState.SKIPPED, job.state.value)
        if next(instants(job.plan.schedule, int(now)), None) is None:
            raise HermesError(f"{job.name} has no more instants: `hermes cron edit {job.id} --schedule ...`.")
        left = 1 if job.remaining == 0 else job.remaining
        return await self._write(replace(job, state=JobState.ON, why="", remaining=left), *skipped)

    async def run_now(self, who: Principal, name: str) -> Job:
        """Have a job run at once, beside its schedule."""
        job, now = await self.find(who, name), self.clock.now()
        instant = Instant(job=job.id, due=int(now), why=MANUAL, ready_at=now, late_at=now + 86_400)
        await self.store.cron_instants.ask_for(instant)
        return job

    async def remove(self, who: Principal, name: str) -> Job:
        """Delete a job. Its results in files stay."""
        job = await self.find(who, name)
        await self.store.cron_jobs.drop(job.id)
        return job

    async def find(self, who: Principal, name: str) -> Job:
        """A person's job by id or name; the owner finds everybody's."""
        _check(who)
        found = await self.store.cron_jobs.find(name, "" if who.standing is Standing.OWNER else who.key)
        if len(found) > 1:
            raise HermesError(f"Several jobs are called {name}: say {', '.join(each.id for each in found)}.")
        if not found:
            raise UnknownJob(f"There is no job `{name}`. `hermes cron list` shows them.")
        return found[0]

    async def all(self, who: Principal) -> list[Job]:
        """A person's jobs; the owner has everybody's."""
        _check(who)
        return await self.store.cron_jobs.all("" if who.standing is Standing.OWNER else who.key)

    async def facts(self, job: Job, notice: str = "") -> JobFacts:
        """A job as people see it."""
        return await job_facts(self.store, self.clock.now(), job, notice)

    async def instant(self, instant: Instant) -> InstantFacts:
        """An instant as people see it, with its delivery as the outbox has it."""
        return await instant_facts(self.store, instant)

    async def served(self) -> str:
        """A sentence where nobody runs jobs; else empty."""
        return "" if await self.store.activity.serving() else NOBODY

    async def _write(self, job: Job, *skipped: Instant, planned_to: int | None = None) -> Job:
        changed = replace(job, planned_to=int(self.clock.now()) if planned_to is None else planned_to)
        if not await self.store.cron_jobs.edit(changed, *skipped):
            raise HermesError(f"{job.name} was changed by somebody else just now: try again.")
        return changed


def _check(who: Principal) -> None:
    if who.standing is Standing.GUEST:
        raise HermesError("Guests have no scheduled jobs.")


def _name(said: str) -> str:
    name = " ".join(said.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise HermesError(f"A job's name has 1 to {LONGEST_NAME} characters on one line.")
    return name


def _short(made: Plan) -> str:
    """A name for a job that was given none."""
    return " ".join(islice((made.prompt or made.script).split(), 5))[:40].strip() or "job"


def _said(made: Plan) -> str:
    """A schedule as it would be typed again."""
    kept = made.schedule
    return f"every {kept.spec}s" if kept.kind is Kind.EVERY else kept.spec


def _same(job: Job, made: Plan) -> Job:
    """The job that is there already, where it is the one that is wanted. Raises `HermesError` with what differs."""
    old, new = asdict(job.plan), asdict(made)
    differs = [key for key in old if key != "origin" and old[key] != new[key] and not _moved(job.plan, made, key)]
    if differs:
        lines = [f"{key}: {str(old[key])[:80]} -> {str(new[key])[:80]}" for key in differs]
        raise HermesError(
            f"There is a job {job.name} already. It differs in:\n"
            + "\n".join(lines)
            + f"\nChange it: `cron edit {job.id}`."
        )
    return job


def _moved(old: Plan, new: Plan, key: str) -> bool:
    """Whether a schedule differs only by the moment in which it was said."""
    if key != "schedule" or old.schedule.kind is not new.schedule.kind or old.schedule.zone != new.schedule.zone:
        return False
    apart = abs(int(old.schedule.spec) - int(new.schedule.spec)) if old.schedule.kind is not Kind.CRON else 0
    return (old.schedule.kind is Kind.EVERY and not apart) or (old.schedule.kind is Kind.AT and apart < SAME)
