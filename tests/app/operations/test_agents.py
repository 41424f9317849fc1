"""Operations on agents, from a terminal and in a conversation."""

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.agents import list_agents, log_agent, show_agent
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.testing.faults import Hang
from tests.app.place import Place, place, spoken

GUEST = Principal(platform="telegram", user="7", standing=Standing.GUEST)
ANNA = Principal(platform="api", user="anna", standing=Standing.MEMBER)


def script(heard: Heard) -> Piece | Hang:
    if "You work for another agent" not in heard.system:
        return Say("Begun.") if spoken(heard) else Call("delegate_task", {"goal": "dig", "background": True})
    return Hang()


async def until_open(here: Place, count: int) -> None:
    async with asyncio.timeout(10):
        while sum(child.is_open for child in await here.runtime.store.children.of(here.record.id)) != count:
            await asyncio.sleep(0.02)


async def test_agents_are_listed_read_and_stopped_by_their_conversation_and_their_owner(tmp_path):
    async with place(tmp_path, script) as here:
        await here.say("Go")
        owner = Access(system=here.runtime, who=here.runtime.owner)
        child = (await list_agents(owner))[0]

        assert child.session in await here.text("/agents")
        assert await list_agents(Access(system=here.runtime, who=ANNA)) == []
        with pytest.raises(HermesError, match="Guests"):
            await list_agents(Access(system=here.runtime, who=GUEST))
        assert await here.text(f"/agents stop {child.session[:-2]}") == f"{child.session} is stopped."
        await until_open(here, 0)
        assert (await show_agent(owner, child.session)).agent.outcome == "stopped"
        assert "ended (stopped)" in (await log_agent(owner, child.session))[-1]
        assert await here.text(f"/agents stop {child.session}") == f"{child.session} has ended already."


async def test_an_unknown_agent_is_an_error_with_the_nearest(tmp_path):
    async with place(tmp_path, script) as here:
        await here.say("Go")
        child = (await here.runtime.store.children.of(here.record.id))[0]

        with pytest.raises(HermesError, match=f"Did you mean {child.session}"):
            await here.text(f"/agents show x{child.session[1:]}")


async def test_the_owner_reaches_an_agent_however_many_there_are(tmp_path):
    async with place(tmp_path, script) as here:
        await here.say("Go")
        first = (await here.runtime.store.children.of(here.record.id))[0]
        await here.text("/agents stop all")
        await until_open(here, 0)
        record = await here.runtime.hermes.record(first.session)
        many = [replace(first, session=f"2027_{n}", created=first.created + n) for n in range(1, 60)]

        async def add(tx):
            for each in many:
                await here.runtime.store.sessions.create(tx, replace(record, id=each.session))
                await here.runtime.store.children.add(tx, each, 100)

        await here.runtime.store.write(add)
        owner = Access(system=here.runtime, who=here.runtime.owner)

        assert first.session not in [child.session for child in await list_agents(owner)]
        assert (await show_agent(owner, first.session)).agent.outcome == "stopped"
        with pytest.raises(HermesError, match="There is no agent"):
            await show_agent(Access(system=here.runtime, who=ANNA), first.session)
