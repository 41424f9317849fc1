"""Making and changing scheduled jobs: parses what a person or the agent wants, and checks who may have it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import TYPE_CHECKING

from hermes_agent.app.work.cron_drafts import LOCAL, ORIGIN, Draft, Drafting, scripts_in
from hermes_agent.core.chat import Conversation, Principal, SlotState, Standing
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, UnknownJob
from hermes_agent.host.paths import Home, environment
from hermes_agent.host.time_zone import machine_zone
from hermes_agent.store.database import Store
from hermes_agent.store.work.cron.records import MANUAL, Instant, InstantState, Job, JobState, Kind, Plan, Schedule
from hermes_agent.work.cron.schedule import instants, local, over, parse, passed, upcoming, words

if TYPE_CHECKING:
    from hermes_agent.app.settings import Settings

LONGEST_NAME = 60
SAME = 600
"""Seconds between two sayings of `in 20m` that mean one job."""
NOBODY = "Nobody is running it: start `hermes gateway run` or `hermes worker`."


@dataclass(frozen=True, slots=True, kw_only=True)
class CronService:
    """The jobs of a home, for one person at a time. `toolsets` are those that a job may name; where others read along
    (`where`) a person has only the jobs that were made there. Raises `HermesError` for what they may not do."""

    store: Store
    clock: Clock
    settings: Settings
    home: Home
    toolsets: tuple[str, ...] = ()
    where: Conversation | None = None

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

    async def drafted(
        self, who: Principal, draft: Draft, origin: str = "", author: str = "", own: Sequence[Job] | None = None
    ) -> Job:
        """The job that a draft means, checked and not made; `own` are this person's jobs, where they are known."""
        now, own = self.clock.now(), await self.all(who, own=True) if own is None else own
        if len(own) >= self.settings.cron.max_jobs and draft.get("name") not in [each.name for each in own]:
            raise HermesError(f"There are {self.settings.cron.max_jobs} jobs already (`cron.max_jobs`): remove some.")
        base = Plan(
            schedule=parse(draft.get("schedule") or "", draft.get("zone") or self.zone, now),
            author=author or who.standing.value,
            origin=origin,
            deliver=(ORIGIN if self.drafts.is_chat(origin) else LOCAL,),
            seconds=self.settings.cron.run_seconds,
        )
        made = await self.drafts.plan(who, draft, base, own, now)
        return Job(
            id=RandomIds().short(),
            principal=who.key,
            name=_name(draft.get("name") or _short(made)),
            plan=made,
            created=now,
            planned_to=int(now),
            remaining=draft.get("repeat") or (1 if made.schedule.kind is Kind.AT else None),
        )

    async def edit(self, who: Principal, name: str, draft: Draft, author: str = "") -> Job:
        """Change a job; its instants are planned anew. An `author` is who wrote its new prompt."""
        job = await self.find(who, name)
        changed = await self.changed(who, job, draft, author)
        taken = await self.store.cron_jobs.find(changed.name, job.principal) if changed.name != job.name else []
        if any(each.name == changed.name for each in taken):
            raise HermesError(f"There is a job {changed.name} already.")
        return await self._write(changed)

    async def changed(self, who: Principal, job: Job, draft: Draft, author: str = "") -> Job:
        """The job that a draft makes of one, checked and not written."""
        base, now = job.plan, self.clock.now()
        schedule, repeat = draft.get("schedule"), draft.get("repeat")
        if schedule is not None or draft.get("zone") is not None:
            said = schedule if schedule is not None else _said(base)
            base = replace(base, schedule=parse(said, draft.get("zone") or base.schedule.zone, now))
        if draft.get("prompt") is not None:
            base = replace(base, author=author or who.standing.value)
        made = await self.drafts.plan(who, draft, base, await self.all(who), now)
        remaining = job.remaining if repeat is None else repeat or None
        if schedule is not None and repeat is None:
            remaining = 1 if made.schedule.kind is Kind.AT else None if job.remaining == 0 else remaining
        state = JobState.PAUSED if job.state is JobState.PAUSED else JobState.ON
        return replace(
            job, plan=made, name=_name(draft.get("name") or job.name), remaining=remaining, state=state, why=""
        )

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
        found = self._here(await self.store.cron_jobs.find(name, "" if who.standing is Standing.OWNER else who.key))
        if len(found) > 1:
            raise HermesError(f"Several jobs are called {name}: say {', '.join(each.id for each in found)}.")
        if not found:
            raise UnknownJob(f"There is no job `{name}`. `hermes cron list` shows them.")
        return found[0]

    async def all(self, who: Principal, *, own: bool = False) -> list[Job]:
        """A person's jobs; the owner has everybody's, and their `own`."""
        _check(who)
        found = await self.store.cron_jobs.all("" if who.standing is Standing.OWNER and not own else who.key)
        return found if own else self._here(found)

    def _here(self, jobs: Sequence[Job]) -> list[Job]:
        if self.where is None or self.where.is_private:
            return list(jobs)
        return [job for job in jobs if Conversation.parse(job.plan.origin or "none").place == self.where.place]

    async def facts(self, job: Job, notice: str = "") -> JobFacts:
        """A job as people see it."""
        latest = [each for each in await self.store.cron_instants.of(job.id, 5) if each.ended or each.started]
        schedule, most = job.plan.schedule, min(3, job.remaining or 3)
        goes_on = job.state is JobState.ON
        return JobFacts(
            id=job.id,
            name=job.name,
            state=job.state.value,
            why=job.why,
            schedule=words(schedule),
            next=upcoming(schedule, self.clock.now(), most, job.plan.ends) if goes_on else (),
            deliver=job.plan.deliver,
            prompt=job.plan.prompt,
            principal=job.principal,
            remaining=job.remaining,
            last=await self._of_instant(latest[0], schedule.zone) if latest else None,
            notice=" ".join(filter(None, (schedule.note, notice))),
        )

    async def _of_instant(self, instant: Instant, zone: str) -> InstantFacts:
        slots = [await self.store.outbox.find(key) for key in instant.letters]
        states = {slot.state for slot in slots if slot is not None}
        worst = next((each.value for each in WORST if each in states), "unknown" if slots else "none")
        known = {each.name: getattr(instant, each.name) for each in fields(Instant)}
        return InstantFacts(**known, zone=zone, delivery=worst)

    async def runs(self, job: Job, most: int) -> list[InstantFacts]:
        """What came of a job's times, the latest first, with the delivery as the outbox has it."""
        found = await self.store.cron_instants.of(job.id, most)
        return [await self._of_instant(each, job.plan.schedule.zone) for each in found]

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
    lines = [
        f"{each.name}: {_shown(old)} -> {_shown(new)}"
        for each in fields(Plan)
        if (old := getattr(job.plan, each.name)) != (new := getattr(made, each.name))
        and each.name != "origin"
        and not _moved(job.plan, made, each.name)
    ]
    if lines:
        raise HermesError(
            f"There is a job {job.name} already. It differs in:\n"
            + "\n".join(lines)
            + f"\nChange it: `cron edit {job.id}`."
        )
    return job


