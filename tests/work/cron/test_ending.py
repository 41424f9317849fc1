"""Ends of instants: what is told, and what it changes in the job."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.work.cron.records import MANUAL, Instant, InstantState, Job, JobState, Plan
from hermes_agent.testing.clock import FakeClock
from hermes_agent.work.cron.ending import DAY, Endings, Result, of_run
from hermes_agent.work.cron.firing import RECHECK
from hermes_agent.work.cron.schedule import parse

HOME, CHAT = Conversation(platform="ntfy", chat="home"), Conversation(platform="ntfy", chat="chat")
FAILED = Result(state=InstantState.FAILED, words="No disk.")
RAN = Result(state=InstantState.RAN, words="Fine.")


class Both:
    """Two chats: one for results, one for failures."""

    def targets(self, job: Job) -> Sequence[Conversation]:
        return (CHAT,)

    def homes(self, job: Job) -> Sequence[Conversation]:
        return (HOME,)


class Bench:
    """One job on a store, whose instants end as a test says."""

    def __init__(self, store: Store, clock: FakeClock, **more: object) -> None:
        self.store, self.clock, self.due = store, clock, int(clock.now())
        self.endings = Endings(store=store, clock=clock, places=Both)
        quiet, remaining = bool(more.get("quiet")), more.get("remaining")
        plan = Plan(schedule=parse("@hourly", "UTC", clock.now()), prompt="Hi", quiet=quiet)
        self.job = Job(id="j1", principal="cli:ann", name="news", plan=plan, created=1.0, remaining=remaining)  # type: ignore[arg-type]  # what a test gives

    async def end(self, result: Result, why: str = "") -> Instant:
        self.due += 1
        instant = await self.store.cron_instants.ask_for(Instant(job="j1", due=self.due, why=why))
        job = await self.store.cron_jobs.get("j1")
        assert await self.store.write(lambda tx: self.endings.end(tx, instant, job, result))
        return (await self.store.cron_instants.of("j1"))[0]

    async def letters(self) -> list[str]:
        slots = [await self.store.outbox.get(number) for number in range(1, 20)]
        return [f"{slot.to.chat}: {slot.content.text}" for slot in slots if slot is not None]

    async def state(self) -> Job:
        found = await self.store.cron_jobs.get("j1")
        assert found is not None
        return found


@pytest.fixture
async def bench(tmp_path) -> Bench:
    clock = FakeClock()
    store = await open_store(tmp_path / "hermes.db", clock=clock)
    made = Bench(store, clock)
    await store.cron_jobs.add(made.job)
    yield made
    await store.close()


async def test_a_result_goes_to_its_chat_and_a_failure_home_once_a_day(bench: Bench):
    await bench.end(RAN)
    await bench.end(FAILED)
    await bench.end(FAILED)
    assert [each.partition(":")[0] for each in await bench.letters()] == ["chat", "home"]
    await bench.clock.advance(DAY + 1)
    await bench.end(FAILED)
    assert len(await bench.letters()) == 3
    await bench.end(RAN)
    await bench.end(FAILED)
    assert [each.partition(":")[0] for each in await bench.letters()] == ["chat", "home", "home", "chat", "home"]
    assert (await bench.state()).state is JobState.ON


async def test_a_quiet_job_shows_failures_in_lists_alone(bench: Bench):
    quiet = replace(bench.job, plan=replace(bench.job.plan, quiet=True))
    await bench.store.cron_jobs.edit(quiet)
    ended = await bench.end(FAILED)
    assert (ended.state, ended.letters) == (InstantState.FAILED, ())
    assert await bench.letters() == []


async def test_a_broken_job_is_told_whatever_was_told_before(bench: Bench):
    await bench.end(FAILED)
    await bench.end(replace(FAILED, words="The script is gone.", job_state=JobState.BROKEN))
    assert "runs no more" in (await bench.letters())[1]
    found = await bench.state()
    assert (found.state, found.why) == (JobState.BROKEN, "The script is gone.")


async def test_a_job_ends_with_its_last_time_and_what_was_asked_for_does_not_count(bench: Bench):
    await bench.store.cron_jobs.edit(replace(bench.job, remaining=2))
    await bench.end(RAN, MANUAL)
    await bench.end(RAN)
    assert (await bench.state()).remaining == 1
    await bench.end(FAILED)
    found = await bench.state()
    assert (found.remaining, found.state) == (0, JobState.DONE)


async def test_an_instant_ends_once(bench: Bench):
    ended = await bench.end(RAN)
    again = bench.endings.end
    assert not await bench.store.write(lambda tx: again(tx, ended, bench.job, FAILED))
    assert len(await bench.letters()) == 1


async def test_a_failing_provider_has_as_many_tries_as_the_job_says(bench: Bench):
    instant = await bench.store.cron_instants.ask_for(Instant(job="j1", due=5))
    failed = RunEnded(outcome=Outcome.FAILED, text="Overloaded.", turns=1, error="Overloaded")
    tries = []
    for _ in range(3):
        claimed = await bench.store.cron_instants.claim(4)
        assert claimed is not None
        await bench.store.write(lambda tx, held=claimed: bench.store.cron_instants.begun(tx, held.lease, "s1"))
        await bench.store.write(lambda tx: bench.endings.run_ended(tx, "s1", failed))
        found = (await bench.store.cron_instants.of("j1"))[0]
        tries.append((found.tries, found.state, found.ready_at - bench.clock.now()))
        await bench.clock.advance(1000)
    assert [each[:2] for each in tries] == [
        (1, InstantState.PLANNED),
        (2, InstantState.PLANNED),
        (2, InstantState.FAILED),
    ]
    assert [round(each[2]) for each in tries[:2]] == [60, 240]
    assert instant.due == 5


def test_an_end_of_a_run_is_a_result():
    assert of_run(RunEnded(outcome=Outcome.ANSWERED, text="Fine.", turns=1)) == RAN
    assert of_run(RunEnded(outcome=Outcome.ANSWERED, text=" [SILENT] ", turns=1)).why == "silent"
    assert of_run(RunEnded(outcome=Outcome.LIMIT, text="", turns=1)).state is InstantState.FAILED
    assert RECHECK > 0
