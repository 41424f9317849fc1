"""What becomes of agents whose conversation is deleted, or whose start is undone."""

import asyncio

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.sessions import delete_session
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from tests.app.place import Place, place, spoken
from tests.app.work.test_delegation import is_child, news_in


def busy(heard: Heard) -> Piece:
    """A parent that starts four agents in the background, one more than run at a time; each sleeps in a terminal."""
    if is_child(heard):
        return Say("Slept.") if spoken(heard) else Call("terminal", {"command": "sleep 1000"})
    tasks = [{"goal": str(number)} for number in range(4)]
    return Say("Begun.") if spoken(heard) else Call("delegate_task", {"tasks": tasks, "background": True})


async def until_stopped(here: Place, parent: str) -> list[str]:
    """How the agents ended."""
    async with asyncio.timeout(10):
        while any(child.is_open for child in await here.runtime.store.children.of(parent)):
            await asyncio.sleep(0.02)
    return [child.outcome for child in await here.runtime.store.children.of(parent)]


@pytest.mark.parametrize("how", ["deleted", "undone"])
async def test_agents_stop_when_their_conversation_is_deleted_or_their_start_undone(tmp_path, how):
    async with place(tmp_path, busy, more="terminal: {jail: none}\n") as here:
        await here.say("Begin")
        parent = here.record.id
        if how == "deleted":
            await delete_session(Access(system=here.runtime, who=here.runtime.owner), parent)
        else:
            await here.text("/undo")
        ended = await until_stopped(here, parent)

        assert ended == ["stopped"] * 4
        assert how == "deleted" or await news_in(here) == []
