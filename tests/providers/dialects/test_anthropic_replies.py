"""Streams of the Messages API, also odd ones."""

import json

import pytest

from hermes_agent.core.errors import MalformedReply
from hermes_agent.core.messages import StopReason, Text, TextDelta, Thinking, ToolCall, Usage
from hermes_agent.providers.dialects.anthropic import DIALECT
from tests.providers.asking import route_to

ROUTE = route_to("anthropic/claude-opus-5-5")
MAKER = "anthropic/claude-opus-5-5"
START = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def ended(reason: str = "end_turn", **usage: int) -> dict:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def begun(index: int, **block: object) -> dict:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index: int, **delta: object) -> dict:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def read(*events: dict):
    decoder = DIALECT.decoder(ROUTE, set())
    shown = [delta for event in events for delta in decoder.feed(json.dumps(event).encode())]
    return decoder.finish(), shown


def test_blocks_keep_their_order_and_signatures_their_bytes():
    finished, _ = read(
        START,
        begun(0, type="thinking", thinking="", signature=""),
        grown(0, type="thinking_delta", thinking="hm"),
        grown(0, type="signature_delta", signature="c2ln"),
        grown(0, type="signature_delta", signature="bmVk"),
        begun(1, type="redacted_thinking", data="c2VjcmV0"),
        begun(2, type="text", text=""),
        grown(2, type="text_delta", text="Hi"),
        begun(3, type="tool_use", id="toolu_1", name="f", input={}),
        grown(3, type="input_json_delta", partial_json='{"x"'),
        grown(3, type="input_json_delta", partial_json=": 1}"),
        ended("tool_use", output_tokens=9),
        STOP,
    )
    assert finished.parts == (
        Thinking(text="hm", opaque="c2lnbmVk", maker=MAKER),
        Thinking(text="", opaque="c2VjcmV0", maker=MAKER, redacted=True),
        Text(text="Hi"),
        ToolCall(id="toolu_1", name="f", arguments={"x": 1}),
    )
    assert finished.stop is StopReason.TOOL_CALLS


def test_words_and_arguments_that_come_with_the_block_s_beginning_count():
    finished, shown = read(
        START,
        begun(0, type="text", text="Hi"),
        begun(1, type="tool_use", id="a", name="f", input={"x": 1}),
        ended(),
        STOP,
    )
    assert shown[0] == TextDelta(text="Hi")
    assert finished.parts[1].arguments == {"x": 1}


def test_usage_is_cumulative_and_the_last_word_counts():
    start = {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 50, "output_tokens": 1}},
    }
    details = {"thinking_tokens": 4}
    end = {**ended(), "usage": {"output_tokens": 9, "cache_creation_input_tokens": 7, "output_tokens_details": details}}
    finished, _ = read(start, begun(0, type="text", text="Hi"), end, STOP)
    assert finished.usage == Usage(input=60, output=9, cached=50, cache_write=7, reasoning=4)


def test_new_kinds_of_blocks_and_events_are_passed_over():
    odd = {"type": "new_event", "what": {"ever": 1}}
    finished, _ = read(
        START, odd, begun(0, type="new_block"), begun(1, type="text", text="Hi"), ended("new_reason"), STOP
    )
    assert (finished.parts, finished.stop) == ((Text(text="Hi"),), StopReason.OTHER)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("refusal", StopReason.REFUSED),
        ("pause_turn", StopReason.OTHER),
    ],
)
def test_every_reason_for_stopping_has_a_name(reason: str, stop: StopReason):
    assert read(START, begun(0, type="text", text="Hi"), ended(reason), STOP)[0].stop is stop


@pytest.mark.parametrize(
    "event",
    [grown(5, type="text_delta", text="x"), {"type": "content_block_delta", "index": "x"}, [], 3],
)
def test_what_is_no_event_of_the_protocol_is_malformed(event: object):
    with pytest.raises(MalformedReply):
        DIALECT.decoder(ROUTE, set()).feed(json.dumps(event).encode())


def test_an_answer_without_an_end_is_malformed_and_keeps_its_words():
    decoder = DIALECT.decoder(ROUTE, set())
    decoder.feed(json.dumps(begun(0, type="text", text="Half")).encode())
    with pytest.raises(MalformedReply) as caught:
        decoder.finish()
    assert caught.value.partial == "Half"
