"""/agents and /background, and /stop of a run that has agents."""

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.core.chat import Principal, Standing
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


def answering(heard: Heard) -> Piece:
    if "You work for another agent" in heard.system:
        return Say("Found it.")
    return Say(f"{sum('Found it.' in message.text for message in heard.messages)} reports.")


@pytest.mark.parametrize("name", ["background", "bg", "btw"])
async def test_a_person_starts_an_agent_without_asking_the_model(tmp_path, name):
    async with place(tmp_path, answering) as here:
        twice = here.inbound(f"/{name} dig", message_id="one")
        for _ in range(2):
            record = await here.runtime.hermes.record(here.record.id)
            done = await perform(Desk(runtime=here.runtime, record=record, inbound=twice, busy=True))
        await here.ended(0)
        [child] = await here.runtime.store.children.of(here.record.id)

        assert done is not None
        assert child.session in done.text
        assert (child.goal, child.outcome, child.delivery) == ("dig", "answered", "mail")
        assert (await here.transcript())[-1] == "assistant: 1 reports."
        with pytest.raises(HermesError, match="/background WORDS"):
            await here.text("/bg")


async def test_where_delegation_is_off_or_a_guest_asks_nobody_starts_an_agent(tmp_path):
    async with place(tmp_path, answering, more="tools: {cli: {disabled: [delegation]}}\n") as here:
        with pytest.raises(HermesError, match="`delegation` is off"):
            await here.text("/background dig")
        guest = Principal(platform="telegram", user="9", standing=Standing.GUEST)
        inbound = replace(here.inbound("/background dig"), principal=guest)
        with pytest.raises(HermesError, match="Guests"):
            await perform(Desk(runtime=here.runtime, record=here.record, inbound=inbound))
        assert await here.runtime.store.children.of(here.record.id) == []
