"""The server of chat completions, judged by Mistral's own SDK too: its vendor speaks the same protocol."""

import pytest
from mistralai.client import errors

from hermes_agent.core.messages import StopReason
from hermes_agent.providers.demo.openai_wire import OpenAIStyle
from hermes_agent.providers.demo.script import Answer, Call, Say
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import openai_model
from tests.sdks import mistral_talk

HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": SCHEMA}}]
WHOLE = OpenAIStyle(whole_calls=True)


async def test_the_sdk_reads_a_whole_reply_and_its_usage():
    async with mistral_talk(openai_model([Say("Good morning.")])) as (_server, client):
        reply = await client.chat.complete_async(model="m", messages=HELLO)

    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("Good morning.", "stop")
    assert reply.usage.prompt_tokens > 0


async def test_the_sdk_reads_a_stream_of_words_and_a_call():
    script = [(Say("Reading it now, one moment."), Call("read_file", {"path": "ä"}))]
    async with mistral_talk(openai_model(script, style=WHOLE)) as (_server, client):
        stream = await client.chat.stream_async(model="m", messages=HELLO, tools=TOOLS)
        choices = [event.data.choices[0] async for event in stream if event.data.choices]

    pieces = [piece for choice in choices for piece in choice.delta.tool_calls or ()]
    assert "".join(choice.delta.content or "" for choice in choices) == "Reading it now, one moment."
    assert pieces[0].function.name == "read_file"
    assert "".join(piece.function.arguments for piece in pieces) == '{"path": "ä"}'
    assert choices[-1].finish_reason == "tool_calls"


async def test_the_sdk_makes_a_tool_round_trip():
    async with mistral_talk(openai_model([Call("read_file", {"path": "a"}), Say("It says hello.")])) as (
        server,
        client,
    ):
        first = (await client.chat.complete_async(model="m", messages=HELLO, tools=TOOLS)).choices[0].message
        result = {"role": "tool", "content": "hello", "tool_call_id": first.tool_calls[0].id}
        second = await client.chat.complete_async(model="m", messages=[*HELLO, first, result], tools=TOOLS)

    assert second.choices[0].message.content == "It says hello."
    assert server.asked[1].last.parts[0].text == "hello"


async def test_a_stop_for_length_has_the_sdks_word():
    async with mistral_talk(openai_model([Answer(pieces=(Say("Ye"),), stop=StopReason.LENGTH)])) as (_server, client):
        reply = await client.chat.complete_async(model="m", messages=HELLO)

    assert reply.choices[0].finish_reason == "length"


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_status_is_the_sdks_error(status):
    async with mistral_talk(openai_model([Status(status, "slowly")])) as (_server, client):
        with pytest.raises(errors.SDKError, match="slowly") as caught:
            await client.chat.complete_async(model="m", messages=HELLO)

    assert caught.value.status_code == status
