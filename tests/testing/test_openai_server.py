"""The OpenAI model server, judged by OpenAI's own SDK."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import openai
import pytest

from hermes_agent.core.messages import Image, Role, Thinking
from hermes_agent.core.model import StopReason, Usage
from hermes_agent.providers.demo.openai_reply import OpenAIStyle
from hermes_agent.providers.demo.script import Answer, Call, Say, Think
from hermes_agent.testing.faults import Status
from hermes_agent.testing.model_servers import ModelServer, openai_model, serving, serving_in_thread

HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": SCHEMA}}]


@contextlib.asynccontextmanager
async def talking(model: ModelServer, key: str = "test-key") -> AsyncIterator[tuple[ModelServer, openai.AsyncOpenAI]]:
    """The server and the vendor's own client, connected."""
    async with (
        serving(model) as server,
        openai.AsyncOpenAI(base_url=server.url, api_key=key, max_retries=0, timeout=5) as client,
    ):
        yield server, client


async def test_the_sdk_reads_a_whole_reply():
    async with talking(openai_model([[Think("Hm."), Say("Good morning.")]])) as (_server, client):
        reply = await client.chat.completions.create(model="m", messages=HELLO)

    message = reply.choices[0].message
    assert (message.content, message.reasoning_content) == ("Good morning.", "Hm.")
    assert (reply.model, reply.choices[0].finish_reason) == ("m", "stop")


async def test_the_sdk_assembles_a_stream():
    words = "A sentence that is longer than one event of the stream."
    async with (
        talking(openai_model([[Think("Hm."), Say(words)]])) as (_, client),
        client.chat.completions.stream(model="m", messages=HELLO) as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()

    assert final.choices[0].message.content == words
    assert kinds.count("content.delta") > 1
    assert final.choices[0].finish_reason == "stop"


async def test_the_sdk_makes_a_tool_round_trip():
    script = [[Say("Reading."), Call("read_file", {"path": "ä.txt"})], Say("It says hello.")]
    async with talking(openai_model(script)) as (server, client):
        async with client.chat.completions.stream(model="m", messages=HELLO, tools=TOOLS) as stream:
            first = (await stream.get_final_completion()).choices[0].message
        call = first.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": "hello"}
        back = [*HELLO, first.model_dump(include={"role", "content", "tool_calls"}), result]
        second = await client.chat.completions.create(model="m", messages=back, tools=TOOLS)

    assert (call.function.name, call.function.arguments) == ("read_file", '{"path": "ä.txt"}')
    assert second.choices[0].message.content == "It says hello."
    assert server.asked[1].last.parts[0].name == "read_file"


async def test_several_calls_keep_their_places():
    script = [[Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"})]]
    async with (
        talking(openai_model(script)) as (_, client),
        client.chat.completions.stream(model="m", messages=HELLO, tools=TOOLS) as stream,
    ):
        calls = (await stream.get_final_completion()).choices[0].message.tool_calls

    assert [call.function.arguments for call in calls] == ['{"path": "a"}', '{"path": "b"}']
    assert len({call.id for call in calls}) == 2


async def test_usage_comes_with_cached_and_reasoning_tokens():
    usage = Usage(input=900, output=70, cached=512, reasoning=50)
    answer = Answer(pieces=(Say("Yes."),), usage=usage)
    async with talking(openai_model([answer])) as (_server, client):
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
    async with talking(openai_model([Say("Yes.")])) as (_server, client):
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)

        assert [chunk.usage async for chunk in stream if chunk.usage] == []


async def test_a_repeated_beginning_counts_as_cached():
    long = [{"role": "system", "content": "word " * 1000}, *HELLO]
    async with talking(openai_model([Say("Yes.")])) as (_server, client):
        first = await client.chat.completions.create(model="m", messages=long)
        again = await client.chat.completions.create(model="m", messages=long)

    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert again.usage.prompt_tokens_details.cached_tokens >= 1152


async def test_images_and_system_text_are_heard():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "look"}, picture]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
    async with talking(openai_model([Say("Nice.")])) as (server, client):
        await client.chat.completions.create(model="m", messages=messages)

    assert server.asked[0].system == "Be brief."
    assert server.asked[0].last.parts[1] == Image(media_type="image/png", data="AAAA")


