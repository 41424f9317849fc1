"""A model that sees no pictures is told what is in them."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.random_session import differences
from hermes_agent.app.opening import Options
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Notice
from hermes_agent.core.messages import Image, Origin, Text
from hermes_agent.core.tool import Answer
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model, serving
from hermes_agent.tools.schema import from_function
from tests.app.place import another, place, settle_home
from tests.app.replay.recorded import lines, recorded, replayed

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = Image(data=PIXEL, media_type="image/png")
BLIND = """\
auxiliary:
  vision:
    model: custom/eyes
models:
  custom/m:
    images: false
  custom/eyes:
    images: true
"""


def seeing(heard):
    if heard.model == "eyes":
        return Say("A red square with the word STOP.")
    return Say(f"I was told: {heard.messages[-1].text}")


async def show(here, words="What is this?", picture=PICTURE):
    inbound = here.inbound(words)
    return await here.say(replace(inbound, parts=(*inbound.parts, picture)))


async def purposes(here):
    return [(row.purpose, row.model, row.outcome) for row in await here.runtime.store.usage.rows(here.record.id)]


async def notices(here):
    return [entry.event.text for entry in await here.log() if isinstance(entry.event, Notice)]


async def test_a_picture_is_described_once_and_the_conversation_keeps_the_picture(tmp_path):
    async with place(tmp_path, seeing, more=BLIND) as here:
        ended = await show(here)
        await here.say("Thank you.")

        assert "as another model describes it: A red square with the word STOP." in ended.text
        assert await purposes(here) == [("vision", "eyes", "ok"), ("chat", "m", "ok"), ("chat", "m", "ok")]
        assert await notices(here) == ["custom/m sees no pictures: custom/eyes describes them to it."] * 2
        first = here.server.asked[0]
        assert isinstance(first.messages[0].parts[0], Image)
        assert "What is this?" in first.messages[0].text
        view = await here.runtime.hermes.view(here.record.id)
        assert any(isinstance(part, Image) for message in view.messages for part in message.parts)
        chats = [heard for heard in here.server.asked if heard.model == "m"]
        assert not any(isinstance(part, Image) for heard in chats for each in heard.messages for part in each.parts)


async def test_the_next_process_knows_the_description(tmp_path):
    async with serving(openai_model(seeing, keys=())) as server:
        home = settle_home(tmp_path / "home", server.url, BLIND)
        async with another(home, server) as here:
            await show(here)
        async with another(home, server) as later:
            await show(later, "And this?")
            assert [purpose for purpose, *_ in await purposes(later)].count("vision") == 1
        assert all(kept.stat().st_mode & 0o077 == 0 for kept in (home.cache / "pictures").iterdir())


async def test_a_picture_that_a_tool_shows_is_described_too(tmp_path):
    async def snap() -> Answer:
        return Answer(parts=(Text(text="Taken.", origin=Origin.TOOL), replace(PICTURE, origin=Origin.TOOL)))

    def script(heard):
        if heard.model == "eyes":
            return Say("A cat.")
        return Call("snap") if heard.turn == 0 else Say("Done.")

    tool = from_function("snap", snap, "Takes a picture.", (), effect=Effect.READS)
    async with place(tmp_path, script, Options(extra_tools=(tool,)), more=BLIND) as here:
        await here.say("Take one.")

        assert "A cat." in str(here.server.exchanges[-1].body["messages"])
        assert PIXEL not in str(here.server.exchanges[-1].body)


@pytest.mark.parametrize("more", [BLIND, BLIND.replace("custom/eyes\n", "anthropic/claude-haiku-4-5\n", 1)])
async def test_where_nobody_can_say_what_is_in_it_the_run_goes_on_and_says_so(tmp_path, more):
    def script(heard):
        return Status(400) if heard.model == "eyes" else seeing(heard)

    async with place(tmp_path, script, more=more) as here:
        ended = await show(here)

        assert "that this model cannot see" in ended.text
        assert any(text.startswith("A picture could not be described:") for text in await notices(here))


async def test_a_model_that_sees_is_shown_the_picture(tmp_path):
    async with place(tmp_path, seeing, more=BLIND.replace("false", "true")) as here:
        await show(here)

        assert [purpose for purpose, *_ in await purposes(here)] == ["chat"]
        assert PIXEL in str(here.server.exchanges[0].body)


async def test_without_a_model_for_it_the_words_say_that_there_is_a_picture(tmp_path):
    async with place(tmp_path, seeing, more=BLIND.replace("    model: custom/eyes\n", "    seconds: 5\n")) as here:
        ended = await show(here)

        assert "that this model cannot see" in ended.text
        assert [purpose for purpose, *_ in await purposes(here)] == ["chat"]


async def test_a_cache_that_cannot_be_written_costs_the_description_nothing(tmp_path):
    async with place(tmp_path, seeing, more=BLIND) as here:
        (here.runtime.home.cache / "pictures").write_text("in the way")
        ended = await show(here)

        assert "A red square" in ended.text
        assert "is not kept" in here.runtime.home.log_file.read_text()


async def test_a_replay_needs_no_eyes(tmp_path: Path):
    async with recorded(tmp_path, seeing, more=BLIND) as here:
        await show(here)
        then = await here.log()
    again = await replayed(tmp_path)

    assert list(again.entries) == then
    assert {line["track"] for line in lines(tmp_path, "asked")} == {"1"}
    assert differences(tmp_path) == []
