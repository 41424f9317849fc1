"""What a task works on: inherited by the tasks that it starts, and told to the log where nobody else listens."""

import asyncio
import logging

import pytest

from hermes_agent.core.activity import Activity, activity, while_there


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


def test_an_object_that_is_gone_is_told_nothing() -> None:
    class Reader:
        def __init__(self) -> None:
            self.said: list[str] = []

        def notify(self, text: str) -> None:
            self.said.append(text)

    reader = Reader()
    said, tell = reader.said, while_there(reader.notify)
    tell("waiting")
    del reader
    tell("nobody")

    assert said == ["waiting"]
