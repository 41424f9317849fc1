"""What was learned, as the owner sees and judges it, by slash and by command line."""

import asyncio
import json
from dataclasses import replace

import pytest

from hermes_agent.app.commands.command import Desk, perform
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.learned import Learned
from hermes_agent.providers.demo.script import Call, Say
from tests.app.place import Place
from tests.cli.shell import typed
from tests.learning.harness import SOON, Script, learning_place, looks, note, reviewed, skill


async def taught(here: Place) -> Learned:
    await here.say("Look around")
    await reviewed(here)
    return here.runtime.learner.work.learned


def two_lessons() -> Script:
    return Script(looks(3), clean=[skill("tea", "Boil it."), note("It rains."), Say("Kept.")])


async def test_the_log_shows_what_waits_and_what_is_live(tmp_path):
    async with learning_place(tmp_path, two_lessons()) as here:
        assert await here.text("/learn") == "There are no lessons yet."
        assert await here.text("/learn stats") == "No conversation was reviewed yet."
        await taught(here)
        log = (await here.text("/learn log")).splitlines()
        shown = await here.text("/learn show 1")
        diff = await here.text("/learn diff 2")
        stats = await here.text("/learn stats")
        brought = await here.runtime.learner.work.learned.brought()

    assert (brought.kinds["review"].calls, brought.kinds["review"].kept, brought.in_line) == (3, 2, 0)
    assert [line.split("  ")[0] for line in log] == ["2", "1"]
    assert f"skill tea: create by background, from {here.record.id}" in log[1]
    assert "Review " in shown
    assert "+Boil it." in shown
    assert "+It rains." in diff
    assert "review: 1 ended (0 kept nothing, 0 failed), 3 model calls" in stats
    assert "2 changes live, 0 proposals" in stats
    assert "queued: 0" in stats


async def test_an_undo_by_slash_takes_the_newest_back(tmp_path):
    async with learning_place(tmp_path, two_lessons()) as here:
        await taught(here)
        assert (await here.text("/learn undo")).startswith("Version 2 of MEMORY.md is undone (version 3")
        assert (await here.text("/learn undo 1")).startswith("Version 1 of tea/SKILL.md is undone")
        assert "archive of 1 by owner" in await here.text("/learn")
        for line in ("/learn undo", "/learn undo p1", "/learn show x", "/learn show p9", "/learn approve 1", "/learn?"):
            with pytest.raises(HermesError):
                await here.text(line)
        with pytest.raises(HermesError, match="Say `/learn log`"):
            await here.text("/learn show")


async def test_what_waits_is_approved_or_rejected(tmp_path):
    async with learning_place(tmp_path, two_lessons(), more=SOON + "learning:\n  mode: propose\n") as here:
        await taught(here)
        shown = await here.text("/learn show p1")
        assert "Boil it." in await here.text("/learn diff p1")
        assert (await here.text("/learn approve p1")).startswith("p1 is live (version 1")
        assert await here.text("/learn reject p2") == "p2 is rejected."
        with pytest.raises(HermesError, match="it is rejected"):
            await here.text("/learn approve p2")
        assert "(rejected)" in await here.text("/learn show p2")
        assert "(approved)" in await here.text("/learn show p1")

    assert "needs your approval" in shown
    assert "It expires" in shown


async def test_why_names_the_notes_of_the_prompt_and_the_skills_that_were_loaded(tmp_path):
    script = two_lessons()
    async with learning_place(tmp_path, script) as here:
        await taught(here)
        assert await here.text("/learn why 1") == ("No lessons: its prompt had no notes, and it loaded no skill.")
        script.talk = [
            [Call("skill_view", {"name": "tea"}), Call("skill_view", {"name": "handling-errors-of-no-one"})],
            Say("Done."),
        ]
        await here.type("/new")
        await here.say("Make tea")
        why = (await here.text("/learn why 2")).splitlines()
        with pytest.raises(HermesError, match="there is no turn 3"):
            await here.text("/learn why 3")

    assert why[0].endswith("(in the prompt)")
    assert "MEMORY.md: add by background" in why[0]
    assert why[1].endswith("(loaded)")
    assert why[2] == "skill handling-errors-of-no-one, which nothing here changed"


async def test_only_the_owner_sees_it_and_a_review_can_be_asked_for(tmp_path):
    async with learning_place(tmp_path, two_lessons()) as here:
        await here.say("Look around")
        assert "Learned: skill `tea`: create" in await here.text("/learn review")
        member = Principal(platform="telegram", user="7", standing=Standing.MEMBER)
        inbound = replace(here.inbound("/learn"), principal=member)
        with pytest.raises(HermesError, match="Only the owner"):
            await perform(Desk(runtime=here.runtime, record=here.record, inbound=inbound))


async def test_the_command_line_does_the_same(tmp_path):
    script = two_lessons()
    async with learning_place(tmp_path, script, more=SOON + "learning:\n  mode: propose\n") as here:
        await taught(here)
        session = here.record.id
    home = tmp_path / "home"

    async def cli(*words: str) -> str:
        return (await asyncio.to_thread(typed, home, "learn", *words)).out

    rows = json.loads(await cli("log", "--json"))
    assert [(row["id"], row["why"], row["session"]) for row in rows] == [
        ("p1", "asked", session),
        ("p2", "asked", session),
    ]
    assert "Boil it." in await cli("show", "p1")
    assert "p1 is live" in await cli("approve", "p1")
    assert "p2 is rejected" in await cli("reject", "p2")
    assert "+Boil it." in await cli("diff", "1")
    assert json.loads(await cli("log", "--json"))[0]["author"] == "background"
    assert "skill tea: create" in await cli("log")
    assert "No lessons" in await cli("why", "1")
    assert "No lessons" in await cli("why", "1", "--session", session)
    assert "review: 1 ended" in await cli("stats")
    assert "No conversation was reviewed" in await cli("stats", "--since", "2999-01-01")
    assert "is undone" in await cli("undo")
    assert "No review is queued." in await cli("review")
