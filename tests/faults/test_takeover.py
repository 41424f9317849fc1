"""Commands of sessions that go from home to home while processes are killed: each begins once, or is told as unknown.

`--full`: 500 messages and 30 kills.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hermes_agent.core.events import ToolEnded
from hermes_agent.core.messages import Role
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.database import Store, open_store
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.doubles.postgres import PostgresCluster
from tests.faults.household import Household, answered, open_session, say

UNKNOWN = "Whether it ran is unknown"
PATIENCE = 180.0


def counting(heard: Heard) -> Call | Say:
    """Count the message's number with a command, and say what the command said."""
    if heard.last.role is Role.TOOL:
        return Say(f"It said: {heard.last.parts[0].text}")
    number = heard.last.text
    command = f"echo {number} >> counted; sleep 1.{number[-1]}; echo done {number}"
    return Call("terminal", {"command": command}, id=number)


async def one_more(file: Path) -> None:
    """Return when a command that is begun from now on has counted."""

    def lines() -> int:
        return file.read_text().count("\n") if file.exists() else 0

    before = lines()
    while lines() == before:
        await asyncio.sleep(0.05)


async def told(store: Store, session: str) -> list[str]:
    entries = await store.history.entries(session)
    return [
        part.parts[0].text
        for entry in entries
        if isinstance(entry.event, ToolEnded)
        for part in entry.event.message.parts
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_command_begins_once_or_is_told_as_unknown(tmp_path: Path, cluster: PostgresCluster, full: bool):
    messages, kills = (500, 30) if full else (40, 8)
    chance, url = random.Random(13), cluster.fresh_url()
    work = tmp_path / "work"
    work.mkdir()
    async with AsyncExitStack() as closing:
        model = closing.enter_context(serving_in_thread(openai_model(counting, keys=())))
        household = closing.enter_context(Household(tmp_path, url, model.url))
        store = await open_store(url)
        closing.push_async_callback(store.close)
        sessions = {}
        for number in range(messages):
            sessions[f"m{number}"] = await open_session(store, number, work)
            await say(store, sessions[f"m{number}"], f"m{number}", number)
            if number % (messages // kills) == messages // kills - 1:
                await one_more(work / "counted")
                await asyncio.sleep(chance.uniform(0.0, 0.5))  # What has begun is not over yet.
                household.kill(chance.choice(list(household.processes)))
        await answered(store, PATIENCE)
        said = {number: await told(store, session) for number, session in sessions.items()}
    counted = Counter((work / "counted").read_text().split())
    unknown = [number for number, words in said.items() if any(UNKNOWN in each for each in words)]
    print(f"{messages} messages, {kills} kills: {sum(counted.values())} begun, {len(unknown)} told as unknown")

    assert [number for number, times in counted.items() if times > 1] == []
    assert [number for number in sessions if not counted[number] and number not in unknown] == []
    assert unknown, "no kill left a command to the other home"
