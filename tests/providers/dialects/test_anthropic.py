"""Messages requests, field by field."""

import json
from dataclasses import replace

import pytest

from hermes_agent.core.messages import File, Message, ModelRequest, Origin, Role, Text, Thinking, ToolCall, said
from hermes_agent.providers.dialects.anthropic import DIALECT
from tests.providers.asking import PREFIX, result, route_to

OPUS = "anthropic/claude-opus-5-5"


def body(model: str, messages: list[Message], **changes: object) -> dict:
    request = ModelRequest(
        call_id="c",
        session="s",
        run="r",
        turn=1,
        purpose="chat",
        prefix=PREFIX,
        messages=messages,
        effort=str(changes.get("effort", "medium")),
    )
    compiler = DIALECT.compiler(route_to(model))
    compiler.take(request)
    return json.loads(compiler.write(request, changes.get("max_output")).body)


def marks(value: object) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(marks(entry) for entry in value.values())
    return sum(marks(entry) for entry in value) if isinstance(value, list) else 0


def test_cache_marks_are_on_system_last_tool_and_the_last_two_user_turns():
    messages = [said("one"), Message(role=Role.ASSISTANT, parts=(Text(text="two"),)), said("three")]
    messages += [Message(role=Role.ASSISTANT, parts=(Text(text="four"),)), said("five"), said("six")]
    sent = body(OPUS, messages)
    assert marks(sent) == 4
    assert "cache_control" in sent["system"][-1]
    assert [("cache_control" in tool) for tool in sent["tools"]] == [False, True]
    assert [marks(turn) for turn in sent["messages"]] == [0, 0, 1, 0, 1]
    assert "cache_control" in sent["messages"][4]["content"][-1]


def test_thinking_goes_back_verbatim_to_its_maker_and_to_nobody_else():
    thought = Thinking(text="hm", opaque="c2lnbmF0dXJl==", maker=OPUS)
    hidden = Thinking(text="", opaque="c2VjcmV0", maker=OPUS, redacted=True)
    unsigned = Thinking(text="cut", maker=OPUS)
    messages = [said("a"), Message(role=Role.ASSISTANT, parts=(thought, hidden, unsigned, Text(text="b"))), said("c")]
    assert body(OPUS, messages)["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl=="},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "text", "text": "b"},
    ]
    assert [b["type"] for b in body("anthropic/claude-haiku-4-5", messages)["messages"][1]["content"]] == ["text"]


@pytest.mark.parametrize(
    ("model", "effort", "fields"),
    [
        (
            OPUS,
            "xhigh",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
        ),
        (OPUS, "none", {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}}),
        ("anthropic/claude-sonnet-5-5", "none", {"thinking": {"type": "between_tools"}}),
        ("anthropic/claude-haiku-5-5", "none", {"thinking": {"type": "disabled"}}),
        ("anthropic/claude-haiku-4-5", "high", {"thinking": {"type": "enabled", "budget_tokens": 16_000}}),
        ("anthropic/claude-haiku-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 4_096}}),
        ("anthropic/claude-haiku-4-5", "none", {}),
        ("anthropic/somebody-new", "high", {}),
    ],
)
def test_effort_is_written_as_each_model_takes_it(model: str, effort: str, fields: dict):
    sent = body(model, [said("hi")], effort=effort)
    assert {name: sent[name] for name in ("thinking", "output_config") if name in sent} == fields


def test_a_budget_is_left_out_where_another_model_s_calls_are_open():
    foreign = Message(role=Role.ASSISTANT, parts=(ToolCall(id="a", name="read_file", arguments={}),))
    messages = [said("hi"), foreign, Message(role=Role.TOOL, parts=(result("a", "x"),))]
    assert "thinking" not in body("anthropic/claude-haiku-4-5", messages, effort="high")


def test_max_tokens_leave_room_for_the_question():
    long = said("x" * 4 * 190_000)
    assert body("anthropic/claude-haiku-4-5", [long])["max_tokens"] < 10_001
    assert body(OPUS, [said("hi")])["max_tokens"] == 32_000
    assert body(OPUS, [said("hi")], max_output=5)["max_tokens"] == 5


def test_documents_are_sent_as_documents_and_text_as_text():
    parts = (
        File(name="a.pdf", media_type="application/pdf", data="aGk=", origin=Origin.OWNER),
        File(name="a.md", media_type="text/markdown", data="aGk="),
    )
    first, second = body(OPUS, [Message(role=Role.USER, parts=parts)])["messages"][0]["content"]
    assert (first["type"], first["title"], first["source"]["data"]) == ("document", "a.pdf", "aGk=")
    assert second["text"] == "[a.md]\nhi"


def test_marks_say_how_long_where_it_is_an_hour():
    compiler = DIALECT.compiler(replace(route_to(OPUS), cache_ttl="1h"))
    request = ModelRequest(
        call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=PREFIX, messages=[said("one")]
    )
    compiler.take(request)
    sent = json.loads(compiler.write(request, None).body)
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert sent["system"][-1]["cache_control"] == sent["tools"][-1]["cache_control"] == hour
    assert sent["messages"][-1]["content"][-1]["cache_control"] == hour
