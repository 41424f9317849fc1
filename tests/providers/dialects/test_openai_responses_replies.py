"""Streams of the Responses API, also odd ones."""

import json

import pytest

from hermes_agent.core.errors import MalformedReply, Overloaded, ProviderError, RateLimited, ServerFailed
from hermes_agent.core.messages import (
    Message,
    ModelRequest,
    Role,
    StopReason,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    Usage,
    said,
)
from hermes_agent.providers.dialects.openai_responses import DIALECT
from tests.providers.asking import PREFIX, route_to

MAKER = "openai/gpt-5.6-sol"
ROUTE = route_to(MAKER)
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": ""}


def added(index: int, item: dict) -> dict:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict) -> dict:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def piece(kind: str, index: int, delta: str, **more: object) -> dict:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": delta, **more}


def ended(kind: str = "completed", **fields: object) -> dict:
    return {"type": f"response.{kind}", "response": {"id": "resp_1", "status": kind, **fields}}


def read(*events: dict, route=ROUTE):
    decoder = DIALECT.decoder(route, set())
    shown = [delta for event in events for delta in decoder.feed(json.dumps(event).encode())]
    return decoder.finish(), shown


def test_items_keep_their_order_and_reasoning_is_kept_as_it_came():
    finished, shown = read(
        added(0, REASONING),
        piece("reasoning_summary_text", 0, "first", summary_index=0),
        piece("reasoning_summary_text", 0, "second", summary_index=1),
        done(0, REASONING),
        added(1, MESSAGE),
        piece("output_text", 1, "Hi", content_index=0),
        done(1, MESSAGE),
        added(2, CALL),
        piece("function_call_arguments", 2, '{"x"'),
        piece("function_call_arguments", 2, ":1}"),
        done(2, {**CALL, "arguments": '{"x":1}'}),
        ended(),
    )
    thought, words, call = finished.parts
    assert thought == Thinking(text="first\n\nsecond", opaque=json.dumps(REASONING), maker=MAKER)
    assert (words, call) == (Text(text="Hi"), ToolCall(id="call_1", name="f", arguments={"x": 1}))
    assert finished.stop is StopReason.TOOL_CALLS
    assert [delta.text for delta in shown if isinstance(delta, ThinkingDelta)] == ["first", "\n\nsecond"]


def test_the_phase_of_words_is_kept_and_goes_back_to_the_model_that_gave_it():
    commentary, final = ({**MESSAGE, "phase": phase} for phase in ("commentary", "final_answer"))
    finished, _ = read(
        added(0, commentary),
        piece("output_text", 0, "Looking."),
        done(0, commentary),
        added(1, final),
        piece("output_text", 1, "Found."),
        done(1, final),
        ended(),
    )
    messages = [said("Hi"), Message(role=Role.ASSISTANT, parts=finished.parts), said("And?")]

    def phases(model: str) -> list[tuple[str, str]]:
        compiler = DIALECT.compiler(route_to(model))
        request = ModelRequest(
            call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=PREFIX, messages=messages
        )
        compiler.take(request)
        items = json.loads(compiler.write(request, None).body)["input"]
        return [(item["content"][0]["text"], item.get("phase", "")) for item in items]

    assert phases(MAKER)[1:3] == [("Looking.", "commentary"), ("Found.", "final_answer")]
    assert phases("openai/gpt-5.6-luna")[1:3] == [("Looking.", ""), ("Found.", "")]


def test_an_answer_that_comes_only_whole_is_read_from_its_end():
    message = {**MESSAGE, "content": [{"type": "output_text", "text": "Hi"}]}
    finished, shown = read(ended(output=[message, {**CALL, "arguments": "{}"}]))
    assert [part.kind for part in finished.parts] == ["text", "tool_call"]
    assert shown[0] == TextDelta(text="Hi")


def test_reasoning_that_cannot_go_back_is_shown_and_not_kept():
    bare = {key: value for key, value in REASONING.items() if key != "encrypted_content"}
    finished, _ = read(
        added(0, bare),
        piece("reasoning_summary_text", 0, "hm"),
        done(0, bare),
        added(1, MESSAGE),
        piece("output_text", 1, "Hi"),
        ended(),
    )
    assert finished.parts[0] == Thinking(text="hm", opaque="", maker=MAKER)


@pytest.mark.parametrize(
    ("end", "stop"),
    [
        (ended("completed"), StopReason.END),
        (ended("incomplete", incomplete_details={"reason": "max_output_tokens"}), StopReason.LENGTH),
        (ended("incomplete", incomplete_details={"reason": "content_filter"}), StopReason.REFUSED),
        (ended("incomplete", incomplete_details={"reason": "steered"}), StopReason.OTHER),
        (ended("incomplete", incomplete_details=None), StopReason.OTHER),
    ],
)
def test_every_reason_for_stopping_has_a_name(end: dict, stop: StopReason):
    assert read(added(0, MESSAGE), piece("output_text", 0, "Hi"), end)[0].stop is stop


def test_a_refusal_in_words_is_a_refusal():
    finished, _ = read(added(0, MESSAGE), piece("refusal", 0, "I cannot help."), done(0, MESSAGE), ended())
    assert (finished.parts, finished.stop) == ((Text(text="I cannot help."),), StopReason.REFUSED)


def test_usage_is_that_of_the_end():
    usage = {
        "input_tokens": 60,
        "input_tokens_details": {"cached_tokens": 50},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    finished, _ = read(added(0, MESSAGE), piece("output_text", 0, "Hi"), ended(usage=usage))
    assert finished.usage == Usage(input=60, output=9, cached=50, reasoning=4)
    assert not read(added(0, MESSAGE), piece("output_text", 0, "Hi"), ended())[0].usage.known


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "oops"}, ServerFailed),
        ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow"}}, RateLimited),
        (ended("failed", error={"code": "server_is_overloaded", "message": "busy"}), Overloaded),
        (ended("failed", error=None), ServerFailed),
    ],
)
def test_a_failure_in_the_stream_is_a_typed_outcome_with_the_words_so_far(event: dict, kind: type[ProviderError]):
    with pytest.raises(ProviderError) as caught:
        read(added(0, MESSAGE), piece("output_text", 0, "Half"), event)
    assert (type(caught.value), caught.value.partial) == (kind, "Half")


def test_new_kinds_of_items_and_events_are_passed_over():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    odd = {"type": "response.new.thing", "what": {"ever": 1}}
    finished, _ = read(
        added(0, search), odd, done(0, search), added(1, MESSAGE), piece("output_text", 1, "Hi"), ended()
    )
    assert finished.parts == (Text(text="Hi"),)


@pytest.mark.parametrize(
    "event",
    [piece("output_text", 5, "x"), {"type": "response.output_text.delta", "output_index": "x"}, added(0, []), [], 3],
)
def test_what_is_no_event_of_the_protocol_is_malformed(event: object):
    with pytest.raises(MalformedReply):
        DIALECT.decoder(ROUTE, set()).feed(json.dumps(event).encode())


def test_an_answer_without_an_end_is_malformed_and_keeps_its_words():
    with pytest.raises(MalformedReply) as caught:
        read(added(0, MESSAGE), piece("output_text", 0, "Half"))
    assert caught.value.partial == "Half"