async def test_reasoning_travels_in_the_field_that_the_service_uses():
    server_model = openai_model([Think("Hm.")], style=OpenAIStyle(reasoning_field="reasoning"))
    async with talking(server_model) as (server, client):
        reply = await client.chat.completions.create(model="m", messages=HELLO)
        back = [*HELLO, {"role": "assistant", "content": "Yes.", "reasoning": reply.choices[0].message.reasoning}]
        await client.chat.completions.create(model="m", messages=[*back, *HELLO])

    assert server.asked[1].messages[1].parts[0] == Thinking(text="Hm.")


@pytest.mark.parametrize(
    ("reason", "word"), [(StopReason.LENGTH, "length"), (StopReason.REFUSED, "content_filter"), (None, "stop")]
)
async def test_the_stop_reason_is_told_in_the_services_words(reason, word):
    async with talking(openai_model([Answer(pieces=(Say("Yes"),), stop=reason)])) as (_server, client):
        reply = await client.chat.completions.create(model="m", messages=HELLO)

    assert reply.choices[0].finish_reason == word


async def test_a_wrong_key_is_the_sdks_authentication_error():
    async with talking(openai_model([Say("Yes.")]), "wrong") as (_server, client):
        with pytest.raises(openai.AuthenticationError) as caught:
            await client.chat.completions.create(model="m", messages=HELLO)

    assert caught.value.code == "invalid_api_key"


async def test_an_unknown_model_is_the_sdks_not_found_error():
    async with talking(openai_model([Say("Yes.")], models=("other",))) as (_server, client):
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="m", messages=HELLO)
        names = [model.id async for model in client.models.list()]

    assert (caught.value.code, names) == ("model_not_found", ["other"])


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (413, openai.APIStatusError),
        (403, openai.PermissionDeniedError),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_status_is_the_sdks_typed_error(status, error, stream):
    fault = Status(status, "slowly", headers={"retry-after": "7"})
    async with talking(openai_model([fault])) as (_server, client):
        with pytest.raises(error) as caught:
            await client.chat.completions.create(model="m", messages=HELLO, stream=stream)

    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.body["message"] == "slowly"


CALL = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "empty array"),
        ([*HELLO, ASKED, *HELLO], "did not have response messages: call_1"),
        ([*HELLO, ASKED], "did not have response messages: call_1"),
        ([*HELLO, {"role": "tool", "tool_call_id": "call_1", "content": "x"}], "must be a response to"),
        ([*HELLO, {"role": "assistant", "content": None}], "got null"),
        ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'"),
        ([{"role": "user", "content": [{"type": "smell"}]}], "Invalid value: 'smell'"),
    ],
)
async def test_what_the_service_refuses_is_refused(messages, words):
    async with talking(openai_model([Say("Yes.")])) as (server, client):
        with pytest.raises(openai.BadRequestError, match=words):
            await client.chat.completions.create(model="m", messages=messages)

    assert server.exchanges[0].status == 400


async def test_every_request_is_kept_as_it_came():
    async with talking(openai_model([Say("Yes.")])) as (server, client):
        await client.chat.completions.create(model="m", messages=HELLO)
        await client.chat.completions.create(model="m", messages=HELLO)

    one, two = server.exchanges
    assert one.body == {"messages": HELLO, "model": "m"}
    assert b'"hello"' in one.request.body
    assert one.arrived <= one.ended <= two.arrived
    assert server.asked[0].last.role is Role.USER


def test_the_blocking_sdk_can_speak_to_a_thread():
    from_thread = openai_model([Say("Yes.")])
    with serving_in_thread(from_thread) as server, openai.OpenAI(base_url=server.url, api_key="test-key") as client:
        assert client.chat.completions.create(model="m", messages=HELLO).choices[0].message.content == "Yes."
