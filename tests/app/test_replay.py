"""Whole runs, recorded and played again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.random_session import differences
from hermes_agent.agent.stop import NEW_MESSAGE
from hermes_agent.app.opening import Options
from hermes_agent.app.replay import played, steps_of, verdict_of
from hermes_agent.core.chat import INSTRUCTIONS, Busy
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import CassetteError
from hermes_agent.core.events import Asked, Outcome, Pinned, Replied, RunEnded, TextDelta, ToolEnded
from hermes_agent.core.messages import Role
from hermes_agent.host.paths import Home
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from hermes_agent.replay.cassette import read_cassette
from hermes_agent.replay.recorder import Recorder, tape
from hermes_agent.replay.replayer import Replay, player_of
from hermes_agent.store.database import open_store
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.tools.schema import from_function
from tests.app.place import another, counting, place, settle_home
from tests.app.replay.recorded import TAPE, lines, recorded, replayed

SECRET = 'hush-hush-4711-"quoted"-value'
LOOK = [Call("search_files", {"pattern": "*.txt", "target": "files"}), Say("Nothing there.")]
TURNS = 200


def busy(heard: Heard) -> list[Call] | Say:
    """A model that works for 200 turns: reads, writes, calls that fail."""
    if heard.turn >= TURNS - 1:
        return Say("Done.")
    read = Call("search_files", {"pattern": f"x{heard.turn}"})
    write = Call("write_file", {"path": f"f{heard.turn % 7}.txt", "content": str(heard.turn)})
    return [[read], [read, write], [write, Call("nonesuch")], [Call("read_file", {"path": "no.txt"}), read]][
        heard.turn % 4
    ]


@pytest.mark.timeout(120)
async def test_200_turns_leave_the_same_rows_in_both_databases_and_the_same_transcript(tmp_path: Path):
    async with recorded(tmp_path, busy, more="agent:\n  max_turns: 250\n") as here:
        await here.say("Work.")
        then = await here.log()
        await here.runtime.store.search.search("Done")

    again = await replayed(tmp_path)

    assert len(lines(tmp_path, "asked")) == TURNS
    assert list(again.entries) == then
    assert differences(tmp_path) == []


async def test_the_index_of_words_is_the_same_too(tmp_path: Path):
    async with recorded(tmp_path, LOOK) as here:
        await here.say("Look.")
    await replayed(tmp_path)

    for home in ("home", "fresh"):
        store = await open_store(tmp_path / home / "hermes.db")
        assert await store.search.search("Nothing")
        await store.close()

    assert differences(tmp_path, file="index.db") == []


async def test_nothing_is_asked_and_nothing_runs(tmp_path: Path):
    ran = []

    def touch(place: str) -> str:
        ran.append(place)
        return "touched"

    script = [Call("touch", {"place": "here"}), Say("Touched.")]
    async with recorded(tmp_path, script, tools=[from_function("touch", touch, "Touch.", ())]) as here:
        await here.say("Touch it.")
        asked = len(here.server.exchanges)

    again = await replayed(tmp_path)

    assert (ran, len(here.server.exchanges)) == (["here"], asked)
    assert [each.event.text for each in again.entries if isinstance(each.event, RunEnded)] == ["Touched."]


async def test_a_stop_in_the_middle_of_an_answer_is_played_too(tmp_path: Path):
    slow = Answer(pieces=(Say("word " * 400),), pace=Pace(between=0.01))
    async with recorded(tmp_path, [slow]) as here:
        after = await here.tell("Talk.")
        await here.until(TextDelta, after)
        await here.runtime.hermes.stop(here.record.id)
        assert (await here.ended(after)).outcome is Outcome.STOPPED
        then = await here.log()

    again = await replayed(tmp_path)

    assert list(again.entries) == then
    assert differences(tmp_path) == []


async def test_a_message_that_interrupts_is_played_too(tmp_path: Path):
    def script(heard: Heard) -> Answer | Say:
        slow = Answer(pieces=(Say("word " * 400),), pace=Pace(between=0.01))
        return slow if heard.turn == 0 else Say("Yes?")

    async with recorded(tmp_path, script) as here:
        after = await here.tell("Talk.")
        await here.until(TextDelta, after)
        await here.tell(here.inbound("Wait.", busy=Busy.INTERRUPT))
        first = await here.until(RunEnded, after)
        assert first.event.outcome is Outcome.STOPPED
        assert (await here.until(RunEnded, first.number)).event.text == "Yes?"

    await replayed(tmp_path)

    assert lines(tmp_path, "stop")[0]["reason"] == NEW_MESSAGE
    assert differences(tmp_path) == []


async def test_messages_that_took_turns_are_played_in_turns(tmp_path: Path):
    def script(heard: Heard) -> Answer:
        said = [message.text for message in heard.messages if message.role is Role.USER]
        call = () if heard.messages[-1].role is Role.TOOL else (Call("todo", {}),)
        return Answer(pieces=call or (Say(f"About {said[-1]} by {heard.model}."),), pace=Pace(first=0.05))

    async with recorded(tmp_path, script) as here:
        after = await here.tell(here.inbound("one", busy=Busy.ALONE))
        pins = (Pinned(pin=INSTRUCTIONS, text="Be brief."),)
        await here.tell(replace(here.inbound("two", busy=Busy.ALONE), pins=pins, model="custom/other"))
        await here.tell(here.inbound("three", busy=Busy.ALONE))
        ends = []
        for _ in range(3):
            ends.append(await here.until(RunEnded, ends[-1].number if ends else after))
        then = await here.log()

    again = await replayed(tmp_path)

    assert [end.event.text for end in ends] == ["About one by m.", "About two by other.", "About three by m."]
    assert list(again.entries) == then
    assert differences(tmp_path) == []


async def test_a_run_whose_time_was_over_in_a_tool_is_played_in_no_time(tmp_path: Path):
    async def wait() -> str:
        await asyncio.sleep(60)
        return "never"

    tools = [from_function("wait", wait, "Wait.", ())]
    async with recorded(tmp_path, [Call("wait")], tools=tools, more="agent:\n  max_seconds: 0.5\n") as here:
        assert (await here.say("Wait.")).outcome is Outcome.LIMIT

    again = await replayed(tmp_path)

    assert again.entries[-1].event.outcome is Outcome.LIMIT
    assert differences(tmp_path) == []


async def test_a_question_and_its_answer_are_played(tmp_path: Path):
    script = [Call("clarify", {"question": "Red or blue?"}), Say("Red it is.")]
    async with recorded(tmp_path, script) as here:
        after = await here.tell("Paint.")
        asked = (await here.until(Asked)).event
        await here.tell(here.inbound("red", answers=asked.question))
        assert (await here.ended(after)).text == "Red it is."

    await replayed(tmp_path)

    assert differences(tmp_path) == []


async def test_a_session_that_was_there_before_is_taken_into_the_recording(tmp_path: Path):
    async with place(tmp_path, counting) as here:
        await here.say("First.")
    async with (
        serving(openai_model(counting, keys=())) as server,
        another(
            settle_home(tmp_path / "home", server.url),
            server,
            Options(tape=Recorder(tmp_path / TAPE, SystemClock())),
        ) as here,
    ):
        await here.say("Second.")
        then = await here.log()

    again = await replayed(tmp_path)

    said = [[each.event.message for each in log if isinstance(each.event, Replied)] for log in (again.entries, then)]
    assert said[0] == said[1]
    assert len(said[0]) == 2


async def test_no_secret_enters_a_cassette(tmp_path: Path):
    half = len(SECRET) // 2
    script = [
        Call("show", {"text": f"key {SECRET}"}),
        Answer(pieces=(Say(f"It is {SECRET}. {'sk-' + 'a1' * 20}"),), pace=Pace(characters=half)),
    ]

    def show(text: str) -> str:
        return f"{text} {json.dumps(SECRET)} {SECRET}"

    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".env").write_text(f"CUSTOM_API_KEY='{SECRET}'\n")
    async with recorded(tmp_path, script, tools=[from_function("show", show, "Show.", ())]) as here:
        await here.say(f"My key is {SECRET}.")

    content = (tmp_path / TAPE).read_text()
    texts = json.dumps([json.loads(line) for line in content.splitlines()])
    assert "hush-hush" not in content.replace("\\", "")
    assert "-4711-" not in texts
    assert "sk-a1a1" not in texts
    assert "[secret CUSTOM_API_KEY]" in texts
    assert (await replayed(tmp_path)).entries[-1].event.outcome is Outcome.ANSWERED


async def test_a_request_that_differs_is_an_error_that_names_the_difference(tmp_path: Path):
    async with recorded(tmp_path, LOOK) as here:
        await here.say("Look for the red file.")
    options = Options(tape=tape(replay=str(tmp_path / TAPE)))
    async with another(here.runtime.home, here.server, options) as again:
        ended = await again.say("Look for the blue file.")

    assert (ended.outcome, ended.error) == (Outcome.FAILED, "RequestDiffers")
    assert "message 1 at character 14" in ended.text
    assert "red" in ended.text and "blue" in ended.text


async def test_the_nearest_answer_is_given_where_that_is_wanted(tmp_path: Path):
    async with recorded(tmp_path, LOOK) as here:
        await here.say("Look for the red file.")
    options = Options(tape=tape(replay=str(tmp_path / TAPE), nearest=True))
    async with another(here.runtime.home, here.server, options) as again:
        ended = await again.say("Look for the blue file.")

    assert (ended.outcome, ended.text) == (Outcome.ANSWERED, "Nothing there.")


async def test_from_a_step_on_the_model_is_asked_and_tools_run(tmp_path: Path):
    script = [
        Call("write_file", {"path": "one.txt", "content": "1"}),
        Call("write_file", {"path": "two.txt", "content": "2"}),
        Say("Both are written."),
    ]
    async with recorded(tmp_path, script) as here:
        await here.say("Write.")
    for name in ("one.txt", "two.txt"):
        (tmp_path / "work" / name).unlink()
    async with serving(openai_model(script, keys=())) as server:
        home = settle_home(tmp_path / "live", server.url)
        options = Options(tape=tape(replay=str(tmp_path / TAPE), live_from=2))
        async with another(home, server, options) as again:
            ended = await again.say("Write.")
            cost = await again.runtime.store.usage.rows(again.record.id)

    assert ended.text == "Both are written."
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["two.txt"]
    assert (len(server.exchanges), len(cost)) == (2, 2)


async def test_another_model_is_asked_and_gets_the_recorded_results(tmp_path: Path):
    async with recorded(tmp_path, [Call("terminal", {"command": "echo $RANDOM"}), Say("A number.")]) as here:
        await here.say("Give me a number.")
        then = [each.event for each in await here.log() if isinstance(each.event, ToolEnded)]
    other = [Call("terminal", {"command": "echo $RANDOM"}), Call("read_file", {"path": "x"}), Say("I saw it.")]
    async with serving(openai_model(other, keys=())) as server:
        home = settle_home(tmp_path / "live", server.url)
        how = Replay(model="custom/other", driven=True)
        async with played(home, player_of(read_cassette(tmp_path / TAPE), how)) as sessions:
            now = [each.event for each in sessions[0].entries if isinstance(each.event, ToolEnded)]
            end = sessions[0].entries[-1].event

    assert now[0].message.parts[0].text == then[0].message.parts[0].text
    assert "not_recorded" in now[1].message.parts[0].text
    assert isinstance(end, RunEnded) and end.text == "I saw it."


async def test_a_torn_last_line_is_noted_and_what_was_recorded_is_played(tmp_path: Path):
    async with recorded(tmp_path, LOOK) as here:
        await here.say("Look.")
    file = tmp_path / TAPE
    whole = file.read_bytes().splitlines(keepends=True)
    answer = max(place for place, line in enumerate(whole) if b'"answered"' in line)
    file.write_bytes(b"".join(whole[:answer]) + whole[answer][:40])

    cassette = read_cassette(file)
    again = await replayed(tmp_path)
    verdict = verdict_of(cassette, again)

    assert "torn" in cassette.notes[0]
    assert "ends in the middle of step 2" in verdict.ended
    assert not verdict.same
    assert [step.said for step in steps_of(cassette)] == ["[search_files]", "(the recording ends here)"]


async def test_a_recording_needs_a_new_file(tmp_path: Path):
    (tmp_path / TAPE).write_text("mine")
    with pytest.raises(CassetteError, match="needs a new file"):
        async with recorded(tmp_path, LOOK):
            pass
    assert (tmp_path / TAPE).read_text() == "mine"


@pytest.mark.parametrize(
    "line", ["/model custom/other", "/title Tomatoes", "/undo", "/pin Look, do not touch: read only.", "/compress"]
)
async def test_what_a_command_changes_is_changed_in_the_replay_too(tmp_path: Path, line: str):
    async with recorded(tmp_path, counting) as here:
        await here.say("First.")
        await here.type(line)
        await here.say("Second.")
        then = await here.log()

    again = await replayed(tmp_path)

    assert list(again.entries) == then
    assert differences(tmp_path) == []


async def test_a_branch_and_what_is_said_in_it_are_played(tmp_path: Path):
    async with recorded(tmp_path, counting) as here:
        await here.say("First.")
        branched = await here.runtime.hermes.branch(here.record)
        await here.runtime.hermes.submit(here.inbound("Second."), branched.id)
        await here.runtime.hermes.idle()

    home = Home(root=tmp_path / "fresh", base=tmp_path / "fresh").ensure()
    plan = Replay(driven=True, database=str(home.database))
    async with played(home, player_of(read_cassette(tmp_path / TAPE), plan)) as sessions:
        assert len(sessions) == 2

    assert differences(tmp_path) == []
