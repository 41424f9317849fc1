"""What a person chooses for a session in the editor."""

from pathlib import Path

import pytest
from acp import RequestError

from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.acp.editor import Client, Json, Place, choosing, editor
from tests.app.place import counting, spoken


def writing(heard: Heard) -> Json:
    return Say("Over.") if spoken(heard) else Call("write_file", {"path": "a.txt", "content": "tea\n"})


async def options(place: Place, session: str, name: str, value: str) -> dict[str, str]:
    said = await place.agent.set_config_option(config_id=name, session_id=session, value=value)
    return {each.id: each.current_value for each in said.config_options}


async def test_plan_is_enforced_and_a_new_file_is_shown_as_a_diff_after_it(tmp_path: Path):
    async with editor(tmp_path, writing) as place:
        session = await place.begin()
        await place.agent.set_session_mode(session_id=session, mode_id="plan")
        await place.say(session, "Write")
        planned = (place.work / "a.txt").exists()
        other = await place.begin()
        assert (await options(place, session, "mode", "code"))["approvals"] == "smart"
        await place.say(other, "Write")
    updates = place.client.of(session, "tool_call_update")
    diffs = [each for update in place.client.of(other, "tool_call_update") for each in update.content or ()]

    assert not planned
    assert updates[-1].status == "failed"
    assert [each.current_mode_id for each in place.client.of(session, "current_mode_update")] == ["plan", "code"]
    assert [(each.type, each.old_text, each.new_text) for each in diffs] == [("diff", None, "tea\n")]


async def test_effort_model_and_approvals_are_chosen_and_the_terminals_commands_change_the_same(tmp_path: Path):
    more = "models:\n  custom/other:\n    window: 50000\n"
    async with editor(tmp_path, counting, more=more) as place:
        session = await place.begin()
        assert (await options(place, session, "effort", "high"))["effort"] == "high"
        assert (await options(place, session, "model", "custom/other"))["model"] == "custom/other"
        assert (await options(place, session, "approvals", "unasked"))["mode"] == "code"
        await place.say(session, "/reasoning low")
        await place.say(session, "Hi")
        seen = place.client.of(session, "config_option_update")[-1]
        asked = place.server.exchanges[0].request.body

    assert {each.id: each.current_value for each in seen.config_options}["effort"] == "low"
    assert b'"other"' in asked


async def test_without_questions_dangerous_calls_are_made_at_once_until_the_thread_is_closed(tmp_path: Path):
    def script(heard: Heard) -> Json:
        return Say("Over.") if spoken(heard) % 2 else Call("terminal", {"command": "git push --force origin main"})

    async with editor(tmp_path, script, Client()) as place:
        session = await place.begin()
        await options(place, session, "approvals", "unasked")
        ended = [(await place.say(session, "Push")).stop_reason for _ in range(2)]
        asked = len(place.client.asked)
        await place.agent.close_session(session_id=session)
        await place.agent.resume_session(cwd=str(place.work), session_id=session, mcp_servers=[])
        await place.say(session, "Push")

    assert ended == ["end_turn", "end_turn"]
    assert asked == 0
    assert len(place.client.asked) == 1


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("modell", "x", "Did you mean `model`"),
        ("effort", "hgih", "Did you mean `high`"),
        ("mode", "yolo", "There are: ask, code, plan"),
        ("model", "moa/nothing", "nothing"),
        ("model", "x" * (1 << 20), "at most 200 characters: this one has 1,048,576"),
    ],
)
async def test_unknown_options_and_values_are_refused_with_the_nearest(
    tmp_path: Path, name: str, value: str, said: str
):
    async with editor(tmp_path, counting) as place:
        session = await place.begin()
        with pytest.raises(RequestError, match=said) as caught:
            await options(place, session, name, value)
    assert caught.value.code == -32602


async def test_a_title_is_shown_when_it_was_made(tmp_path: Path):
    async with editor(tmp_path, lambda _: Say("Tea")) as place:
        session = await place.begin()
        await place.say(session, "Hi")
        await place.client.until(lambda: any(each.title for each in place.client.of(session, "session_info_update")))


async def test_with_auto_edit_files_elsewhere_are_changed_unasked_and_commands_are_asked_about(tmp_path: Path):
    outside = tmp_path / "elsewhere.txt"

    def script(heard: Heard) -> Json:
        write = Call("write_file", {"path": str(outside), "content": f"tea {spoken(heard)}\n"})
        push = Call("terminal", {"command": "git push --force origin main"})
        return [write, push, Say("Over."), write, Say("Over.")][spoken(heard)]

    client = Client(decide=choosing("deny"))
    async with editor(tmp_path, script, client) as place:
        session = await place.begin()
        assert (await options(place, session, "approvals", "auto-edit"))["mode"] == "ask"
        await place.say(session, "Go")
        await options(place, session, "approvals", "ask")
        await place.say(session, "Again")
    said = [each.content[0].content.text for each in client.asked]

    assert outside.read_text() == "tea 0\n"
    assert ["git push" in each for each in said] == [True, False]


async def test_tools_are_chosen_before_a_thread_begins_and_stay(tmp_path: Path):
    async with editor(tmp_path, counting, more="acp:\n  toolsets: coding\n") as place:
        narrow, wide = await place.begin(), await place.begin()
        assert (await options(place, wide, "toolsets", "all"))["toolsets"] == "all"
        for session in (narrow, wide):
            await place.say(session, "Hi")
        with pytest.raises(RequestError, match="stay as it began"):
            await options(place, narrow, "toolsets", "all")
        offered = [each.request.body for each in place.server.exchanges if b'"write_file"' in each.request.body]

    assert len(offered) == 2
    assert sorted(b'"cronjob"' in each for each in offered) == [False, True]
