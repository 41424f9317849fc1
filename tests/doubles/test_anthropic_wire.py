"""The Anthropic protocol as a whole, judged by Anthropic's own SDK."""

from __future__ import annotations

import anthropic
import pytest

from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.providers.demo.script import Answer, Call, Say, Think
from hermes_agent.testing.faults import ErrorEvent, Status
from tests.doubles.model_servers import anthropic_model
from tests.sdks import anthropic_talk

HELLO = [{"role": "user", "content": "hello"}]
ASK = {"model": "m", "max_tokens": 4000}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"name": "read_file", "description": "Read.", "input_schema": SCHEMA}]
CACHE = {"type": "ephemeral"}


async def test_the_sdk_reads_a_whole_reply():
    async with anthropic_talk(anthropic_model([Say("Good morning.")])) as (_server, client):
        reply = await client.messages.create(**ASK, messages=HELLO)

    assert (reply.content[0].text, reply.stop_reason, reply.model) == ("Good morning.", "end_turn", "m")


async def test_the_sdk_assembles_a_stream_of_thinking_words_and_a_call():
    pieces = [Think("Let me look at it first."), Say("Reading it now, one moment."), Call("read_file", {"path": "ä"})]
    async with (
        anthropic_talk(anthropic_model([pieces])) as (_, client),
        client.messages.stream(**ASK, messages=HELLO, tools=TOOLS) as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_message()

    thought, words, call = final.content
    assert (thought.type, thought.thinking, bool(thought.signature)) == ("thinking", "Let me look at it first.", True)
    assert (words.text, call.name, call.input) == ("Reading it now, one moment.", "read_file", {"path": "ä"})
    assert final.stop_reason == "tool_use"
    assert [kinds.count(kind) for kind in ("message_start", "content_block_start", "message_stop")] == [1, 3, 1]


async def test_the_sdk_makes_a_tool_round_trip_with_its_signed_thoughts():
    script = [[Think("Hm."), Think("secret", redacted=True), Call("read_file", {"path": "a"})], Say("It says hello.")]
    async with anthropic_talk(anthropic_model(script)) as (server, client):
        first = await client.messages.create(**ASK, messages=HELLO, tools=TOOLS)
        call = first.content[2]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "hello"}
        spoken = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]}
        back = [*HELLO, spoken, {"role": "user", "content": [result]}]
        second = await client.messages.create(**ASK, messages=back, tools=TOOLS)

    assert second.content[0].text == "It says hello."
    assert first.content[1].type == "redacted_thinking"
    assert server.asked[1].last.parts[0].name == "read_file"


async def test_a_streamed_thought_is_signed_like_a_whole_one():
    script = [[Think("Let me look."), Call("read_file", {"path": "a"})], Say("It says hello.")]
    async with anthropic_talk(anthropic_model(script)) as (_, client):
        async with client.messages.stream(**ASK, messages=HELLO, tools=TOOLS) as stream:
            first = await stream.get_final_message()
        wanted = {"type", "thinking", "signature", "id", "name", "input"}
        blocks = [block.model_dump(include=wanted) for block in first.content]
        result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "hello"}
        back = [*HELLO, {"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
        second = await client.messages.create(**ASK, messages=back, tools=TOOLS)

    assert second.content[0].text == "It says hello."


async def test_usage_keeps_cached_tokens_beside_the_input():
    usage = Usage(input=1000, output=70, cached=600, cache_write=300, reasoning=50)
    async with anthropic_talk(anthropic_model([Answer(pieces=(Say("Yes."),), usage=usage)])) as (_, client):
        async with client.messages.stream(**ASK, messages=HELLO) as stream:
            streamed = (await stream.get_final_message()).usage
        whole = (await client.messages.create(**ASK, messages=HELLO)).usage

    for told in (streamed, whole):
        assert (told.input_tokens, told.cache_read_input_tokens, told.cache_creation_input_tokens) == (100, 600, 300)
        assert (told.output_tokens, told.output_tokens_details.thinking_tokens) == (70, 50)


async def test_only_what_a_breakpoint_marked_is_cached():
    system = [{"type": "text", "text": "word " * 500, "cache_control": CACHE}]
    async with anthropic_talk(anthropic_model([Say("Yes.")])) as (_server, client):
        first = (await client.messages.create(**ASK, system=system, messages=HELLO)).usage
        again = (await client.messages.create(**ASK, system=system, messages=HELLO)).usage
        plain = (await client.messages.create(**ASK, system=system[0]["text"], messages=HELLO)).usage

    assert (first.cache_read_input_tokens, again.cache_creation_input_tokens) == (0, 0)
    assert first.cache_creation_input_tokens == again.cache_read_input_tokens > 600
    assert (plain.cache_read_input_tokens, plain.cache_creation_input_tokens) == (0, 0)


async def test_a_moving_breakpoint_reads_what_the_last_request_wrote():
    def said(role: str, text: str, **more: object) -> dict:
        return {"role": role, "content": [{"type": "text", "text": text, **more}]}

    async with anthropic_talk(anthropic_model([Say("Yes.")] * 2)) as (_server, client):
        one = [said("user", "first " * 50, cache_control=CACHE)]
        two = [said("user", "first " * 50), said("assistant", "Yes."), said("user", "second", cache_control=CACHE)]
        first = (await client.messages.create(**ASK, messages=one)).usage
        second = (await client.messages.create(**ASK, messages=two)).usage

    assert second.cache_read_input_tokens == first.cache_creation_input_tokens > 0
    assert second.cache_creation_input_tokens > 0


@pytest.mark.parametrize(
    ("reason", "word"), [(StopReason.LENGTH, "max_tokens"), (StopReason.REFUSED, "refusal"), (None, "end_turn")]
)
async def test_the_stop_reason_is_told_in_the_services_words(reason, word):
    async with anthropic_talk(anthropic_model([Answer(pieces=(Say("Yes"),), stop=reason)])) as (_server, client):
        assert (await client.messages.create(**ASK, messages=HELLO)).stop_reason == word


async def test_a_wrong_key_is_the_sdks_authentication_error():
    async with anthropic_talk(anthropic_model([Say("Yes.")]), "wrong") as (_server, client):
        with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
            await client.messages.create(**ASK, messages=HELLO)


async def test_an_unknown_model_is_the_sdks_not_found_error():
    async with anthropic_talk(anthropic_model([Say("Yes.")], models=("other",))) as (_server, client):
        with pytest.raises(anthropic.NotFoundError, match="model: m"):
            await client.messages.create(**ASK, messages=HELLO)
        names = [model.id async for model in client.models.list()]

    assert names == ["other"]


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.APIStatusError, "overloaded_error"),
        (413, anthropic.APIStatusError, "request_too_large"),
    ],
)
async def test_a_status_is_the_sdks_typed_error(status, error, kind):
    fault = Status(status, "slowly", headers={"retry-after": "7"})
    async with anthropic_talk(anthropic_model([fault])) as (_, client):
        with pytest.raises(error) as caught:
            await client.messages.create(**ASK, messages=HELLO)

    assert caught.value.status_code == status
    assert caught.value.body["error"] == {"type": kind, "message": "slowly"}
    assert caught.value.response.headers["retry-after"] == "7"


async def test_an_error_event_in_a_stream_reaches_the_sdk():
    async with anthropic_talk(anthropic_model([ErrorEvent()])) as (_server, client):
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            async with client.messages.stream(**ASK, messages=HELLO) as stream:
                await stream.get_final_message()
