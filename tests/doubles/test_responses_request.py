"""What the Responses service refuses, this server refuses too."""

import json

import pytest

from hermes_agent.providers.demo.script import RequestRefused
from tests.doubles.responses_request import ResponsesStyle, given_items, parsed, read_responses, seal

USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "done"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}


def heard(*items: dict, **fields: object):
    plain = parsed(json.dumps({"model": "m", "input": list(items), **fields}).encode(), ResponsesStyle())
    return read_responses(plain, given_items(plain))


@pytest.mark.parametrize(
    ("items", "fields", "words"),
    [
        ([], {}, "must be provided"),
        ([USER, CALL], {}, "No tool output found for function call c1"),
        ([USER, OUTPUT], {}, "No tool call found"),
        ([{"role": "user", "content": []}], {}, "empty array"),
        ([{"role": "user", "content": [{"type": "output_text", "text": "x"}]}], {}, "output_text"),
        ([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}], {}, "input_text"),
        ([USER, {"type": "reasoning", "encrypted_content": seal("x")}], {}, "summary"),
        ([USER, {"type": "reasoning", "id": "rs_1", "summary": []}], {}, "not found"),
        ([USER, {"type": "reasoning", "summary": [], "encrypted_content": "c2ln"}], {}, "could not be verified"),
        ([USER, {"type": "new"}], {}, "new"),
        ([USER], {"max_output_tokens": 5}, ">= 16"),
        ([USER], {"tools": [{**TOOL, "name": "a.b"}]}, "pattern"),
        ([USER], {"tools": [{**TOOL, "strict": True}]}, "additionalProperties"),
        ([USER], {"tools": [{**TOOL, "parameters": {"type": "array"}}]}, "got 'type"),
    ],
)
def test_what_the_service_refuses_is_refused(items: list[dict], fields: dict, words: str):
    with pytest.raises(RequestRefused, match=words):
        heard(*items, **fields)


def test_items_of_the_model_that_stand_together_are_one_message():
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
    thought = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": seal("hm"),
    }
    messages = heard(USER, thought, said, CALL, OUTPUT, USER, tools=[TOOL]).messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user"]
    assert [part.kind for part in messages[1].parts] == ["thinking", "text", "tool_call"]
    assert (messages[2].parts[0].name, messages[2].parts[0].text) == ("f", "done")
