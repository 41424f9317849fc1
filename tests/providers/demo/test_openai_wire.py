"""The OpenAI protocol as a whole, judged by OpenAI's own SDK."""

from __future__ import annotations

import pytest

from hermes_agent.core.messages import StopReason, Thinking, Usage
from hermes_agent.providers.demo.openai_wire import OpenAIStyle
from hermes_agent.providers.demo.script import Answer, Call, Say, Think
from hermes_agent.testing.model_servers import openai_model
from tests.sdks import openai_talk

HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": SCHEMA}}]


async def test_the_sdk_makes_a_tool_round_trip():
    script = [[Say("Reading."), Call("read_file", {"path": "ä.txt"})], Say("It says hello.")]
    async with openai_talk(openai_model(script)) as (server, client):
        async with client.chat.completions.stream(model="m", messages=HELLO, tools=TOOLS) as stream:
            first = (await stream.get_final_completion()).choices[0].message
        call = first.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": "hello"}
        back = [*HELLO, first.model_dump(include={"role", "content", "tool_calls"}), result]
        second = await client.chat.completions.create(model="m", messages=back, tools=TOOLS)

    assert (call.function.name, call.function.arguments) == ("read_file", '{"path": "ä.txt"}')
    assert second.choices[0].message.content == "It says hello."
    assert server.asked[1].last.parts[0].name == "read_file"


async def test_a_repeated_beginning_counts_as_cached():
    long = [{"role": "system", "content": "word " * 1000}, *HELLO]
    async with openai_talk(openai_model([Say("Yes.")])) as (_server, client):
        first = await client.chat.completions.create(model="m", messages=long)
        again = await client.chat.completions.create(model="m", messages=long)

    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert again.usage.prompt_tokens_details.cached_tokens >= 1152


HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": SCHEMA}}]


async def test_the_sdk_reads_a_whole_reply():
    async with openai_talk(openai_model([[Think("Hm."), Say("Good morning.")]])) as (_server, client):
        reply = await client.chat.completions.create(model="m", messages=HELLO)

    message = reply.choices[0].message
    assert (message.content, message.reasoning_content) == ("Good morning.", "Hm.")
    assert (reply.model, reply.choices[0].finish_reason) == ("m", "stop")


async def test_the_sdk_assembles_a_stream():
    words = "A sentence that is longer than one event of the stream."
    async with (
        openai_talk(openai_model([[Think("Hm."), Say(words)]])) as (_, client),
        client.chat.completions.stream(model="m", messages=HELLO) as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()

    assert final.choices[0].message.content == words
    assert kinds.count("content.delta") > 1
    assert final.choices[0].finish_reason == "stop"


async def test_several_calls_keep_their_places():
    script = [[Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"})]]
    async with (
        openai_talk(openai_model(script)) as (_, client),
        client.chat.completions.stream(model="m", messages=HELLO, tools=TOOLS) as stream,
    ):
        calls = (await stream.get_final_completion()).choices[0].message.tool_calls

    assert [call.function.arguments for call in calls] == ['{"path": "a"}', '{"path": "b"}']
    assert len({call.id for call in calls}) == 2


async def test_usage_comes_with_cached_and_reasoning_tokens():
    usage = Usage(input=900, output=70, cached=512, reasoning=50)
    answer = Answer(pieces=(Say("Yes."),), usage=usage)
    async with openai_talk(openai_model([answer])) as (_server, client):
        options = {"include_usage": True}
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True, stream_options=options)
        chunks = [chunk async for chunk in stream]
        whole = await client.chat.completions.create(model="m", messages=HELLO)

    assert chunks[-1].choices == []
    for told in (chunks[-1].usage, whole.usage):
        assert (told.prompt_tokens, told.completion_tokens, told.total_tokens) == (900, 70, 970)
        assert told.prompt_tokens_details.cached_tokens == 512
        assert told.completion_tokens_details.reasoning_tokens == 50


async def test_a_stream_tells_its_usage_only_when_asked():
    async with openai_talk(openai_model([Say("Yes.")])) as (_server, client):
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)

        assert [chunk.usage async for chunk in stream if chunk.usage] == []


async def test_reasoning_travels_in_the_field_that_the_service_uses():
    server_model = openai_model([Think("Hm.")], style=OpenAIStyle(reasoning_field="reasoning"))
    async with openai_talk(server_model) as (server, client):
        reply = await client.chat.completions.create(model="m", messages=HELLO)
        back = [*HELLO, {"role": "assistant", "content": "Yes.", "reasoning": reply.choices[0].message.reasoning}]
        await client.chat.completions.create(model="m", messages=[*back, *HELLO])

    assert server.asked[1].messages[1].parts[0] == Thinking(text="Hm.")


@pytest.mark.parametrize(
    ("reason", "word"), [(StopReason.LENGTH, "length"), (StopReason.REFUSED, "content_filter"), (None, "stop")]
)
async def test_the_stop_reason_is_told_in_the_services_words(reason, word):
    async with openai_talk(openai_model([Answer(pieces=(Say("Yes"),), stop=reason)])) as (_server, client):
        reply = await client.chat.completions.create(model="m", messages=HELLO)

    assert reply.choices[0].finish_reason == word
