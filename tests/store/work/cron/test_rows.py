"""Scheduled jobs and their instants as rows, on both databases."""

from dataclasses import replace

import pytest

from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.work.cron.jobs import MOST_SHOWN, CronInstants, CronJobs
from hermes_agent.store.work.cron.records import (
    MANUAL,
    Instant,
    InstantState,
    Job,
    JobState,
    Kind,
    Plan,
    Planned,
    Schedule,
)
from tests.databases import OpenAnother
from tests.store.made import SOON, die

PLAN = Plan(schedule=Schedule(kind=Kind.CRON, spec="0 9 * * *", zone="UTC"), prompt="Hi", deliver=("local",))


def job(name: str = "j1", *, principal: str = "cli:ann", **more: object) -> Job:
    return Job(id=name, principal=principal, name=f"job {name}", plan=PLAN, created=1.0, **more)  # type: ignore[arg-type]  # what a test gives


def row(due: int, **more: object) -> Instant:
    return Instant(job="j1", due=due, ready_at=float(due), late_at=due + 60.0, **more)  # type: ignore[arg-type]  # what a test gives


def planned(
    *new: Instant, gone: tuple[int, ...] = (), to: int = 100, look_at: float = 200.0, done: bool = False
) -> Planned:
    return Planned(new=new, gone=gone, to=to, look_at=look_at, done=done)


async def plan(store: Store, found: Job, change: Planned) -> tuple[Instant, ...] | None:
    return await store.write(lambda tx: store.cron_jobs.plan(tx, found, change))


async def end(store: Store, instant: Instant, lease=None, **more: object) -> bool:
    over = replace(instant, state=InstantState.RAN, words="done", **more)  # type: ignore[arg-type]  # what a test gives
    return await store.write(lambda tx: store.cron_instants.end(tx, over, lease, files=True))


async def test_a_job_comes_back_as_it_was_and_its_name_is_its_persons(store: Store):
    assert await store.cron_jobs.add(job(remaining=3))
    assert not await store.cron_jobs.add(replace(job("j2"), name="job j1"))
    assert await store.cron_jobs.add(replace(job("j3", principal="cli:bob"), name="job j1"))
    assert await store.cron_jobs.get("j1") == job(remaining=3)
    assert [each.id for each in await store.cron_jobs.find("job j1")] == ["j1", "j3"]
    assert [each.id for each in await store.cron_jobs.find("job j1", "cli:bob")] == ["j3"]
    assert [each.id for each in await store.cron_jobs.all("cli:ann")] == ["j1"]
    assert len(await store.cron_jobs.all()) == 2


async def test_two_that_change_a_job_do_not_overwrite_each_other(store: Store):
    await store.cron_jobs.add(job())
    await plan(store, job(), planned(row(150)))
    assert await store.cron_jobs.edit(replace(job(), state=JobState.PAUSED, why="by ann"))
    assert not await store.cron_jobs.edit(replace(job(), why="late"))
    found = await store.cron_jobs.get("j1")
    assert found is not None
    assert (found.state, found.why, found.version) == (JobState.PAUSED, "by ann", 2)
    assert await store.cron_jobs.waiting("j1") == []


async def test_a_plan_is_applied_by_one_process_alone(store: Store, open_another: OpenAnother):
    other = await open_another()
    await store.cron_jobs.add(job())
    assert await plan(store, job(), planned(row(150), row(160))) == (row(150), row(160))
    assert await plan(other, job(), planned(row(150))) is None
    assert await store.cron_jobs.waiting("j1") == [150, 160]
    again = replace(job(), planned_to=100)
    assert await plan(other, again, planned(row(150), row(170), gone=(160,))) == (row(170),)
    assert await store.cron_jobs.waiting("j1") == [150, 170]
    assert await store.cron_jobs.due() == [again]


async def test_a_done_job_is_planned_no_more(store: Store):
    await store.cron_jobs.add(job())
    await plan(store, job(), planned(done=True, look_at=0.0))
    found = await store.cron_jobs.get("j1")
    assert found is not None
    assert found.state is JobState.DONE
    assert await store.cron_jobs.due() == []


async def test_an_instant_is_claimed_once_when_it_is_due_and_ends_once(store: Store, open_another: OpenAnother):
    other = await open_another()
    now = store.clock.now()
    await store.cron_instants.ask_for(row(150, why=MANUAL))
    await store.cron_instants.ask_for(row(int(now) + 1000, why=MANUAL))
    claimed = await store.cron_instants.claim(4)
    assert claimed is not None
    assert claimed.instant.due == 150
    assert await other.cron_instants.claim(4) is None
    assert await end(store, claimed.instant, claimed.lease)
    assert not await end(store, claimed.instant, claimed.lease)
    assert not await end(store, claimed.instant)
    found = (await store.cron_instants.of("j1"))[1]
    assert (found.state, found.words) == (InstantState.RAN, "done")


