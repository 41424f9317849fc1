"""/agents, and /stop of a run that has agents."""

import asyncio

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.testing.faults import Hang
from tests.app.place import Place, place, spoken


def script(heard: Heard) -> Piece | Hang:
    if "You work for another agent" not in heard.system:
        return Say("Begun.") if spoken(heard) else Call("delegate_task", {"goal": "dig", "background": True})
    said = "".join(message.text for message in heard.messages)
    return Say(f"Found {said.count('Also')} more.") if "Also" in said else Hang()


async def until_open(here: Place, count: int) -> None:
    async with asyncio.timeout(10):
        while sum(child.is_open for child in await here.runtime.store.children.of(here.record.id)) != count:
            await asyncio.sleep(0.02)


async def test_stop_all_stops_agents_in_the_background_and_stop_does_not(tmp_path):
    async with place(tmp_path, script) as here:
        await here.say("Go")

        await here.text("/stop")
        await until_open(here, 1)
        assert await here.text("/stop all") == "Stopped. 1 agent stopped too."
        await until_open(here, 0)
        with pytest.raises(HermesError, match="`/stop all`"):
            await here.text("/stop everything")


async def test_what_is_said_to_an_agent_that_has_ended_lets_it_go_on(tmp_path):
    async with place(tmp_path, script) as here:
        await here.say("Go")
        child = (await here.runtime.store.children.of(here.record.id))[0]
        await here.text("/agents stop all")
        await until_open(here, 0)
        await here.text(f"/agents say {child.session} Also look there")
        async with asyncio.timeout(10):
            while not any("Found 1 more." in line for line in await here.transcript()):
                await asyncio.sleep(0.02)

        reports = [line for line in await here.transcript() if line.startswith("user: Agent ")]
        assert ["stopped" in reports[0], "answered" in reports[1], len(reports)] == [True, True, 2]
        with pytest.raises(HermesError, match="Say what"):
            await here.text(f"/agents say {child.session}")
