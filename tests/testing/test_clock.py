"""The clock that tests move."""

from __future__ import annotations

import asyncio

from hermes_agent.testing.clock import FakeClock


async def sleep_and_note(clock: FakeClock, seconds: float, notes: list[tuple[float, float]]) -> None:
    await clock.sleep(seconds)
    notes.append((seconds, clock.monotonic()))


async def test_sleepers_wake_in_order_at_the_moment_when_they_are_due():
    clock = FakeClock()
    notes: list[tuple[float, float]] = []
    async with asyncio.TaskGroup() as group:
        for seconds in (3.0, 1.0, 2.0):
            group.create_task(sleep_and_note(clock, seconds, notes))
        await clock.advance(2.5)
        woken = list(notes)
        await clock.advance(1)

    assert woken == [(1.0, 1.0), (2.0, 2.0)]
    assert notes[-1] == (3.0, 3.0)
    assert clock.monotonic() == 3.5


async def test_nothing_passes_by_itself():
    clock = FakeClock(now=100.0)
    before = clock.now(), clock.monotonic()
    await asyncio.sleep(0)

    assert (clock.now(), clock.monotonic()) == before


async def test_the_wall_clock_may_go_backwards_and_monotonic_does_not():
    clock = FakeClock(now=100.0)
    await clock.advance(5)
    clock.set_now(50.0)
    await clock.advance(1)

    assert (clock.now(), clock.monotonic()) == (51.0, 6.0)


async def test_one_who_wakes_and_sleeps_again_is_woken_in_the_same_advance():
    clock = FakeClock()

    async def twice() -> float:
        await clock.sleep(1)
        await clock.sleep(1)
        return clock.monotonic()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(twice())
        await clock.advance(10)

    assert task.result() == 2.0


async def test_a_cancelled_sleeper_does_not_hold_the_clock():
    clock = FakeClock()
    task = asyncio.ensure_future(clock.sleep(1))
    await asyncio.sleep(0)
    task.cancel()
    await clock.advance(2)

    assert (clock.sleepers, clock.monotonic()) == (0, 2.0)


async def test_an_automatic_clock_jumps_to_each_sleeper_in_turn():
    clock = FakeClock(auto=True)
    notes: list[tuple[float, float]] = []

    async def one_and_a_half() -> None:
        await sleep_and_note(clock, 1.0, notes)
        await sleep_and_note(clock, 0.5, notes)

    async with asyncio.TaskGroup() as group:
        group.create_task(sleep_and_note(clock, 3600.0, notes))
        group.create_task(one_and_a_half())

    assert notes == [(1.0, 1.0), (0.5, 1.5), (3600.0, 3600.0)]
