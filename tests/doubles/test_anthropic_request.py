"""What the Anthropic protocol lets in, judged by Anthropic's own SDK."""

from __future__ import annotations

import anthropic
import pytest

from hermes_agent.core.messages import Image
from hermes_agent.providers.demo.script import Say
from tests.doubles.model_servers import anthropic_model
from tests.sdks import anthropic_talk

HELLO = [{"role": "user", "content": "hello"}]
ASK = {"model": "m", "max_tokens": 4000}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"name": "read_file", "description": "Read.", "input_schema": SCHEMA}]
CACHE = {"type": "ephemeral"}


async def test_a_thought_with_a_foreign_signature_is_refused():
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "Zm9yZWlnbg=="}
    messages = [*HELLO, {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}, *HELLO]
    async with anthropic_talk(anthropic_model([Say("Yes.")])) as (_server, client):
        with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
            await client.messages.create(**ASK, messages=messages)


async def test_images_system_and_limits_are_heard():
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    content = [{"type": "text", "text": "look"}, {"type": "image", "source": source}]
    messages = [{"role": "user", "content": content}]
    async with anthropic_talk(anthropic_model([Say("Nice.")])) as (server, client):
        await client.messages.create(**ASK, system="Be brief.", messages=messages)

    heard = server.asked[0]
    assert (heard.system, heard.max_output) == ("Be brief.", 4000)
    assert heard.last.parts[1] == Image(media_type="image/png", data="AAAA")


USE = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}}
ASKED = {"role": "assistant", "content": [USE]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}
MARKED = {"type": "text", "text": "x", "cache_control": CACHE}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "at least one message"),
        ([{"role": "assistant", "content": "x"}], "first message"),
        ([*HELLO, ASKED, *HELLO], "without `tool_result` blocks"),
        ([*HELLO, ASKED], "without `tool_result` blocks"),
        ([*HELLO, RESULT], "unexpected `tool_use_id`"),
        ([*HELLO, ASKED, RESULT, ASKED, RESULT], "ids must be unique"),
        ([{"role": "user", "content": ""}], "must be non-empty"),
        ([{"role": "user", "content": [MARKED] * 5}], "maximum of 4 blocks"),
    ],
)
async def test_what_the_service_refuses_is_refused(messages, words):
    async with anthropic_talk(anthropic_model([Say("Yes.")])) as (_server, client):
        with pytest.raises(anthropic.BadRequestError, match=words):
            await client.messages.create(**ASK, messages=messages)


async def test_a_thinking_budget_that_leaves_no_room_is_refused():
    async with anthropic_talk(anthropic_model([Say("Yes.")])) as (_server, client):
        with pytest.raises(anthropic.BadRequestError, match="must be greater than"):
            thinking = {"type": "enabled", "budget_tokens": 4000}
            await client.messages.create(**ASK, messages=HELLO, thinking=thinking)


@pytest.mark.parametrize(
    ("schema", "words"),
    [({"type": "string"}, "Input should be 'object'"), ({"type": "object", "oneOf": []}, "at the top level")],
)
async def test_parameters_that_are_no_plain_object_are_refused(schema, words):
    tools = [{"name": "f", "input_schema": schema}]
    async with anthropic_talk(anthropic_model([Say("Yes.")])) as (_server, client):
        with pytest.raises(anthropic.BadRequestError, match=words):
            await client.messages.create(**ASK, messages=HELLO, tools=tools)