def _shown(value: object) -> str:
    if isinstance(value, Schedule):
        return words(value)
    return (", ".join(map(str, value)) if isinstance(value, tuple) else str(value))[:80] or "nothing"


def _moved(old: Plan, new: Plan, key: str) -> bool:
    """Whether a schedule differs only by the moment in which it was said."""
    if key != "schedule" or old.schedule.kind is not new.schedule.kind or old.schedule.zone != new.schedule.zone:
        return False
    apart = abs(int(old.schedule.spec) - int(new.schedule.spec)) if old.schedule.kind is not Kind.CRON else 0
    return (old.schedule.kind is Kind.EVERY and not apart) or (old.schedule.kind is Kind.AT and apart < SAME)


WORST = (SlotState.FAILED, SlotState.UNSURE, SlotState.SENDING, SlotState.PENDING, SlotState.SENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """A job as people and programs see it: its schedule in words, the next three local times, the last instant with its
    delivery, and a `notice` (nobody runs it, or what was assumed)."""

    id: str
    name: str
    state: str
    why: str
    schedule: str
    next: tuple[str, ...]
    deliver: tuple[str, ...]
    prompt: str
    principal: str
    remaining: int | None = None
    last: InstantFacts | None = None
    notice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantFacts(Instant):
    """An instant as people and programs see it, on the clock of its job's `zone`. `delivery` is none, pending, sending,
    sent, failed, unsure or unknown."""

    zone: str = "UTC"
    delivery: str = "none"


def job_line(job: JobFacts) -> str:
    """A job on one line, and its notice."""
    when = f"next {job.next[0]}" if job.next else job.state
    last = f"; last: {outcome(job.last)}" if job.last else ""
    why = f" ({job.why})" if job.why else ""
    line = f"{job.id}  {job.name}: {job.schedule}; {when}{why}{last}"
    return f"{line}\n{job.notice}" if job.notice else line


def job_text(job: JobFacts) -> str:
    """A job with its next times."""
    lines = [f"{job.name} ({job.id}): {job.schedule}", f"State: {job.state}{f' ({job.why})' if job.why else ''}"]
    lines += [f"Next: {', '.join(job.next)}"] if job.next else []
    lines += [f"Delivers to: {', '.join(job.deliver)}"]
    lines += [f"Last: {outcome(job.last)}"] if job.last else []
    return "\n".join([*lines, job.notice] if job.notice else lines)


def outcome(instant: InstantFacts) -> str:
    """What came of a time, with its delivery."""
    counts = f" ({instant.counts} times)" if instant.counts > 1 else ""
    why = f", {instant.why}" if instant.why else ""
    sent = {"none": "", "sent": ", delivered", "pending": ", not delivered yet"}
    return f"{instant.state}{counts}{why}{sent.get(instant.delivery, f', delivery: {instant.delivery}')}"


def run_line(instant: InstantFacts) -> str:
    """A time on one line, with the first words of what came of it."""
    said = " ".join(instant.words.split())[:80]
    at = local(instant.due, instant.zone)
    return f"{at}  {outcome(instant)}{f'  {said}' if said else ''}{f'  [{instant.session}]' if instant.session else ''}"
