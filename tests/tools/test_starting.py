"""A command that is stopped while it is being started is ended as soon as it has begun."""

import asyncio

import pytest

from hermes_agent.core.errors import ToolError
from hermes_agent.tools.starting import started


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
