"""A person works with the agent in an editor."""

import asyncio
from pathlib import Path

from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Hang
from tests.acp.editor import editor
from tests.app.place import counting


async def test_a_prompt_is_answered_in_pieces_and_ends_its_turn(tmp_path: Path):
    async with editor(tmp_path, counting) as place:
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
        spoken = sum(message.role == "assistant" for message in heard.messages)
        steps = [
            Call("read_file", {"path": "a.txt"}),
            Call("patch", {"path": "a.txt", "old_string": "two", "new_string": "TWO"}),
            Say("Done."),
        ]
        return steps[spoken]

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
