"""A command that is stopped while it is being started is ended as soon as it has begun."""

import asyncio

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.testing.place import FakePlace
from hermes_agent.tools.starting import started, told_meanwhile
from tests.tools.bench import Context


async def test_what_was_started_for_a_caller_who_left_is_ended():
    begins, ended = asyncio.Event(), []

    async def start():
        await begins.wait()
        return "running"

    async def end(running):
        ended.append(running)

    waiting = asyncio.ensure_future(started(start(), end, name="a"))
    await asyncio.wait([waiting], timeout=0.01)
    waiting.cancel()
    await asyncio.wait([waiting], timeout=0.01)
    begins.set()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended == ["running"]


async def test_what_could_not_be_started_is_told_and_not_ended():
    async def start():
        raise ToolError("no")

    async def end(running):
        raise AssertionError(running)

    with pytest.raises(ToolError):
        await started(start(), end, name="a")


async def test_a_person_is_told_what_the_place_waits_for_until_it_does_not():
    place, context = FakePlace(), Context(workspace="/work")
    with told_meanwhile(place, context, after=0.001):
        await asyncio.sleep(0.005)
        place.waiting = "copying files"
        while len(context.lines) < 2:
            await asyncio.sleep(0)
    lines = len(context.lines)
    await asyncio.sleep(0.005)

    assert set(context.lines) == {"copying files"}
    assert len(context.lines) == lines
