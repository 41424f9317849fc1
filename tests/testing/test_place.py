"""The place without processes."""

from __future__ import annotations

import asyncio

import pytest

from hermes_agent.sandbox.place import AlreadyStarted, Command, Ended, Place, PlaceFailed, Running
from hermes_agent.testing.clock import FakeClock
from hermes_agent.testing.place import FakePlace, Play

LS = Command(text="ls", folder="/work")
SERVER = Command(text="serve", folder="/work", background=True)


def test_it_is_a_place():
    place: Place = FakePlace()

    assert place.name == "fake"


async def test_a_command_runs_as_the_test_says():
    place = FakePlace(plays=lambda command: Play(output=f"<{command.text}>".encode(), code=3))
    running: Running = await place.start("s1/c1", LS)

    assert await running.wait() == Ended(code=3, seconds=0.0)
    assert await running.read(1, 2) == b"ls"
    assert (await running.size(), running.cwd) == (4, "/work")


async def test_an_id_starts_one_command_and_is_attached_to_afterwards():
    place = FakePlace()
    running = await place.start("s1/c1", LS)
    with pytest.raises(AlreadyStarted):
        await place.start("s1/c1", LS)

    assert await place.attach("s1/c1") is running
    assert await place.attach("s1/c2") is None


async def test_a_command_takes_the_time_of_the_clock():
    clock = FakeClock()
    running = await FakePlace(plays=lambda _: Play(seconds=5.0), clock=clock).start("s1/c1", LS)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(running.wait())
        await clock.advance(4.9)
        early = await running.poll()
        await clock.advance(0.1)

    assert early is None
    assert waiting.result() == Ended(code=0, seconds=5.0)


async def test_a_command_without_an_end_runs_until_it_is_finished():
    running = await FakePlace(plays=lambda _: Play(output=b"one ", seconds=None)).start("s1/c1", LS)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(running.wait())
        await asyncio.sleep(0)
        running.finish(7, b"two")

    assert waiting.result().code == 7
    assert await running.read(0, 100) == b"one two"


async def test_a_kill_ends_even_a_command_that_waits_for_the_clock():
    running = await FakePlace(plays=lambda _: Play(seconds=3600.0)).start("s1/c1", LS)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(running.wait())
        await asyncio.sleep(0)
        assert await running.kill()

    assert waiting.result().code == 137


async def test_cancelling_a_wait_leaves_the_command_alone():
    clock = FakeClock()
    running = await FakePlace(plays=lambda _: Play(seconds=1.0), clock=clock).start("s1/c1", LS)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await running.wait()
    await clock.advance(1.0)

    assert await running.poll() == Ended(code=0, seconds=1.0)


async def test_only_a_background_command_has_an_input_and_is_listed():
    place = FakePlace()
    await place.start("s1/c1", LS)
    server = await place.start("s1/c2", SERVER)
    await place.start("s2/c3", SERVER)
    await server.write(b"stop\n")
    with pytest.raises(PlaceFailed):
        await place.started[0].write(b"x")

    assert server.written == b"stop\n"
    assert await place.list("s1") == ("s1/c2",)


async def test_a_command_that_left_processes_behind_is_listed():
    place = FakePlace(plays=lambda _: Play(children=True))
    await place.start("s1/c1", LS)

    assert await place.list("s1") == ("s1/c1",)


@pytest.mark.parametrize("exec_id", ["", "c1", "a/b/c", "../c1", "s1/.hidden", f"s1/{'x' * 121}"])
async def test_an_ill_formed_id_is_refused(exec_id):
    with pytest.raises(PlaceFailed):
        await FakePlace().start(exec_id, LS)