async def test_no_more_are_under_way_than_may_be(store: Store):
    for due in (1, 2, 3):
        await store.cron_instants.ask_for(row(due))
    first, second = await store.cron_instants.claim(2), await store.cron_instants.claim(2)
    assert first is not None
    assert second is not None
    assert await store.cron_instants.claim(2) is None
    ahead = await store.cron_instants.ahead(2)
    assert (ahead.ready_at, ahead.running) == (None, 2)
    await end(store, first.instant, first.lease)
    assert (await store.cron_instants.ahead(2)).ready_at == 3.0


async def test_one_that_queues_waits_for_the_one_before_it(store: Store):
    await store.cron_instants.ask_for(row(1, queues=True))
    await store.cron_instants.ask_for(row(2, queues=True))
    first = await store.cron_instants.claim(4)
    assert first is not None
    assert await store.cron_instants.claim(4) is None
    assert (await store.cron_instants.ahead(4)).ready_at is None
    await end(store, first.instant, first.lease)
    assert await store.cron_instants.claim(4) is not None


async def test_an_instant_with_a_session_is_claimed_no_more_until_it_is_tried_again(store: Store):
    await store.cron_instants.ask_for(row(1))
    claimed = await store.cron_instants.claim(4)
    assert claimed is not None
    await store.write(lambda tx: store.cron_instants.begun(tx, claimed.lease, "s1"))
    assert await store.cron_instants.claim(4) is None
    found = await store.write(lambda tx: store.cron_instants.by_session(tx, "s1"))
    assert found is not None
    assert found.id == "j1@1"
    assert [each.id for each in await store.cron_instants.left()] == ["j1@1"]
    await store.write(lambda tx: store.cron_instants.retry(tx, found, 5.0))
    again = await store.cron_instants.claim(4)
    assert again is not None
    assert (again.instant.tries, again.instant.session) == (1, "")


async def test_one_that_lost_its_lease_begins_and_ends_nothing(open_another: OpenAnother):
    gone, peer = await open_another(timings=SOON), await open_another(timings=SOON)
    await gone.cron_instants.ask_for(row(1))
    held = await gone.cron_instants.claim(4)
    assert held is not None
    await die(gone)
    again = await peer.cron_instants.claim(4)
    assert again is not None
    assert again.instant.attempts == 2
    with pytest.raises(LostLease):
        await peer.write(lambda tx: peer.cron_instants.begun(tx, held.lease, "s1"))
    assert not await end(peer, held.instant, held.lease)
    assert await end(peer, again.instant, again.lease)


async def test_results_wait_for_their_file_and_old_ones_go(store: Store):
    await store.cron_jobs.add(job())
    await store.cron_instants.ask_for(row(1))
    await end(store, row(1))
    assert [each.due for each in await store.cron_instants.unfiled()] == [1]
    assert (await store.cron_instants.ahead(1)).unfiled == 1
    await store.cron_instants.filed(row(1))
    assert await store.cron_instants.unfiled() == []
    assert await store.cron_instants.last_words("j1") == "done"
    new = [row(due, ended=1.0) for due in range(2, 600)]
    over = [replace(each, state=InstantState.MISSED) for each in new]
    await plan(store, job(), planned(*over, to=1_000_000))
    await plan(store, replace(job(), planned_to=1_000_000), planned(to=1_000_001))
    assert len(await store.cron_instants.of("j1", 1000)) == MOST_SHOWN + 1
    assert isinstance(store.cron_instants, CronInstants)
    assert isinstance(store.cron_jobs, CronJobs)


async def test_a_removed_job_takes_its_instants_along_but_for_one_that_runs(store: Store):
    await store.cron_jobs.add(job())
    await store.cron_instants.ask_for(row(1))
    claimed = await store.cron_instants.claim(4)
    assert claimed is not None
    await store.write(lambda tx: store.cron_instants.begun(tx, claimed.lease, "s1"))
    await store.cron_instants.ask_for(row(2))
    await store.cron_jobs.drop("j1")
    assert [each.due for each in await store.cron_instants.of("j1")] == [1]
    assert await store.cron_jobs.get("j1") is None
