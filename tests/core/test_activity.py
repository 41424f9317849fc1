"""What a task works on: inherited by the tasks that it starts, and told to the log where nobody else listens."""

import asyncio
import logging

import pytest

from hermes_agent.core.activity import Activity, activity


async def test_a_task_tells_whoever_its_starter_told() -> None:
    said: list[str] = []
    activity.set(Activity(name="session s1", notify=said.append))

    async def inner() -> str:
        activity.get().notify("waiting")
        return activity.get().name

    assert await asyncio.create_task(inner()) == "session s1"
    assert said == ["waiting"]


def test_where_nobody_listens_the_log_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Activity().notify("waiting")
    assert caplog.messages == ["waiting"]
