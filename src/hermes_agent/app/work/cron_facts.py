"""Scheduled jobs and their times as people and programs see them, and in words."""

from __future__ import annotations

from hermes_agent.core.chat import SlotState
from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.database import Store
from hermes_agent.store.work.cron.records import Instant, InstantState, Job, JobState
from hermes_agent.work.cron.schedule import local, upcoming, words

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
class InstantFacts:
    """An instant as people and programs see it. `delivery` is none, pending, sending, sent, failed, unsure or
    unknown."""

    due: int
    state: str
    why: str = ""
    counts: int = 1
    session: str = ""
    started: float | None = None
    ended: float | None = None
    words: str = ""
    delivery: str = "none"


async def job_facts(store: Store, now: float, job: Job, notice: str = "") -> JobFacts:
    """A job as people see it."""
    latest = [each for each in await store.cron_instants.of(job.id, 5) if each.ended or each.started]
    schedule = job.plan.schedule
    goes_on = job.state is JobState.ON
    return JobFacts(
        id=job.id,
        name=job.name,
        state=job.state.value,
        why=job.why,
        schedule=words(schedule),
        next=upcoming(schedule, now, min(3, job.remaining or 3)) if goes_on else (),
        deliver=job.plan.deliver,
        prompt=job.plan.prompt,
        principal=job.principal,
        remaining=job.remaining,
        last=await instant_facts(store, latest[0]) if latest else None,
        notice=" ".join(filter(None, (schedule.note, notice))),
    )


async def instant_facts(store: Store, instant: Instant) -> InstantFacts:
    """An instant as people see it, with its delivery as the outbox has it."""
    slots = [await store.outbox.find(key) for key in instant.letters]
    states = {slot.state for slot in slots if slot is not None}
    worst = next((each.value for each in WORST if each in states), "unknown" if slots else "none")
    return InstantFacts(
        due=instant.due,
        state="planned" if instant.state is InstantState.PLANNED else instant.state.value,
        why=instant.why,
        counts=instant.counts,
        session=instant.session,
        started=instant.started,
        ended=instant.ended,
        words=instant.words,
        delivery=worst,
    )


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
    at = local(instant.due, "UTC")
    return f"{at}  {outcome(instant)}{f'  {said}' if said else ''}{f'  [{instant.session}]' if instant.session else ''}"
