"""The tool `agents`, as a model uses it."""

import asyncio

import pytest

from hermes_agent.core.messages import Origin, ToolResult
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Piece, Say
from tests.app.place import place, spoken

WORKER = "You work for another agent"


def steps(*calls: dict[str, object]):
    """A parent that starts an agent in the background, then uses `agents` with these arguments; the id is filled in."""

    def script(heard: Heard) -> Piece | Answer:
        if WORKER in heard.system:
            again = sum("Once more" in message.text for message in heard.messages)
            return Answer(pieces=(Say(f"Dug {1 + again} times."),), pace=Pace(first=0.2))
        turn = spoken(heard)
        if not turn:
            return Call("delegate_task", {"goal": "dig here", "background": True})
        if turn > len(calls):
            return Say("Done.")
        results = [part for message in heard.messages for part in message.parts if isinstance(part, ToolResult)]
        session = results[0].text.splitlines()[1].partition(":")[0]
        given = {key: str(value).replace("ID", session) for key, value in calls[turn - 1].items()}
        return Call("use_tool", {"name": "agents", "arguments": given})

    return script


async def answers(tmp_path, *calls: dict[str, object]) -> list[ToolResult]:
    async with place(tmp_path, steps(*calls)) as here:
        await here.say("Go")
        async with asyncio.timeout(20):
            while any(child.is_open for child in await here.runtime.store.children.of(here.record.id)):
                await asyncio.sleep(0.02)
        view = await here.runtime.hermes.view(here.record.id)
        parts = [part for message in view.messages for part in message.parts if isinstance(part, ToolResult)]
        return parts[1:]


async def test_agents_are_listed_waited_for_shown_and_read(tmp_path):
    found = await answers(
        tmp_path,
        {"action": "list"},
        {"action": "wait", "id": "ID"},
        {"action": "show", "id": "ID"},
        {"action": "log", "id": "ID"},
    )

    assert "running" in found[0].text
    assert "dig here" in found[0].text
    assert "its report comes as a message" in found[1].text
    assert "Dug 1 times." in found[2].text
    assert found[3].text.splitlines()[1:] == ["said: Dug 1 times.", "ended (answered): Dug 1 times."]
    assert [part.origin for part in found[2].parts] == [Origin.MODEL]


async def test_an_agent_is_told_something_and_stopped(tmp_path):
    found = await answers(
        tmp_path,
        {"action": "wait", "id": "ID"},
        {"action": "say", "id": "ID", "text": "Once more"},
        {"action": "wait", "id": "ID"},
        {"action": "show", "id": "ID"},
        {"action": "stop", "id": "ID"},
    )

    assert "Its next report" in found[1].text
    assert "Dug 2 times." in found[3].text
    assert "has ended already" in found[4].text


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"action": "show", "id": "nobody"}, "There is no agent nobody"),
        ({"action": "show", "id": ""}, "Say which agent"),
        ({"action": "say", "id": "ID"}, "`$.text`"),
        ({"action": "dig", "id": "ID"}, "action"),
    ],
)
async def test_a_wrong_call_says_what_is_wrong(tmp_path, call, said):
    found = await answers(tmp_path, call)

    assert found[0].is_error
    assert said in found[0].text
