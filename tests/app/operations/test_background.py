"""Agents in the background: the next process works on them, and knows when nothing is left to come."""

import asyncio

import pytest

from hermes_agent.app.operations.background import awaits_reports, resume_agents
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Piece, Say
from hermes_agent.testing.model_servers import openai_model, serving
from tests.app.place import Place, another, counting, place, settle_home, spoken


@pytest.mark.timeout(60)
async def test_agents_that_a_process_left_are_worked_on_by_the_next(tmp_path):
    pace = Pace(first=30.0)

    def script(heard: Heard) -> Piece | Answer:
        if "You work for another agent" in heard.system:
            return Answer(pieces=(Say("Found."),), pace=pace) if slow else Say("Found.")
        return Say("Begun.") if spoken(heard) else Call("delegate_task", {"goal": "dig", "background": True})

    slow = True
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with another(home, server) as here:
            await here.say("Go")
            assert await awaits_reports(here.runtime, here.record.id)
        slow = False
        async with another(home, server) as there:
            assert await resume_agents(there.runtime, there.record.id)
            await until_quiet(there)
            assert any("Found." in line for line in await there.transcript())
            assert not await resume_agents(there.runtime, there.record.id)


async def until_quiet(here: Place) -> None:
    async with asyncio.timeout(20):
        while await awaits_reports(here.runtime, here.record.id):
            await asyncio.sleep(0.02)


async def test_a_session_without_agents_awaits_nothing(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("Hi")
        await here.runtime.hermes.idle()

        assert not await awaits_reports(here.runtime, here.record.id)
