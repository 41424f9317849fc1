"""The tool `goal`: it reads, proposes and reports; the person and the criteria decide."""

import json
from pathlib import Path

import pytest

from hermes_agent.app.opening import Options
from hermes_agent.core.chat import Conversation
from hermes_agent.core.events import Asked
from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.store.work.goals import State
from tests.app.place import Place, place
from tests.work.goals.harness import command, ended, started


def script(**arguments: object):
    return lambda heard: Say("Well.") if heard.turn else Call("goal", arguments)


async def said(there: Place) -> str:
    """What the tool answered."""
    view = await there.runtime.hermes.view(there.record.id)
    found = [part for message in view.messages for part in message.parts if isinstance(part, ToolResult)]
    return found[0].text


async def test_the_agent_reads_goals_with_their_receipts(tmp_path: Path):
    async with place(tmp_path, script(action="get")) as there:
        goal = await started(there, criteria=command("exit 1"), later=True)
        await there.say("Which goals do I have?")
        text = await said(there)

    assert f"# {goal.id}: draft" in text
    assert "`exit 1`" in text


async def test_a_proposal_is_a_question_and_the_yes_sets_the_goal(tmp_path: Path):
    def proposes(heard: Heard) -> Call | Say:
        commands = ["test -e done.txt"]
        return (
            Say("Done.")
            if heard.turn
            else Call("goal", {"action": "propose", "text": "Have it.", "commands": commands})
        )

    async with place(tmp_path, proposes) as there:
        await there.tell("Do it.")
        asked = (await there.until(Asked)).event
        assert isinstance(asked, Asked)
        await there.runtime.hermes.submit(there.inbound("yes", answers=asked.question), there.record.id)
        await there.runtime.hermes.idle()
        (goal,) = await there.runtime.store.goals.list()

    assert "`test -e done.txt`" in asked.text
    assert asked.choices == ("yes", "no")
    assert (goal.text, goal.origin) == ("Have it.", "proposed")
    assert goal.session == there.record.id


async def test_commands_that_prove_the_pursued_goal_are_proposed_as_criteria(tmp_path: Path):
    def proposes(heard: Heard) -> Call | Say:
        wish = {"action": "propose", "commands": ["exit 2"]}
        return Say("Done.") if heard.turn else Call("goal", wish)

    async with place(tmp_path, proposes) as there:
        goal = await started(there, criteria=command("exit 1"))
        asked = (await there.until(Asked)).event
        assert isinstance(asked, Asked)
        await there.runtime.hermes.submit(there.inbound("yes", answers=asked.question), there.record.id)
        found = await ended(there, goal)

    assert f"Shall the goal {goal.id} have further criteria?" in asked.text
    assert (found.revision, [each.text for each in found.criteria]) == (2, ["exit 1", "exit 2"])


async def test_a_no_sets_nothing(tmp_path: Path):
    async with place(tmp_path, script(action="propose", text="Have it.")) as there:
        after = await there.tell("Do it.")
        asked = (await there.until(Asked)).event
        assert isinstance(asked, Asked)
        await there.runtime.hermes.submit(there.inbound("no", answers=asked.question), there.record.id)
        await there.ended(after)

        assert "did not agree" in await said(there)
        assert await there.runtime.store.goals.list() == []


async def test_nobody_there_means_no_goal(tmp_path: Path):
    async with place(tmp_path, script(action="propose", text="Have it."), Options(attended=False)) as there:
        await there.say("Do it.")

        assert "refused" in json.loads(await said(there))["kind"]
        assert await there.runtime.store.goals.list() == []


async def test_a_report_without_a_goal_is_an_error(tmp_path: Path):
    async with place(tmp_path, script(action="report")) as there:
        await there.say("Go.")

        assert "No goal is pursued" in await said(there)


@pytest.mark.parametrize("action", ["get", "report", "propose"])
async def test_a_chat_that_others_read_has_no_goals(tmp_path: Path, action: str):
    async with place(tmp_path, script(action=action, text="x")) as there:
        await started(there, text="My secret plan.", criteria=command("exit 1"), later=True)
        group = Conversation(platform="cli", chat_kind="group", chat="1")
        there.record = await there.runtime.hermes.open_session(
            group, there.runtime.owner, workspace=there.record.workspace, new=True
        )
        await there.say("Which goals do I have?")

        assert "private matter" in await said(there)
        assert "secret plan" not in "".join(repr(asked.prompt) for asked in there.server.asked)


async def test_goals_are_shown_beside_the_message_in_every_private_session(tmp_path: Path):
    async with place(tmp_path, lambda _: Say("Yes.")) as there:
        goal = await started(there, criteria=command("exit 1"), later=True)
        await there.say("Hello.")
        await there.say("Hello again.")
        notes = ["\n".join(asked.notes) for asked in there.server.asked]

    assert goal.state is State.DRAFT
    assert notes[0].count(goal.id) == 1
    assert notes[1].count(goal.id) == 1  # Of before: told again only when it changed.
