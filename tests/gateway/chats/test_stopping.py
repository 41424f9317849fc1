"""`/stop` ends a run within two seconds, whatever hangs; each test says how long it took where it fails."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from hermes_agent.core.chat import Conversation
from hermes_agent.core.events import Outcome, RunEnded
from hermes_agent.gateway.channel import Part
from hermes_agent.host.process_table import PROC
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.channel import FakePlatform
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.platform import Trouble
from tests.gateway.harness import Harness, eventually, harness

AT_ONCE = 2.0
"""Seconds: LAW 9."""
NO_QUESTIONS = "approvals:\n  mode: off\n"


async def stopped(here: Harness, platform: FakePlatform, *, chat: str = "1") -> float:
    """Say `/stop`; seconds until the run that was under way has ended."""
    scheduler = here.gateway.runtime.hermes.scheduler
    (running,) = list(scheduler._running.values())
    began = time.monotonic()
    await platform.say("/stop", chat=chat)
    await asyncio.wait_for(running.ended.wait(), 15)
    return time.monotonic() - began


async def endings(here: Harness) -> list[Outcome]:
    (record,) = await here.store.sessions.list()
    entries = await here.store.history.entries(record.id)
    return [entry.event.outcome for entry in entries if isinstance(entry.event, RunEnded)]


@pytest.mark.parametrize("headers", [True, False])
async def test_while_the_model_hangs(tmp_path: Path, headers: bool):
    async with harness(tmp_path, [Hang(headers=headers)]) as here:
        await here.platform.say("Hi")
        await eventually(lambda: bool(here.model.exchanges))

        took = await stopped(here, here.platform)

        assert took < AT_ONCE
        assert await endings(here) == [Outcome.STOPPED]
        assert {shown.text for shown in await here.shown(2)} == {"Stopped."}


async def test_while_a_tool_hangs_and_nothing_of_it_is_left(tmp_path: Path):
    deaf = "trap '' TERM INT HUP; setsid sleep 61.723 & sleep 61.723; echo never"
    script = [Call("terminal", {"command": deaf, "timeout": 60})]
    async with harness(tmp_path, script, more=NO_QUESTIONS) as here:
        await here.platform.say("Hang")
        await eventually(lambda: len(sleeping()) == 2)

        took = await stopped(here, here.platform)

        assert took < AT_ONCE
        assert not sleeping()
        assert await endings(here) == [Outcome.STOPPED]


def sleeping() -> list[str]:
    """The processes that the hanging tool started."""
    found: list[str] = []
    for path in PROC.glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", b"61.723"]:
            found.append(path.parent.name)
    return found


async def test_while_a_hundred_messages_are_queued(tmp_path: Path):
    rules, pace = "owners: ['7']\nbusy: queue\n", "messages_per_minute: 1000\n"
    replies = iter([Hang()])
    async with harness(tmp_path, lambda _: next(replies, Say("Later.")), rules, gateway=pace) as here:
        await here.platform.say("Hi")
        await eventually(lambda: bool(here.model.exchanges))
        for number in range(100):
            await here.platform.say(f"queued {number}")

        took = await stopped(here, here.platform)

        assert took < AT_ONCE
        assert (await endings(here))[0] is Outcome.STOPPED
        queued = [f"queued {number}" for number in range(100)]  # Nothing of it is lost.
        await eventually(lambda: all(words in str(here.model.asked) for words in queued))


async def test_while_the_platform_takes_nothing(tmp_path: Path):
    async with harness(tmp_path, [Hang()], "owners: ['7']\nstream: false\n") as here:
        for _ in range(2):
            here.platform.chats.order(Trouble.BROKEN, "send")
        await here.platform.say("Hi")
        await eventually(lambda: bool(here.model.exchanges))

        took = await stopped(here, here.platform)

        assert took < AT_ONCE
        assert not here.platform.chats.of("1")
        assert {shown.text for shown in await here.shown(2)} == {"Stopped."}  # Told when it takes something again.


async def test_while_the_platform_never_answers(tmp_path: Path):
    platform = FakePlatform()
    kind = platform.kind()
    channel = kind.make(None)

    async def deaf(to: Conversation, part: Part, key: str) -> str:
        await asyncio.Event().wait()
        return ""

    channel.send = deaf
    platform.made = lambda _: channel
    async with harness(
        tmp_path,
        [[Say("Let me see."), Call("todo", {"items": []})], Hang()],
        platform=platform,
        gateway="drain_seconds: 0\n",
    ) as here:
        await platform.say("Hi")
        await eventually(lambda: len(here.model.exchanges) == 2)

        took = await stopped(here, platform)

        assert took < AT_ONCE
        assert await endings(here) == [Outcome.STOPPED]


async def test_from_elsewhere_while_the_channel_is_not_even_heard(tmp_path: Path):
    async with harness(tmp_path, [Hang()]) as here:
        await here.platform.say("Hi")
        await eventually(lambda: bool(here.model.exchanges))
        for _ in range(10):
            here.platform.chats.order(Trouble.CUT, "listen")
        (record,) = await here.store.sessions.list()

        began = time.monotonic()
        assert await here.gateway.runtime.hermes.stop(record.id)

        assert time.monotonic() - began < AT_ONCE
        assert await endings(here) == [Outcome.STOPPED]
