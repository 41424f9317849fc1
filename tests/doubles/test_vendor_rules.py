"""The doubles refuse what the vendors refuse."""

import json

import pytest

from hermes_agent.host.inbound.message import Request
from hermes_agent.providers.demo.script import RequestRefused, Say, Think
from hermes_agent.testing.model_servers import serving
from tests.doubles.vendor_rules import RULES, RuledWire, vendor_model

HI = {"role": "user", "content": "Hi"}
CALL = {"id": "call_12", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_12", "content": "x"}


def asked(vendor: str, *messages: object, **fields: object):
    body = json.dumps({"model": "m", "messages": list(messages), **fields}).encode()
    return RuledWire(RULES[vendor]).read(
        Request(method="POST", path="/v1/chat/completions", query="", headers={}, body=body, arrived=0.0)
    )


@pytest.mark.parametrize(
    ("vendor", "messages", "fields", "words"),
    [
        ("mistral", [HI], {"stream_options": {}}, "Extra inputs"),
        ("mistral", [HI, CALLED, RESULT], {}, "length of 9"),
        ("openai", [HI], {"thinking": {}}, "Extra inputs"),
        ("deepseek", [{"role": "developer", "content": "x"}, HI], {}, "unknown variant"),
        ("deepseek", [HI, CALLED, RESULT], {}, "must be passed back"),
        ("zai", [HI], {"tool_choice": "none"}, "tool_choice"),
        ("groq", [HI, {"role": "assistant", "content": "x", "reasoning_content": "y"}, HI], {}, "unsupported"),
    ],
)
def test_each_refuses_what_its_vendor_does(vendor: str, messages: list, fields: dict, words: str):
    with pytest.raises(RequestRefused, match=words):
        asked(vendor, *messages, **fields)


def test_a_user_may_not_speak_right_after_a_tool_where_the_vendor_says_so():
    call = {**CALL, "id": "a1b2c3d4e"}
    messages = [HI, {**CALLED, "tool_calls": [call]}, {**RESULT, "tool_call_id": "a1b2c3d4e"}, HI]
    with pytest.raises(RequestRefused, match="after role 'tool'"):
        asked("mistral", *messages)
    assert len(asked("mistral", *messages[:-1]).messages) == 3


def test_reasoning_need_not_come_back_while_thinking_is_off():
    assert asked("deepseek", HI, CALLED, RESULT, thinking={"type": "disabled"}).messages


def test_the_key_is_looked_for_in_the_vendor_s_own_header_alone():
    request = Request(method="POST", path="/", query="", headers={"authorization": "Bearer k"}, body=b"", arrived=0.0)
    assert (RuledWire(RULES["openai"]).key(request), RuledWire(RULES["azure"]).key(request)) == ("k", "")


async def test_reasoning_is_sent_as_parts_of_the_content_where_the_vendor_does():
    async with serving(vendor_model("mistral", [(Think("Hm."), Say("Yes."))], keys=())) as server:
        wire = RuledWire(RULES["mistral"])
        heard = asked("mistral", HI, stream=True)
        answer = server._model.answer(heard)
        events = b"".join(wire.events(answer, heard, wire.usage(answer, heard)))
    assert b'"thinking":[{"type":"text","text":"Hm."}]' in events
    assert b"reasoning_content" not in events
