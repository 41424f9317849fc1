"""Firing on a store with a fake clock: what is started, once, whatever the clock does."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.core.errors import HermesError
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.work.cron.records import (
    MANUAL,
    CatchUp,
    Instant,
    InstantState,
    Job,
    JobState,
    Kind,
    Overlap,
    Plan,
)
from hermes_agent.store.workers import Timings
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.place import FakePlace
from hermes_agent.work.cron.ending import Endings, Result
from hermes_agent.work.cron.firing import MOST_ATTEMPTS, RECHECK, Dismissed, Firing, Ready, Scripts
from hermes_agent.work.cron.schedule import parse
from tests.store.made import mail

NOW = 1_764_244_800.0
YEAR = 365 * 86_400


class Nowhere:
    """No chat gets letters."""

    def targets(self, job: Job) -> Sequence[Conversation]:
        return ()

    def gone(self, job: Job) -> Sequence[Conversation]:
        return ()

    def homes(self, job: Job) -> Sequence[Conversation]:
        return ()


class Sessions:
    """Sessions that end in the moment in which they start, or never."""

    def __init__(self, store: Store, endings: Endings) -> None:
        self.store, self.endings = store, endings
        self.started: list[Instant] = []
        self.stopped: list[str] = []
        self.filed: list[int] = []
        self.lasting = False
        self.fails: list[Exception] = []

    def check(self, job: Job) -> None:
        if job.principal.startswith("gone:"):
            raise Dismissed("They may not use this agent any more.")

    def folder(self, job: Job) -> str:
        return "/work"

    async def start(self, ready: Ready) -> None:
        if self.fails:
            raise self.fails.pop()
        instant, lease = ready.claimed.instant, ready.claimed.lease
        self.started.append(instant)
        await self.store.inbox.accept(mail(instant.due), f"s{instant.due}", "gateway")
        await self.store.write(lambda tx: self.store.cron_instants.begun(tx, lease, f"s{instant.due}"))
        if not self.lasting:
            result = Result(state=InstantState.RAN, words="Fine.")
            job = await self.store.cron_jobs.get(instant.job)
            await self.store.write(lambda tx: self.endings.end(tx, instant, job, result))

    async def stop(self, session: str) -> None:
        self.stopped.append(session)

    async def file(self, job: Job | None, instant: Instant) -> None:
        self.filed.append(instant.due)


class Bench:
    """A process that fires, on a clock that a test moves."""

    def __init__(self, store: Store, clock: FakeClock, folder: Path) -> None:
        self.store, self.clock = store, clock
        self.endings = Endings(store=store, clock=clock, places=Nowhere)
        self.sessions = Sessions(store, self.endings)
        self.folder = folder
        self.firing = self.process()

    def process(self, most: int = 4) -> Firing:
        scripts = Scripts(place=FakePlace(), folder=self.folder, seconds=5.0)
        return Firing(
            store=self.store,
            clock=self.clock,
            endings=self.endings,
            sessions=self.sessions,
            scripts=scripts,
            most=most,
            begin=self.store.cron_jobs.replan,
        )

    async def add(self, said: str, name: str = "j1", **more: object) -> Job:
        principal = str(more.pop("principal", "cli:ann"))
        plan = Plan(schedule=parse(said, "UTC", self.clock.now()), prompt="Hi", **more)  # type: ignore[arg-type]  # what a test gives
        remaining = 1 if said.startswith("in ") else None
        job = Job(
            id=name,
            principal=principal,
            name=name,
            plan=plan,
            created=1.0,
            planned_to=int(self.clock.now()),
            remaining=remaining,
        )
        await self.store.cron_jobs.add(job)
        return job

    async def look(self) -> float | None:
        """What the alarm does at one look; when it wants to look again."""
        due = await self.firing.next_due()
        while due is not None and due <= self.clock.now():
            await self.firing.fire()
            while tasks := tuple(self.firing._tasks):
                await asyncio.wait(tasks)
            due = await self.firing.next_due()
        return due

    async def ends(self, name: str = "j1") -> list[tuple[int, str, str]]:
        found = await self.store.cron_instants.of(name, 10_000)
        return [(each.due - int(NOW), each.state.value, each.why) for each in reversed(found)]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = FakeClock(now=NOW)
    store = await open_store(tmp_path / "hermes.db", clock=clock, timings=Timings(lasting=False))
    yield Bench(store, clock, tmp_path)
    await store.close()


async def test_an_hourly_job_runs_at_each_hour_and_is_filed(bench: Bench):
    await bench.add("@hourly")
    assert await bench.look() == NOW + 3600
    for hour in (1, 2, 3):
        bench.clock.set_now(NOW + hour * 3600 + 1)
        await bench.look()
    assert [each.due - int(NOW) for each in bench.sessions.started] == [3600, 7200, 10_800]
    assert bench.sessions.filed == [each.due for each in bench.sessions.started]
    assert await bench.ends() == [(hour * 3600, "ran", "") for hour in (1, 2, 3)]


async def test_a_clock_that_jumps_about_loses_nothing_and_repeats_nothing(bench: Bench, full: bool):
    chance, steps = random.Random(5), 1000 if full else 50
    for name, said in (("m", "every 10m"), ("h", "@hourly"), ("d", "0 9 * * *")):
        await bench.add(said, name, catch_up=CatchUp.ALL)
    now, highest = NOW, NOW
    for _ in range(steps):
        now += chance.choice([60, 300, 900, 3600, 5400, 7200, -60, -600, -5400, -7200])
        now = max(now, NOW)
        highest = max(highest, now)
        bench.clock.set_now(now)
        await bench.look()
    bench.clock.set_now(highest + 1)
    await bench.look()
    runs = Counter(each.id for each in bench.sessions.started)
    assert set(runs.values()) == {1}
    for name, every in (("m", 600), ("h", 3600)):
        dues = sorted(each.due for each in bench.sessions.started if each.job == name)
        assert dues == list(range(int(NOW) + every, int(highest) + 1, every))


async def test_a_job_of_a_person_who_is_gone_is_paused(bench: Bench):
    await bench.add("in 1m", principal="gone:bob")
    bench.clock.set_now(NOW + 61)
    await bench.look()
    found = await bench.store.cron_jobs.get("j1")
    assert found is not None
    assert (found.state, found.why) == (JobState.PAUSED, "They may not use this agent any more.")
    assert bench.sessions.started == []


async def test_the_next_time_stops_the_one_that_goes_on_where_the_job_says_so(bench: Bench):
    bench.sessions.lasting = True
    await bench.add("@hourly", overlap=Overlap.STOP)
    for hour in (1, 2):
        bench.clock.set_now(NOW + hour * 3600)
        await bench.look()
    assert bench.sessions.stopped == [f"s{int(NOW) + 3600}"]
    assert await bench.ends() == [(3600, "failed", "overlap"), (7200, "running", "")]


async def test_the_next_time_waits_where_the_job_says_so(bench: Bench):
    bench.sessions.lasting = True
    job = await bench.add("@hourly", overlap=Overlap.QUEUE)
    bench.clock.set_now(NOW + 3600)
    await bench.look()
    bench.clock.set_now(NOW + 7200)
    assert await bench.look() == NOW + 7200 + RECHECK
    first = bench.sessions.started[0]
    result = Result(state=InstantState.RAN, words="Fine.")
    await bench.store.write(lambda tx: bench.endings.end(tx, first, job, result))
    await bench.look()
    assert [each.due - int(NOW) for each in bench.sessions.started] == [3600, 7200]


async def test_one_that_waited_too_long_for_room_is_missed(bench: Bench):
    bench.firing = bench.process(most=1)
    bench.sessions.lasting = True
    await bench.add("in 1m", "long")
    await bench.add("@hourly", "late", window=300.0)
    bench.clock.set_now(NOW + 3600)
    await bench.look()
    assert [each.job for each in bench.sessions.started] == ["long"]
    bench.clock.set_now(NOW + 3600 + 301)
    await bench.look()
    assert await bench.ends("late") == [(3600, "missed", "late")]


async def test_a_defect_is_a_failure_with_an_apology_and_too_many_deaths_are_an_end(bench: Bench):
    bench.sessions.fails = [ValueError("a defect"), HermesError("No room.")]
    await bench.add("in 1m", "a")
    await bench.add("in 2m", "b")
    await bench.add("in 3m", "c")
    for minute in (1, 2):
        bench.clock.set_now(NOW + 60 * minute)
        await bench.look()
    words = [(await bench.store.cron_instants.of(name))[0].words for name in ("a", "b")]
    assert words[0] == "No room."
    assert "broke" in words[1]
    bench.clock.set_now(NOW + 180)
    for _ in range(MOST_ATTEMPTS):
        claimed = await bench.store.cron_instants.claim(4)
        assert claimed is not None
        await bench.store.cron_instants.release(claimed.lease, counts=True)
    await bench.look()
    assert "Given up" in (await bench.store.cron_instants.of("c"))[0].words


async def test_a_job_whose_zone_is_gone_is_broken_and_said(bench: Bench):
    job = await bench.add("@daily")
    plan = replace(job.plan, schedule=replace(job.plan.schedule, zone="Mars/Olympus"))
    await bench.store.cron_jobs.edit(replace(job, plan=plan))
    await bench.look()
    found = await bench.store.cron_jobs.get("j1")
    assert found is not None
    assert found.state is JobState.BROKEN
    assert "no time zone `Mars/Olympus`" in found.why


async def test_many_jobs_that_are_not_due_let_the_alarm_sleep(bench: Bench, full: bool):
    for number in range(1000 if full else 100):
        await bench.add(f"{number % 60} 9 * * *", f"job{number}")
    assert (await bench.look() or 0) > NOW + 3600
    assert bench.sessions.started == []


@pytest.mark.parametrize("day", ["2026-10-22", "2027-03-25"])
async def test_a_week_with_a_change_of_the_clock_has_each_time_once(tmp_path: Path, day: str):
    start = datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()
    clock = FakeClock(now=start)
    store = await open_store(tmp_path / "hermes.db", clock=clock, timings=Timings(lasting=False))
    bench = Bench(store, clock, tmp_path)
    lines = {"night": "30 2 * * *", "range": "0 2-3 * * *", "half": "*/30 1-3 * * *", "day": "0 9 * * 1-5"}
    for name, line in lines.items():
        plan = Plan(schedule=parse(line, "Europe/Berlin", start), prompt="Hi")
        await store.cron_jobs.add(
            Job(id=name, principal="cli:ann", name=name, plan=plan, created=1.0, planned_to=int(start))
        )
    for step in range(7 * 24 * 6 + 1):
        clock.set_now(start + step * 600)
        await bench.look()
    berlin = ZoneInfo("Europe/Berlin")
    ran = {name: [] for name in lines}
    for each in bench.sessions.started:
        ran[each.job].append(f"{datetime.fromtimestamp(each.due, berlin):%d %H:%M %Z}")
    assert [len(set(each)) for each in ran.values()] == [len(each) for each in ran.values()]
    assert len(ran["night"]) == 7
    assert len(ran["day"]) == 5
    if day == "2026-10-22":
        assert "25 02:30 CEST" in ran["night"]
        assert "25 02:30 CET" not in ran["night"]
        sunday = [each[3:] for each in ran["half"] if each.startswith("25 ")]
        assert sunday == [
            "01:00 CEST",
            "01:30 CEST",
            "02:00 CEST",
            "02:30 CEST",
            "02:00 CET",
            "02:30 CET",
            "03:00 CET",
            "03:30 CET",
        ]
        assert len(ran["range"]) == 14
    else:
        assert "28 03:00 CEST" in ran["night"]
        sunday = [each[3:] for each in ran["half"] if each.startswith("28 ")]
        assert sunday == ["01:00 CET", "01:30 CET", "03:00 CEST", "03:30 CEST"]
        assert len(ran["range"]) == 13
    await store.close()


async def test_two_processes_start_each_instant_once(bench: Bench):
    for number in range(20):
        await bench.add("@hourly", f"job{number}")
    both = (bench.firing, bench.process())
    for firing in both:
        await firing.next_due()
    await bench.look()
    bench.clock.set_now(NOW + 3600)
    for _ in range(8):
        async with asyncio.TaskGroup() as group:
            for firing in both:
                group.create_task(firing.fire())
        while tasks := tuple(task for firing in both for task in firing._tasks):
            await asyncio.wait(tasks)
    runs = Counter(each.id for each in bench.sessions.started)
    assert (len(runs), set(runs.values())) == (20, {1})


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_clock_that_was_a_year_ahead_and_is_set_back_does_not_hold_jobs_up(bench: Bench, restarts: bool):
    bench.clock.set_now(NOW + YEAR)
    await bench.add("@hourly")
    job = await bench.add("0 0 1 1 *", "yearly")
    await bench.look()
    await bench.store.cron_instants.ask_for(
        Instant(job=job.id, due=int(NOW + YEAR), why=MANUAL, ready_at=NOW + YEAR + 60, late_at=NOW + 2 * YEAR)
    )
    bench.firing = bench.process() if restarts else bench.firing
    for hour in (0, 1, 2):
        bench.clock.set_now(NOW + hour * 3600 + 1)
        await bench.look()
    assert [each.due - int(NOW) for each in bench.sessions.started if each.job == "j1"] == [3600, 7200]
    assert [each.why for each in bench.sessions.started if each.job == "yearly"] == [MANUAL]


async def test_a_job_whose_times_no_calendar_holds_is_broken_and_the_others_run(bench: Bench):
    job = await bench.add("@hourly", "a")
    endless = replace(job.plan.schedule, kind=Kind.EVERY, spec=str(10**20))
    assert await bench.store.cron_jobs.edit(replace(job, plan=replace(job.plan, schedule=endless)))
    await bench.add("@hourly", "b")
    await bench.look()
    bench.clock.set_now(NOW + 3601)
    await bench.look()
    assert [each.job for each in bench.sessions.started] == ["b"]
    found = await bench.store.cron_jobs.get("a")
    assert found is not None
    assert (found.state, found.why[:30]) == (JobState.BROKEN, "Its times cannot be computed: ")
