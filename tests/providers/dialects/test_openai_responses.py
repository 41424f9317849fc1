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
from hermes_agent.host.http import Http
from hermes_agent.providers.demo.script import Call, Say, Think
from hermes_agent.providers.dialects.openai_responses import DIALECT
from hermes_agent.providers.route import Grant, choose
from hermes_agent.providers.settings import ModelSettings
from hermes_agent.providers.vendor import Quirks
from tests.doubles.responses_request import ResponsesStyle
from tests.providers.asking import DIALECTS, PIXEL, PREFIX, result, retries, route_to, talking

GPT = "openai/gpt-5.6-sol"
BARE = Prefix(system="", tools=(), hash="")
RESPONSES = next(spoken for spoken in DIALECTS if spoken.name == "openai_responses")
CHAINED = ModelSettings(chain_responses=True)


class SignedIn:
    """Keys of somebody who signed in."""

    async def __call__(self, _http: Http, *, refused: str = "") -> Grant:
        return Grant(key=f"not {refused}")


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


def test_a_vendor_that_keeps_nothing_is_not_asked_to():
    assert route_to(GPT, chain_responses=True).vendor.quirks.chains
    settings = ModelSettings(default="openai-codex/gpt-6-sol", chain_responses=True)
    codex = choose(settings, lambda _: None, sign_ins=lambda _: SignedIn())
    assert (codex.dialect, codex.vendor.quirks.chains) == ("openai_responses", False)


async def test_a_chained_conversation_sends_only_what_is_new():
    script = [(Think("hm"), Call("read_file", {"path": "a"})), Say("It says a."), Say("Bye.")]
    async with talking(RESPONSES, script, settings=CHAINED) as talk:
        (call,) = (await talk.ask()).message.tool_calls
        talk.answer(result(call.id, "a"))
        await talk.ask()
        talk.say("Thanks")
        await talk.ask()
        bodies = [exchange.body for exchange in talk.server.exchanges]
        heard = talk.server.asked[-1].messages
    assert [sent["store"] for sent in bodies] == [True, True, True]
    assert ["previous_response_id" in sent for sent in bodies] == [False, True, True]
    assert [[item["type"] for item in sent["input"]] for sent in bodies[1:]] == [["function_call_output"], ["message"]]
    assert [message.text for message in heard] == ["Hello", "", "", "It says a.", "Thanks"]


async def test_a_lost_response_is_followed_by_the_whole_conversation():
    async with talking(RESPONSES, [Say("One."), Say("Two."), Say("Three.")], settings=CHAINED) as talk:
        await talk.ask()
        talk.server._wire.forget()
        talk.say("More")
        heard = await talk.listen()
        talk.say("And more")
        await talk.ask()
        bodies = [exchange.body for exchange in talk.server.exchanges]
    assert "not found" in retries(heard)[0].reason
    assert [len(sent["input"]) for sent in bodies] == [1, 1, 3, 1]
    assert ["previous_response_id" in sent for sent in bodies] == [False, True, False, True]


async def test_another_process_and_a_shortened_conversation_send_everything():
    async with talking(RESPONSES, [Say("One."), Say("Two."), Say("Three.")], settings=CHAINED) as talk:
        await talk.ask()
        talk.say("More")
        talk.broker._router.primary._compilers.clear()
        await talk.ask()
        del talk.messages[:2]
        talk.say("And?")
        await talk.ask()
        bodies = [exchange.body for exchange in talk.server.exchanges]
    assert not any("previous_response_id" in sent for sent in bodies)


async def test_the_sign_in_s_refusal_is_told_in_its_words():
    async with talking(RESPONSES, [Say("One.")], style=ResponsesStyle(signed_in=True)) as talk:
        talk.messages[:] = [said("hi")]
        try:
            await talk.ask(prefix=BARE)
        except BadRequest as error:
            assert "Instructions are required" in str(error)
        else:
            raise AssertionError
