"""What auxiliary models did in a recording comes back in its replay: titles, summaries, judgements, and their rows."""

import asyncio
from pathlib import Path

import pytest

from bench.random_session import differences
from hermes_agent.core.events import Asked, Compacted, Outcome
from hermes_agent.providers.demo.script import Answer, Call, Heard, Pace, Say
from hermes_agent.testing.faults import Status
from tests.app.replay.recorded import lines, recorded, replayed

SMALL = "auxiliary:\n  {}:\n    model: custom/small\n"


async def test_a_title_is_there_again(tmp_path: Path):
    def script(heard: Heard) -> Say:
        return Say("Tomatoes") if heard.model == "small" else Say("In May.")

    async with recorded(tmp_path, script, more=SMALL.format("title"), titles=True) as here:
        await here.say("When?")
        await here.runtime.settled()
        assert (await here.runtime.hermes.record(here.record.id)).title == "Tomatoes"
    await replayed(tmp_path)

    assert {line["track"] for line in lines(tmp_path, "asked")} == {"1", "1/title"}
    assert differences(tmp_path) == []


async def test_a_title_that_failed_fails_again(tmp_path: Path):
    def script(heard: Heard) -> Say | Status:
        return Status(400) if "You name conversations" in heard.system else Say("In May.")

    async with recorded(tmp_path, script, titles=True) as here:
        for _ in range(2):
            await here.say("When?")
            await here.runtime.settled()
    await replayed(tmp_path)

    assert [line["purpose"] for line in lines(tmp_path, "asked")] == ["chat", "title", "chat", "title"]
    assert differences(tmp_path) == []


async def test_a_title_that_was_given_up_is_waited_for_no_longer(tmp_path: Path):
    def script(heard: Heard) -> Say | Answer:
        return Answer(pieces=(Say("x"),), pace=Pace(first=30)) if heard.model == "small" else Say("In May.")

    async with recorded(tmp_path, script, more=SMALL.format("title"), titles=True) as here:
        await here.say("When?")
        while len(here.server.exchanges) < 2:
            await asyncio.sleep(0.005)
    async with asyncio.timeout(8):
        again = await replayed(tmp_path)

    assert lines(tmp_path, "answered")[-1]["cut"]
    assert again.entries[-1].event.kind == "run_ended"


async def test_without_titles_in_the_recording_the_replay_makes_none(tmp_path: Path):
    async with recorded(tmp_path, [Say("In May.")]) as here:
        await here.say("When?")
    await replayed(tmp_path)

    assert differences(tmp_path) == []


async def test_a_summary_by_the_auxiliary_model_is_there_again(tmp_path: Path):
    def script(heard: Heard) -> Say:
        return Say("## Task\nTalk.") if heard.model == "small" else Say(f"Answer {heard.turn}. " + "indeed " * 400)

    async with recorded(tmp_path, script, more="  window: 8192\n" + SMALL.format("compression")) as here:
        for _ in range(10):
            await here.say("Tell me more. " + "Go on. " * 100)
        then = await here.log()
    again = await replayed(tmp_path)

    made = [entry.event for entry in then if isinstance(entry.event, Compacted)]
    assert {event.writer for event in made if event.strategy == "summary"} == {"custom/small"}
    assert list(again.entries) == then
    assert differences(tmp_path) == []


async def test_a_stop_while_a_summary_is_written_is_played_too(tmp_path: Path):
    def script(heard: Heard) -> Say | Answer:
        if heard.model != "small":
            return Say(f"Answer {heard.turn}. " + "indeed " * 400)
        slow = not begun.is_set()
        begun.set()
        return Answer(pieces=(Say("## Task\nTalk."),), pace=Pace(first=30 if slow else 0))

    begun = asyncio.Event()
    writing = asyncio.create_task(begun.wait())
    async with recorded(tmp_path, script, more="  window: 8192\n" + SMALL.format("compression")) as here:
        while not begun.is_set():
            ending = asyncio.create_task(here.ended(await here.tell("Tell me more. " + "Go on. " * 100)))
            await asyncio.wait((ending, writing), return_when=asyncio.FIRST_COMPLETED)
        await here.runtime.hermes.stop(here.record.id)
        assert (await ending).outcome is Outcome.STOPPED
        await here.say("And now?")
        then = await here.log()
    again = await replayed(tmp_path)

    assert list(again.entries) == then
    assert differences(tmp_path) == []


@pytest.mark.parametrize("opinion", [Say("APPROVE"), Say("DENY"), Say("ASK"), Status(400)])
async def test_the_rows_of_the_judge_are_there_again(tmp_path: Path, opinion: Say | Status):
    def script(heard: Heard) -> list[Call] | Say | Status:
        if heard.model == "small":
            return opinion
        pair = [Call("terminal", {"command": f"rm -rf build{name}$NONE"}, id=name) for name in "ab"]
        return pair if heard.turn == 0 else Say("Done.")

    more = "approvals:\n  mode: smart\n" + SMALL.format("judge")
    async with recorded(tmp_path, script, more=more) as here:
        after = await here.tell("Clean up.")
        if opinion not in (Say("APPROVE"), Say("DENY")):
            for _ in "ab":
                asked = await here.until(Asked, after)
                after = asked.number
                await here.tell(here.inbound("once", answers=asked.event.question))
        await here.ended(after)
        then = await here.log()
    again = await replayed(tmp_path)

    assert list(again.entries) == then
    assert [line["purpose"] for line in lines(tmp_path, "asked")].count("judge") == 2
    assert differences(tmp_path) == []
