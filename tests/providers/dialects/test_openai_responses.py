"""Responses requests, field by field, and the chain of responses."""

import json
from dataclasses import replace

from hermes_agent.core.errors import BadRequest
from hermes_agent.core.messages import (
    File,
    Image,
    Message,
    ModelRequest,
    Origin,
    Prefix,
    Role,
    Text,
    Thinking,
    ToolCall,
    said,
)
from hermes_agent.providers.demo.script import Say
from hermes_agent.providers.dialects.openai_responses import DIALECT
from hermes_agent.providers.vendor import Quirks
from tests.doubles.responses_request import ResponsesStyle
from tests.providers.asking import DIALECTS, PIXEL, PREFIX, result, route_to, talking

GPT = "openai/gpt-5.6-sol"
BARE = Prefix(system="", tools=(), hash="")
RESPONSES = next(spoken for spoken in DIALECTS if spoken.name == "openai_responses")


def body(messages: list[Message], *, model: str = GPT, quirks: Quirks | None = None, **changes: object) -> dict:
    request = ModelRequest(call_id="c", session="s", run="r", turn=1, purpose="chat", messages=messages, prefix=PREFIX)
    route = route_to(model)
    if quirks is not None:
        route = replace(route, vendor=replace(route.vendor, quirks=quirks))
    request = replace(request, **{name: value for name, value in changes.items() if name != "max_output"})
    compiler = DIALECT.compiler(route)
    compiler.take(request)
    return json.loads(compiler.write(request, changes.get("max_output")).body)


def test_a_request_keeps_nothing_and_asks_for_encrypted_reasoning():
    sent = body([said("hi")], max_output=5)
    assert (sent["instructions"], sent["store"], sent["max_output_tokens"]) == (PREFIX.system, False, 16)
    assert sent["reasoning"] == {"effort": "medium", "summary": "auto"}
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert [(tool["name"], tool["strict"]) for tool in sent["tools"]] == [("read_file", False), ("write_file", False)]
    assert sent["prompt_cache_key"] == "s"


def test_a_model_of_which_nothing_is_known_is_asked_for_no_reasoning():
    sent = body([said("hi")], model="openai/somebody-new")
    assert "reasoning" not in sent
    assert "include" not in sent


def test_what_the_sign_in_does_differently_is_a_fact():
    sent = body([said("hi")], quirks=Quirks(output_limit=False, instructions="Help."), max_output=50, prefix=BARE)
    assert sent["instructions"] == "Help."
    assert "max_output_tokens" not in sent
    assert "instructions" not in body([said("hi")], prefix=BARE)


def test_reasoning_goes_back_as_it_came_without_its_name_and_only_to_its_maker():
    kept = '{"type":"reasoning","id":"rs_1","status":"completed","summary":[],"encrypted_content":"gAAA","new":[1]}'
    thoughts = (Thinking(text="", opaque=kept, maker=GPT), Thinking(text="x", opaque="c2ln", maker=GPT))
    spoken = Message(role=Role.ASSISTANT, parts=(*thoughts, Text(text="b")))
    sent = body([said("a"), spoken, said("c")])["input"]
    assert sent[1] == {"type": "reasoning", "summary": [], "encrypted_content": "gAAA", "new": [1]}
    assert [item["type"] for item in sent] == ["message", "reasoning", "message", "message"]
    assert "gAAA" not in json.dumps(body([said("a"), spoken, said("c")], model="openai/gpt-6-sol"))


def test_results_hold_pictures_and_say_where_they_failed():
    calls = tuple(ToolCall(id=one, name="read_file", arguments={"path": one}) for one in "abc")
    messages = [said("go"), Message(role=Role.ASSISTANT, parts=calls)]
    messages += [
        Message(role=Role.TOOL, parts=(result("a", "A", image=True),)),
        Message(role=Role.TOOL, parts=(result("b", "no", is_error=True),)),
        Message(role=Role.TOOL, parts=(result("c", "no", image=True, is_error=True),)),
    ]
    sent = body(messages)["input"]
    assert sent[1] == {"type": "function_call", "call_id": "a", "name": "read_file", "arguments": '{"path":"a"}'}
    first, second, third = (item["output"] for item in sent[4:])
    assert [block["type"] for block in first] == ["input_text", "input_image"]
    assert first[1]["image_url"].endswith(PIXEL)
    assert second == "Error: no"
    assert [block.get("text") for block in third] == ["Error:", "no", None]


def test_pictures_and_documents_are_input_and_text_is_text():
    parts = (
        Image(url="https://example.org/a.png"),
        File(name="a.pdf", media_type="application/pdf", data="aGk=", origin=Origin.OWNER),
        File(name="a.md", media_type="text/markdown", data="aGk="),
    )
    picture, document, text = body([Message(role=Role.USER, parts=parts)])["input"][0]["content"]
    assert picture["image_url"] == "https://example.org/a.png"
    assert (document["filename"], document["file_data"]) == ("a.pdf", "data:application/pdf;base64,aGk=")
    assert text == {"type": "input_text", "text": "[a.md]\nhi"}


async def test_the_sign_in_s_refusal_is_told_in_its_words():
    async with talking(RESPONSES, [Say("One.")], style=ResponsesStyle(signed_in=True)) as talk:
        talk.messages[:] = [said("hi")]
        try:
            await talk.ask(prefix=BARE)
        except BadRequest as error:
            assert "Instructions are required" in str(error)
        else:
            raise AssertionError
