"""What is shown to the model: how full its window is, pins, shortening by hand."""

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Compacted
from hermes_agent.core.messages import ToolResult
from hermes_agent.providers.demo.script import Call, Heard, Say
from tests.app.place import counting, place


def long_winded(heard: Heard) -> Say:
    if "You keep the record" in heard.system:
        return Say("## Task\nTalk about prices.")
    return Say("word " * 3000)


def writing(heard: Heard) -> Say | Call:
    if any(isinstance(part, ToolResult) for part in heard.last.parts):
        return Say(heard.last.parts[0].text)
    return Call("write_file", {"path": "a.txt", "content": "hello"})


async def test_context_adds_up(tmp_path):
    async with place(tmp_path, counting) as here:
        assert "together" in await here.text("/context")
        await here.say("Hi")
        lines = (await here.text("/context")).splitlines()
        counts = {line[:18].strip(): int(line[18:27].replace(",", "")) for line in lines}

        assert counts.pop("together") == sum(counts.values())
        assert {"identity", "how to work", "tools", "your messages", "replies"} <= counts.keys()


async def test_compress_shortens_the_view_and_says_by_how_much(tmp_path):
    async with place(tmp_path, long_winded) as here:
        for _ in range(4):
            await here.say("Go on")
        text = await here.text("/compress the prices")
        log = await here.runtime.hermes.store.history.entries(here.record.id)
        made = [entry.event for entry in log if isinstance(entry.event, Compacted)]

        assert text.startswith("The model now gets ")
        assert [event.cause for event in made] == ["command"]
        assert "Compacted 1 time," in await here.text("/context")


async def test_compress_says_where_there_is_nothing_to_gain(tmp_path):
    async with place(tmp_path, counting) as here:
        await here.say("Hi")

        assert (await here.text("/compress")).startswith("Nothing to gain")


async def test_a_pin_is_in_the_next_request_until_it_is_taken_off(tmp_path):
    async with place(tmp_path, counting) as here:
        text = await here.text("/pin answer in   French")
        pin = text.split("`/unpin ")[1].split("`")[0]
        assert await here.text("/pin") == f"{pin}  answer in French"
        await here.say("Hi")
        await here.text(f"/unpin {pin}")
        await here.say("Ho")

        assert "- answer in French" in here.server.asked[-2].notes[0]
        assert "answer in French" not in "".join(here.server.asked[-1].notes[-1:])
        assert await here.text("/pin") == "Nothing is pinned."


async def test_read_only_is_kept_by_the_tools_themselves(tmp_path):
    async with place(tmp_path, writing) as here:
        assert "no tool changes anything" in await here.text("/pin read-only until I say so")
        ended = await here.say("Write it")
        await here.text("/unpin all")
        await here.say("Write it now")

    assert "pinned" in ended.text
    assert (tmp_path / "work" / "a.txt").read_text() == "hello"


async def test_a_pin_that_is_not_there_is_a_sentence(tmp_path):
    async with place(tmp_path, counting) as here:
        with pytest.raises(HermesError, match="no pin `9`"):
            await here.type("/unpin 9")
