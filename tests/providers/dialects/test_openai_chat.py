"""Chat completion requests, field by field."""

import json
from dataclasses import replace

import pytest

from hermes_agent.core.messages import File, Message, ModelRequest, Origin, Prefix, Role, Text, Thinking, ToolCall, said
from hermes_agent.providers.dialects.openai_chat import DIALECT
from hermes_agent.providers.vendor import Quirks
from tests.providers.asking import PIXEL, PREFIX, result, route_to

GPT = "openai/gpt-5.2"


def body(model: str, messages: list[Message], *, quirks: Quirks | None = None, **changes: object) -> dict:
    request = ModelRequest(
        call_id="c",
        session="s",
        run="r",
        turn=1,
        purpose="chat",
        messages=messages,
        prefix=PREFIX,
    )
    route = route_to(model)
    if quirks is not None:
        route = replace(route, vendor=replace(route.vendor, quirks=quirks))
    if "tool_efforts" in changes:
        route = replace(route, facts=replace(route.facts, tool_efforts=changes.pop("tool_efforts")))
    request = replace(request, **{name: value for name, value in changes.items() if name != "max_output"})
    compiler = DIALECT.compiler(route)
    compiler.take(request)
    return json.loads(compiler.write(request, changes.get("max_output")).body)


def test_what_a_vendor_does_differently_is_a_fact():
    plain = body("custom/llama", [said("hi")], max_output=9)
    assert (plain["messages"][0]["role"], plain["max_tokens"]) == ("system", 9)
    assert "reasoning_effort" not in plain
    assert "prompt_cache_key" not in plain
    own = body(GPT, [said("hi")], max_output=9)
    assert (own["messages"][0]["role"], own["max_completion_tokens"]) == ("developer", 9)
    assert (own["reasoning_effort"], own["prompt_cache_key"]) == ("medium", "s")
    assert "stream_options" not in body(GPT, [said("hi")], quirks=Quirks(stream_usage=False))


def test_effort_beside_tools_is_what_the_model_takes_there():
    bare = Prefix(system="", tools=(), hash="")
    assert body(GPT, [said("hi")], effort="high", tool_efforts=("none",))["reasoning_effort"] == "none"
    assert body(GPT, [said("hi")], effort="high", tool_efforts=("none",), prefix=bare)["reasoning_effort"] == "high"
    assert body("openrouter/openai/gpt-6-sol", [said("hi")], effort="high")["reasoning"] == {"effort": "high"}


def test_reasoning_that_another_dialect_kept_is_left_out():
    thought = Thinking(text="hm", opaque='{"type":"reasoning","summary":[]}', maker=GPT)
    messages = [said("a"), Message(role=Role.ASSISTANT, parts=(thought, Text(text="b"))), said("c")]
    message = body(GPT, messages, quirks=Quirks(reasoning_field="reasoning_details"))["messages"][2]
    assert message == {"role": "assistant", "content": "b"}


@pytest.mark.parametrize(
    ("field", "sent"),
    [
        ("", {}),
        ("reasoning", {"reasoning": "hm"}),
        ("reasoning_content", {"reasoning_content": "hm"}),
        ("reasoning_details", {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}),
    ],
)
def test_reasoning_goes_back_in_the_vendor_s_field(field: str, sent: dict):
    thought = Thinking(text="hm", opaque='[{"type":"reasoning.encrypted","data":"x"}]', maker=GPT)
    messages = [said("a"), Message(role=Role.ASSISTANT, parts=(thought, Text(text="b"))), said("c")]
    message = body(GPT, messages, quirks=Quirks(reasoning_field=field))["messages"][2]
    assert message == {"role": "assistant", "content": "b", **sent}


def test_each_result_is_a_message_and_pictures_follow_as_the_user_s():
    calls = tuple(ToolCall(id=one, name="read_file", arguments={"path": one}) for one in "ab")
    messages = [said("go"), Message(role=Role.ASSISTANT, parts=calls)]
    messages += [
        Message(role=Role.TOOL, parts=(result("a", "A", image=True),)),
        Message(role=Role.TOOL, parts=(result("b", "no", is_error=True),)),
        said("and?"),
    ]
    sent = body(GPT, messages)["messages"]
    assert [message["role"] for message in sent] == ["developer", "user", "assistant", "tool", "tool", "user"]
    assert (sent[2]["content"], sent[2]["tool_calls"][0]["function"]["arguments"]) == (None, '{"path":"a"}')
    assert (sent[3]["content"], sent[4]["content"]) == ("A", "Error: no")
    kinds = [block["type"] for block in sent[5]["content"]]
    assert kinds == ["text", "image_url", "text"]
    assert sent[5]["content"][1]["image_url"]["url"].endswith(PIXEL)


def test_a_result_of_a_picture_alone_points_to_the_next_message():
    call = ToolCall(id="a", name="read_file", arguments={})
    picture = replace(result("a", "", image=True))
    messages = [said("go"), Message(role=Role.ASSISTANT, parts=(call,)), Message(role=Role.TOOL, parts=(picture,))]
    assert "next message" in body(GPT, messages)["messages"][3]["content"]


def test_words_are_one_text_and_documents_are_files():
    assert body(GPT, [said("one"), said("two")])["messages"][1]["content"] == "one\n\ntwo"
    file = File(name="a.pdf", media_type="application/pdf", data="aGk=", origin=Origin.OWNER)
    (block,) = body(GPT, [Message(role=Role.USER, parts=(file,))])["messages"][1]["content"]
    assert block["file"] == {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}
    text = File(name="a.md", media_type="text/markdown", data="aGk=")
    assert body(GPT, [Message(role=Role.USER, parts=(text,))])["messages"][1]["content"] == "[a.md]\nhi"


def test_broken_arguments_go_back_inside_an_object():
    call = ToolCall(id="a", name="read_file", arguments={}, broken='{"pa')
    sent = body(GPT, [said("go"), Message(role=Role.ASSISTANT, parts=(call,))])["messages"]
    assert json.loads(sent[2]["tool_calls"][0]["function"]["arguments"]) == {"broken_json": '{"pa'}


def test_a_prompt_is_marked_for_the_cache_where_a_model_needs_it():
    mark = {"type": "ephemeral", "ttl": "1h"}
    claude = replace(route_to("openrouter/anthropic/claude-sonnet-5.5"), cache_ttl="1h")
    assert written(claude)["cache_control"] == mark
    assert written(replace(claude, cache_ttl="5m"))["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in written(route_to("openrouter/openai/gpt-6-sol"))


@pytest.mark.parametrize(
    ("vendor", "mark", "fields"),
    [
        ("mistral", {"prefix": True}, {}),
        ("kimi", {"partial": True}, {}),
        ("vllm", {}, {"continue_final_message": True, "add_generation_prompt": False}),
        ("openrouter", {}, {}),
    ],
)
def test_the_beginning_of_a_reply_is_handed_over_as_the_vendor_wants_it(vendor, mark, fields):
    begun = Message(role=Role.ASSISTANT, parts=(Text(text="One,"),))
    sent = written(route_to(f"{vendor}/some-model"), messages=[said("Count."), begun], prefill=True)
    assert sent["messages"][-1] == {"role": "assistant", "content": "One,", **mark}
    assert {name: sent.get(name) for name in fields} == fields


def written(route, **changes):
    plain = ModelRequest(
        call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=PREFIX, messages=[said("one")]
    )
    request = replace(plain, **changes)
    compiler = DIALECT.compiler(route)
    compiler.take(request)
    return json.loads(compiler.write(request, None).body)
