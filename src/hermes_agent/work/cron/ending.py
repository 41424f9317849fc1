"""Ends of instants: the state, what it changes in the job, and the letters, all in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from hermes_agent.agent.mailbox import Change
from hermes_agent.agent.session import Session
from hermes_agent.core.chat import Content, Conversation, Letter
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.runs.one_run import SILENT
from hermes_agent.store.claims import Lease
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.cron.records import MANUAL, Instant, InstantState, Job, JobState, Planned
from hermes_agent.work.cron.schedule import local

DAY = 86_400.0
RETRIED = frozenset({"Overloaded", "RateLimited", "ServerFailed", "Stalled", "TimedOut", "Unreachable"})
"""The errors of a provider that may be over after a while."""
FIRST_PAUSE = 60.0
QUIET = "silent"
"""The reason of an instant that ran and had nothing to say."""


UNDELIVERED = (
    "The scheduled job {job.name} ran, and its result cannot be delivered: {where} is no chat here any more. "
    "`hermes cron runs {job.id}` has it; `hermes cron edit {job.id} --deliver ...` names another chat. "
    "While it stays so you are told once a day."
)
"""What the owner reads of a result whose chat is gone."""


class Places(Protocol):
    """Where letters go.

    - `targets` are the chats of a job's results, `homes` those that are told of its failures; both may be empty;
    - `gone` are those of its targets to which nothing can be sent any more.
    """

    def targets(self, job: Job) -> Sequence[Conversation]: ...

    def gone(self, job: Job) -> Sequence[Conversation]: ...

    def homes(self, job: Job) -> Sequence[Conversation]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of an instant. `job_state` is what its job becomes (None: as it was)."""

    state: InstantState
    words: str = ""
    why: str = ""
    job_state: JobState | None = None


def of_run(ended: RunEnded) -> Result:
    """The result that a run's end means."""
    if ended.outcome is not Outcome.ANSWERED:
        return Result(state=InstantState.FAILED, words=ended.text or "There is no reply.", why=ended.outcome.value)
    silent = ended.text.strip() in SILENT
    return Result(state=InstantState.RAN, words=ended.text, why=QUIET if silent else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endings:
    """Ends instants."""

    store: Store
    clock: Clock
    places: Callable[[], Places]

    async def run_ended(self, tx: Transaction, session: str, ended: RunEnded) -> None:
        """End the instant of a session with its run, or have it tried again where the provider failed."""
        instant = await self.store.cron_instants.by_session(tx, session)
        if instant is None:
            return
        job = await self.store.cron_jobs.read(tx, instant.job)
        if job is not None and ended.error in RETRIED and instant.tries < job.plan.retries:
            pause = FIRST_PAUSE * 4**instant.tries
            await self.store.cron_instants.retry(tx, instant, self.clock.now() + pause)
            return
        await self.end(tx, instant, job, of_run(ended))

    async def end(
        self, tx: Transaction, instant: Instant, job: Job | None, result: Result, lease: Lease | None = None
    ) -> bool:
        """End an instant once, one that is claimed under its lease; False where it has ended."""
        result = replace(result, words=self.store.engine.redact(result.words))
        told, dead = self._letters(instant, job, result)
        letters, why = tuple(letter.key for letter in (*dead, *told)), result.why or instant.why
        ended = replace(instant, state=result.state, why=why, words=result.words, letters=letters)
        is_run = result.state in (InstantState.RAN, InstantState.FAILED)
        if not await self.store.cron_instants.end(tx, ended, lease, files=is_run and job is not None):
            return False
        for letter in told:
            await self.store.outbox.put(tx, letter)
        for letter in dead:
            await self.store.outbox.put(tx, letter, error="There is no such chat here any more.")
        if job is not None:
            await self._count(tx, job, instant, result, told=bool(told), works=not dead)
        return True

    async def planned(self, tx: Transaction, job: Job, planned: Planned) -> None:
        """Apply a plan, and tell the owner of instants that it missed."""
        made = await self.store.cron_jobs.plan(tx, job, planned) or ()
        for missed in (each for each in made if each.state is InstantState.MISSED):
            result = Result(state=InstantState.MISSED, why=missed.why)
            told, _ = self._letters(missed, job, result)
            for letter in told:
                await self.store.outbox.put(tx, letter)
            if told:
                await self.store.cron_jobs.mark_told(tx, job.id)

    def _letters(self, instant: Instant, job: Job | None, result: Result) -> tuple[list[Letter], list[Letter]]:
        """What is said of an instant, and what can be said to nobody."""
        if job is None or result.state is InstantState.SKIPPED:
            return [], []
        places, prefix = self.places(), f"cron:{instant.job}:{instant.due}"
        was_told = 0 <= self.clock.now() - job.told < DAY and result.job_state is None
        homes = () if job.plan.quiet or was_told else places.homes(job)
        if result.state is not InstantState.RAN:
            return _to(homes, prefix, failure_text(instant, job, result), instant.session), []
        if result.why == QUIET or not result.words.strip():
            return [], []
        text, gone = f"{job.name}:\n\n{result.words}", places.gone(job)
        told = _to(places.targets(job), prefix, text, instant.session)
        if gone:
            where = ", ".join(each.key for each in gone)
            told += _to(homes, f"{prefix}:home", UNDELIVERED.format(job=job, where=where), instant.session)
        return told, _to(gone, f"{prefix}:gone", text, instant.session)

    async def _count(
        self, tx: Transaction, job: Job, instant: Instant, result: Result, *, told: bool, works: bool
    ) -> None:
        """Write what the end changes in the job: how often it still runs, its state, when its failure was told."""
        changed = job
        if result.state is InstantState.RAN and works:
            changed = replace(changed, told=0.0)
        elif told:
            changed = replace(changed, told=self.clock.now())
        counts = result.state in (InstantState.RAN, InstantState.FAILED) and instant.why != MANUAL
        if counts and job.remaining is not None:
            left = max(0, job.remaining - 1)
            changed = replace(changed, remaining=left, state=JobState.ON if left else JobState.DONE)
        if result.job_state is not None:
            changed = replace(changed, state=result.job_state, why=result.words)
        if changed != job:
            await self.store.cron_jobs.count(tx, changed)


def _to(places: Sequence[Conversation], key: str, text: str, session: str) -> list[Letter]:
    return [
        Letter(key=f"{key}:{number}", to=each, content=Content(text=text), session=session)
        for number, each in enumerate(places)
    ]


def failure_text(instant: Instant, job: Job, result: Result) -> str:
    """What the owner reads of an instant that failed or was missed."""
    at = local(instant.due, job.plan.schedule.zone)
    if result.state is InstantState.MISSED:
        many = f"{instant.counts} times, last" if instant.counts > 1 else "once,"
        reason = "nothing ran it then" if result.why == "down" else "it could not begin in time"
        said = f"The scheduled job {job.name} was missed {many} at {at}: {reason}."
    else:
        said = f"The scheduled job {job.name} failed ({at}): {result.words}"
    goes_on = {
        JobState.BROKEN: "It runs no more until you change it.",
        JobState.PAUSED: "It is paused.",
        None: "It stays on; while it fails you are told once a day.",
    }[result.job_state if result.job_state is not JobState.ON else None]
    return f"{said}\n\n{goes_on} `hermes cron runs {job.id}` shows each time."


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantClosing:
    """Ends the instant of a session in the commit of its run's end."""

    endings: Endings

    def changes(self, session: Session, ended: RunEnded) -> Sequence[Change]:
        """The change."""
        return (lambda tx: self.endings.run_ended(tx, session.id, ended),)
