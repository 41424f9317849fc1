"""The calls of one reply: equal reads are one, and a tool waits for the one that it depends on."""

from hermes_agent.core.errors import ToolError
from hermes_agent.core.events import ToolEnded
from hermes_agent.providers.demo.script import Call, Say
from hermes_agent.testing.scripted import ScriptedModel
from tests.agent.harness import Harness, Piece, tool


async def test_equal_reads_of_one_reply_are_one(tmp_path):
    look = tool("look", "blue")
    script = [[Call("look", {"at": 1}), Call("look", {"at": 2}), Call("look", {"at": 1})], Say("Done.")]
    async with Harness(tmp_path, ScriptedModel(script), (look,)).open() as harness:
        await harness.say("Look.")

        assert look.calls == [{"at": 1}, {"at": 2}]
        ended = [entry.event for entry in await harness.log() if isinstance(entry.event, ToolEnded)]
        assert [event.message.parts[0].text for event in ended] == ["blue"] * 3


async def test_a_later_reply_reads_again(tmp_path):
    look = tool("look", "blue")
    async with Harness(tmp_path, ScriptedModel([Call("look"), Call("look"), Say("Done.")]), (look,)).open() as harness:
        await harness.say("Look.")

        assert look.calls == [{}, {}]


async def test_a_tool_waits_for_the_answer_of_the_one_that_it_depends_on(tmp_path):
    said = []

    async def sign_in(arguments, _):
        said.append("sign_in")
        if "wrong" in arguments:
            raise ToolError("Wrong password.")
        return "in"

    async def fetch(*_):
        said.append("fetch")
        return "page"

    tools = (Piece("sign_in", sign_in), Piece("fetch", fetch, depends_on=("sign_in",)))
    script = [
        [Call("fetch"), Call("sign_in", {"wrong": True})],
        [Call("fetch"), Call("sign_in")],
        Call("fetch"),
        Say("Done."),
    ]
    async with Harness(tmp_path, ScriptedModel(script), tools).open() as harness:
        await harness.say("Fetch.")

        assert said == ["sign_in", "sign_in", "fetch", "fetch"]
        assert any("This needs an answer of `sign_in` first." in line for line in await harness.transcript())
