"""The Responses protocol as a whole, judged by OpenAI's own SDK."""

from __future__ import annotations

import openai
import pytest

from hermes_agent.core.messages import StopReason, Usage
from hermes_agent.providers.demo.script import Answer, Call, Say, Think
from hermes_agent.testing.faults import ErrorEvent, Status
from tests.doubles.model_servers import responses_model
from tests.doubles.responses_request import ResponsesStyle
from tests.sdks import openai_talk

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"type": "function", "name": "read_file", "description": "Read.", "parameters": SCHEMA, "strict": False}]
ASK = {"model": "m", "input": "hello"}


async def test_the_sdk_reads_a_whole_reply():
    async with openai_talk(responses_model([Say("Good morning.")])) as (server, client):
        reply = await client.responses.create(**ASK)

    assert (reply.output_text, reply.status, reply.model) == ("Good morning.", "completed", "m")
    assert server.asked[0].last.text == "hello"


async def test_the_sdk_assembles_a_stream_of_thinking_words_and_a_call():
    pieces = [Think("Let me look at it first."), Say("Reading it now, one moment."), Call("read_file", {"path": "ä"})]
    async with (
        openai_talk(responses_model([pieces])) as (_, client),
        client.responses.stream(**ASK, tools=TOOLS) as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()

    thought, words, call = final.output
    assert (thought.summary[0].text, bool(thought.encrypted_content)) == ("Let me look at it first.", True)
    assert words.content[0].text == "Reading it now, one moment."
    assert (call.name, call.arguments) == ("read_file", '{"path": "ä"}')
    assert [kinds.count(kind) for kind in ("response.created", "response.output_item.done")] == [1, 3]
    assert kinds[-1] == "response.completed"


async def test_the_sdk_makes_a_tool_round_trip_with_its_encrypted_reasoning():
    script = [[Think("Hm."), Call("read_file", {"path": "a"})], Say("It says hello.")]
    async with openai_talk(responses_model(script)) as (server, client):
        first = await client.responses.create(**ASK, tools=TOOLS, store=False)
        thought, call = first.output
        back = [
            {"role": "user", "content": "hello"},
            thought.model_dump(exclude_none=True),
            call.model_dump(exclude_none=True),
            {"type": "function_call_output", "call_id": call.call_id, "output": "hello"},
        ]
        second = await client.responses.create(model="m", input=back, tools=TOOLS, store=False)

    assert second.output_text == "It says hello."
    assert server.asked[1].last.parts[0].name == "read_file"


async def test_a_kept_response_is_gone_on_from_and_a_lost_one_is_refused():
    async with openai_talk(responses_model([Say("One."), Say("Two."), Say("Three.")])) as (server, client):
        first = await client.responses.create(**ASK)
        second = await client.responses.create(model="m", input="more", previous_response_id=first.id)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(model="m", input="more", previous_response_id="resp_lost")

    assert second.output_text == "Two."
    assert [message.text for message in server.asked[1].messages] == ["hello", "One.", "more"]
    assert caught.value.code == "previous_response_not_found"


async def test_what_is_not_stored_cannot_be_gone_on_from():
    async with openai_talk(responses_model([Say("One.")])) as (_, client):
        first = await client.responses.create(**ASK, store=False)
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model="m", input="more", previous_response_id=first.id)


async def test_usage_holds_cached_and_reasoning_tokens():
    usage = Usage(input=1000, output=70, cached=600, reasoning=50)
    async with openai_talk(responses_model([Answer(pieces=(Say("Yes."),), usage=usage)])) as (_, client):
        told = (await client.responses.create(**ASK)).usage

    assert (told.input_tokens, told.input_tokens_details.cached_tokens) == (1000, 600)
    assert (told.output_tokens, told.output_tokens_details.reasoning_tokens) == (70, 50)


@pytest.mark.parametrize(
    ("stop", "reason"), [(StopReason.LENGTH, "max_output_tokens"), (StopReason.REFUSED, "content_filter")]
)
async def test_an_incomplete_answer_says_why(stop: StopReason, reason: str):
    async with openai_talk(responses_model([Answer(pieces=(Say("Yes"),), stop=stop)])) as (_, client):
        reply = await client.responses.create(**ASK)

    assert (reply.status, reply.incomplete_details.reason) == ("incomplete", reason)


async def test_refusals_and_error_events_are_the_sdks_errors():
    script = [Status(429, "slow down"), ErrorEvent(after=2)]
    async with openai_talk(responses_model(lambda heard: script[heard.last.text == "b"])) as (_, client):
        with pytest.raises(openai.RateLimitError):
            await client.responses.create(model="m", input="a")
        events = [event async for event in await client.responses.create(model="m", input="b", stream=True)]
    assert (events[-1].type, events[-1].code, events[-1].message) == ("error", "overloaded_error", "Overloaded")


async def test_behind_the_sign_in_nothing_is_kept_and_instructions_are_wanted():
    style = ResponsesStyle(signed_in=True)
    async with openai_talk(responses_model([Say("Yes.")], style=style)) as (_, client):
        for wrong in ({}, {"store": False}, {"store": False, "instructions": "x", "max_output_tokens": 99}):
            with pytest.raises(openai.BadRequestError):
                await client.responses.create(**ASK, **wrong)
        assert (await client.responses.create(**ASK, store=False, instructions="x")).output_text == "Yes."
