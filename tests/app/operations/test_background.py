"""What goes on behind a session, and the next process works on the agents that one left."""

import asyncio

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.app.operations.background import awaits_reports, count_commands, is_reviewing, resume_agents, unserved
from hermes_agent.app.settings import SERVED
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


async def test_background_commands_are_counted_while_they_run(tmp_path):
    start = Call("terminal", {"command": "sleep 300", "background": True}, id="a")
    script = [start, Say("Begun."), Call("process", {"action": "list"}, id="b"), Say("There.")]
    async with place(tmp_path, script) as here:
        assert await count_commands(here.runtime, here.record.id) == 0
        await here.say("Begin")

        assert await count_commands(here.runtime, here.record.id) == 1
        assert not is_reviewing(here.runtime)


async def test_jobs_that_no_process_runs_are_said(tmp_path):
    async with place(tmp_path, []) as here:
        assert await unserved(here.runtime) == ""
        await here.text('/cron create @daily "Look."')
        assert await unserved(here.runtime) == "! nobody runs the jobs"
        async with another(here.runtime.home, here.server, Options(queue=SERVED, own_only=False)) as serves:
            await serves.runtime.store.workers.register()
            assert await unserved(here.runtime) == ""
