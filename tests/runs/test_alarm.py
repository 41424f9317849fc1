"""The alarm calls what is due, sleeps otherwise, and goes on after a failure."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hermes_agent.core.clock import SystemClock
from hermes_agent.runs.alarm import Alarm
from hermes_agent.testing.clock import FakeClock
from tests.gateway.harness import eventually


class Due:
    """A source with the times at which it is due; each is fired once."""

    def __init__(self, *due: float, fails: int = 0) -> None:
        self.due, self.fails = list(due), fails
        self.asked, self.fired = 0, list[float]()

    async def next_due(self) -> float | None:
        self.asked += 1
        return self.due[0] if self.due else None

    async def close(self) -> None: ...

    async def fire(self) -> None:
        if self.fails:
            self.fails -= 1
            raise ValueError("broken")
        self.fired.append(self.due.pop(0))


@asynccontextmanager
async def running(clock: SystemClock | FakeClock, *sources: Due) -> AsyncIterator[Alarm]:
    alarm = Alarm(clock, lambda: sources)
    alarm.start()
    yield alarm
    await alarm.close()


async def test_what_is_due_fires_and_what_is_not_waits_for_its_time():
    clock = SystemClock()
    soon = clock.now() + 0.2
    source, other = Due(0.0, soon), Due()
    async with running(clock, source, other):
        await eventually(lambda: source.fired == [0.0, soon])

        assert clock.now() >= soon
    assert source.asked < 12 and other.fired == []


async def test_without_anything_due_it_asks_once_until_it_is_rung():
    source = Due()
    async with running(SystemClock(), source) as alarm:
        await eventually(lambda: source.asked == 1)
        await asyncio.sleep(0.2)
        assert source.asked == 1

        source.due.append(0.0)
        alarm.ring()
        await eventually(lambda: source.fired == [0.0])


async def test_a_clock_that_is_set_forward_is_noticed_at_the_next_ring():
    clock, source = FakeClock(now=100.0), Due(10_000.0)
    async with running(clock, source) as alarm:
        await eventually(lambda: source.asked == 1)
        clock.set_now(20_000.0)
        alarm.ring()

        await eventually(lambda: source.fired == [10_000.0])


async def test_a_source_that_fails_does_not_end_the_alarm(caplog):
    source = Due(0.0, fails=1)
    async with running(SystemClock(), source) as alarm:
        await eventually(lambda: "the alarm failed" in caplog.text)
        alarm.ring()

        await eventually(lambda: source.fired == [0.0])
