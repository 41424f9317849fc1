"""Servers that ask the model during a call: only where they may, on the person's account, within limits."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from hermes_agent.agent.agent import asks_approval
from hermes_agent.app.mcp.sampling import SYSTEM
from hermes_agent.app.opening import Options
from hermes_agent.core.events import Asked
from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.app.mcp.calling import PLAIN
from tests.app.place import Place, place

CONFIG = (
    f"mcp_servers:\n  fix:\n    command: {sys.executable}\n    args: [{PLAIN.name}]\n    effects: {{think: reads}}\n"
)
ON = f"{CONFIG}    sampling: on\n"
ASK = f"{CONFIG}    sampling: ask\n"


class Thinking:
    """A model that has the server think, answers what it asks, and repeats what it heard."""

    def __init__(self, calls: int = 1, **arguments: object) -> None:
        self.asked: list[Heard] = []
        self.calls = calls
        self.call = Call("use_tool", {"name": "mcp__fix__think", "arguments": arguments})

    def __call__(self, heard: Heard) -> Call | Say:
        if SYSTEM in str(heard.system):
            self.asked.append(heard)
            return Say("Four.")
        return self.call if heard.turn < self.calls else Say("Done.")


async def results(here: Place) -> str:
    shutil.copy(PLAIN, here.record.workspace)
    await here.text("/mcp test fix")
    await here.say("Think")
    return str([entry.event.message.parts for entry in await here.log() if entry.event.kind == "tool_ended"])


async def test_a_server_that_may_asks_the_model_and_it_is_billed(tmp_path: Path):
    model = Thinking()
    async with place(tmp_path, model, Options(attended=False), more=ON) as here:
        said = await results(here)
        rows = await here.runtime.store.usage.rows(here.record.id)

    assert "Four." in said
    assert len(model.asked) == 1
    assert [row.purpose for row in rows].count("mcp") == 1


@pytest.mark.parametrize(("more", "why"), [(CONFIG, "Sampling not supported"), (ASK, "did not allow it")])
async def test_a_server_that_may_not_asks_nobody(tmp_path: Path, more: str, why: str):
    model = Thinking()
    async with place(tmp_path, model, Options(attended=False), more=more) as here:
        said = await results(here)

    assert why in said
    assert model.asked == []


async def test_the_person_is_asked_first_where_it_says_so(tmp_path: Path):
    model = Thinking()
    async with place(tmp_path, model, more=ASK) as here:
        shutil.copy(PLAIN, here.record.workspace)
        await here.text("/mcp test fix")
        after = await here.tell("Think")
        asked = (await here.until(Asked, after)).event
        before = len(model.asked)
        await here.tell(here.inbound("once", answers=asked.question))
        await here.ended(after)

    assert "wants to ask your model:\nuser: What is 2 + 2?" in asked.text
    assert asks_approval(asked.question)  # A program answers questions for information, and approves by a right alone.
    assert (before, len(model.asked)) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "why", "count"),
    [({"calls": 2, "times": 500}, "10 times", 10), ({"text": "x" * 60_000}, "at most 50,000", 0)],
)
async def test_what_a_server_may_ask_is_limited(tmp_path: Path, arguments: dict, why: str, count: int):
    model = Thinking(**arguments)
    async with place(tmp_path, model, Options(attended=False), more=ON) as here:
        said = await results(here)

    assert why in said
    assert len(model.asked) == count
