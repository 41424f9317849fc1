"""A person works with the agent in an editor."""

import asyncio
import re
from pathlib import Path

import pytest
from acp import RequestError

from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Hang, Status
from hermes_agent.testing.model_servers import openai_model, serving
from tests.acp.editor import editor, near
from tests.app.place import counting, settle_home, spoken


async def test_a_prompt_is_answered_in_pieces_and_ends_its_turn(tmp_path: Path):
    async with editor(tmp_path, counting, process=True) as place:
        session = await place.begin()
        ended = await place.say(session, "Hi")

    assert place.said.agent_info.name == "hermes"
    assert place.client.text(session) == "Reply 1."
    assert ended.stop_reason == "end_turn"
    assert ended.usage.output_tokens > 0
    assert place.client.of(session, "usage_update")[-1].size > 0


async def test_a_cancelled_prompt_ends_although_the_model_hangs(tmp_path: Path):
    async with editor(tmp_path, lambda _: Hang()) as place:
        session = await place.begin()
        asking = asyncio.create_task(place.say(session, "Hi"))
        async with asyncio.timeout(10):
            while not place.server.exchanges:
                await asyncio.sleep(0.02)
        began = asyncio.get_running_loop().time()
        await place.agent.cancel(session_id=session)
        ended = await asking
        seconds = asyncio.get_running_loop().time() - began

    assert ended.stop_reason == "cancelled"
    assert seconds < 2


async def test_a_change_of_a_file_is_shown_as_a_diff(tmp_path: Path):
    def script(heard):
        steps = [
            Call("read_file", {"path": "a.txt"}),
            Call("patch", {"path": "a.txt", "old_string": "two", "new_string": "TWO"}),
            Say("Done."),
        ]
        return steps[spoken(heard)]

    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("one\ntwo\nthree\n")
    async with editor(tmp_path, script) as place:
        session = await place.begin()
        ended = await place.say(session, "Change it")
    updates = place.client.of(session, "tool_call_update")
    diffs = [each for update in updates for each in update.content or () if each.type == "diff"]

    assert ended.stop_reason == "end_turn"
    assert [each.kind for each in place.client.of(session, "tool_call")] == ["read", "edit"]
    assert [each.status for each in updates if each.status in ("completed", "failed")] == ["completed", "completed"]
    assert diffs[0].path == str(tmp_path / "work/a.txt")
    assert diffs[0].old_text == "one\ntwo\nthree\n"
    assert diffs[0].new_text == "one\nTWO\nthree\n"


async def test_a_plan_is_shown_as_one(tmp_path: Path):
    def script(heard):
        if spoken(heard):
            return Say("Done.")
        todos = [
            {"id": "1", "content": "Look", "status": "completed"},
            {"id": "2", "content": "Mend", "status": "in_progress"},
        ]
        return Call("todo", {"todos": todos})

    async with editor(tmp_path, script) as place:
        session = await place.begin()
        await place.say(session, "Plan it")

    plan = place.client.of(session, "plan")[-1]
    assert [(each.content, each.status) for each in plan.entries] == [("Look", "completed"), ("Mend", "in_progress")]


async def test_commands_and_skills_are_offered_and_a_command_is_answered_without_a_model(tmp_path: Path):
    skill = tmp_path / "home/skills/brew/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: brew\ndescription: Brew tea.\n---\nBoil water.\n")
    async with editor(tmp_path, counting) as place:
        session = await place.begin()
        await place.client.until(lambda: place.client.of(session, "available_commands_update"))
        ended = await place.say(session, "/status")
        asked = len(place.server.exchanges)
    names = [each.name for each in place.client.of(session, "available_commands_update")[-1].available_commands]

    assert {"help", "compress", "undo", "brew"} <= set(names)
    assert "new" not in names
    assert ended.stop_reason == "end_turn"
    assert session in place.client.text(session)
    assert not asked


async def test_an_unknown_command_and_an_empty_prompt_are_refused_with_a_sentence(tmp_path: Path):
    async with editor(tmp_path, counting) as place:
        session = await place.begin()
        for text, said in (("/modl", "Did you mean `/model`?"), (" ", "says nothing")):
            with pytest.raises(RequestError, match=re.escape(said)) as caught:
                await place.say(session, text)
            assert caught.value.code == -32602
        assert (await place.say(session, "Hi")).stop_reason == "end_turn"


async def test_a_session_without_a_model_asks_for_a_way_in(tmp_path: Path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    async with near(home, work) as place:
        session = await place.begin()
        with pytest.raises(RequestError) as caught:
            await place.say(session, "Hi")

    assert caught.value.code == -32000
    assert "hermes setup" in str(caught.value)


async def test_a_failed_run_is_an_error_with_its_sentence_and_the_next_one_works(tmp_path: Path):
    replies = iter([Status(400)])
    async with editor(tmp_path, lambda heard: next(replies, Say("Better."))) as place:
        session = await place.begin()
        with pytest.raises(RequestError) as caught:
            await place.say(session, "Hi")
        ended = await place.say(session, "Again")

    assert caught.value.code == -32603
    assert "400" in str(caught.value)
    assert ended.stop_reason == "end_turn"


async def test_twenty_sessions_of_one_connection_stay_apart(tmp_path: Path):
    def script(heard):
        return Say(" ".join([heard.last.text.split("#")[1]] * 50))

    async with editor(tmp_path, script) as place:
        sessions = [await place.begin() for _ in range(20)]
        async with asyncio.TaskGroup() as group:
            for number, session in enumerate(sessions):
                group.create_task(place.say(session, f"Say #{number}#"))

    for number, session in enumerate(sessions):
        assert set(place.client.text(session).split()) == {str(number)}


async def test_what_is_wrong_with_the_settings_is_said_in_the_thread(tmp_path: Path):
    async with serving(openai_model(counting, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url)
        async with near(home.root, tmp_path) as place:
            await place.say(await place.begin(), "Hi")
        with (tmp_path / "home/config.yaml").open("a") as file:
            file.write("agnet: {}\n")
        async with near(home.root, tmp_path) as again:
            session = await again.begin()
            await again.say(session, "Hi")

    assert "agnet" in again.client.text(session)


async def test_a_disk_that_takes_nothing_is_no_wrong_parameter(tmp_path: Path):
    async with editor(tmp_path, counting) as place:
        session = await place.begin()
        (place.home / "cache").mkdir(exist_ok=True)
        (place.home / "cache/input").write_text("in the way")
        with pytest.raises(RequestError, match="cannot be written") as caught:
            await place.say(session, "x " * 200_000)
        assert (await place.say(session, "Hi")).stop_reason == "end_turn"

    assert caught.value.code == -32603
