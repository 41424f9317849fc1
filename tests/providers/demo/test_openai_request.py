"""What the OpenAI protocol lets in, judged by OpenAI's own SDK."""

from __future__ import annotations

import openai
import pytest

from hermes_agent.core.messages import Image
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.model_servers import openai_model
from tests.sdks import openai_talk

HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": SCHEMA}}]


async def test_images_and_system_text_are_heard():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "look"}, picture]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
    async with openai_talk(openai_model([Say("Nice.")])) as (server, client):
        await client.chat.completions.create(model="m", messages=messages)

    assert server.asked[0].system == "Be brief."
    assert server.asked[0].last.parts[1] == Image(media_type="image/png", data="AAAA")


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
    async with openai_talk(openai_model([Say("Yes.")])) as (server, client):
        with pytest.raises(openai.BadRequestError, match=words):
            await client.chat.completions.create(model="m", messages=messages)

    assert server.exchanges[0].status == 400


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"type": "string"}, "got 'type: \"string\"'"),
        ({"type": "object", "anyOf": [{"type": "object"}]}, "at the top level"),
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}]}}}, "array schema missing items"),
    ],
)
async def test_parameters_that_the_service_refuses_are_refused(parameters, words):
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    async with openai_talk(openai_model([Say("Yes.")])) as (_server, client):
        with pytest.raises(openai.BadRequestError, match=words):
            await client.chat.completions.create(model="m", messages=HELLO, tools=tools)
