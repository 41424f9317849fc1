"""Streams of the Converse API, also odd ones."""

import json

import pytest

from hermes_agent.core.errors import (
    BadRequest,
    ContentRefused,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
)
from hermes_agent.core.messages import CallDelta, StopReason, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from hermes_agent.providers.dialects.bedrock import DIALECT
from tests.doubles.aws_stream import event, exception, message
from tests.providers.asking import route_to

MAKER = "bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0"
ROUTE = route_to(MAKER)
END = event("messageStop", {"stopReason": "end_turn"})


def grown(index: int, **delta: object) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta, "p": "abcdefgh"})


def called(index: int, name: str = "f", identity: str = "t1") -> bytes:
    start = {"toolUse": {"toolUseId": identity, "name": name}}
    return event("contentBlockStart", {"contentBlockIndex": index, "start": start})


def read(*events: bytes):
    framing, decoder = DIALECT.framing(), DIALECT.decoder(ROUTE, set())
    shown = [delta for data in framing.feed(b"".join(events)) for delta in decoder.feed(data)]
    return decoder.finish(), shown


def test_blocks_keep_their_order_and_signatures_their_bytes():
    finished, shown = read(
        event("messageStart", {"role": "assistant"}),
        grown(0, reasoningContent={"text": "h"}),
        grown(0, reasoningContent={"text": "m"}),
        grown(0, reasoningContent={"signature": "c2ln"}),
        grown(1, reasoningContent={"redactedContent": "c2VjcmV0"}),
        grown(2, text="Hi"),
        called(3),
        grown(3, toolUse={"input": '{"x"'}),
        grown(3, toolUse={"input": ": 1}"}),
        event("contentBlockStop", {"contentBlockIndex": 3}),
        event("messageStop", {"stopReason": "tool_use"}),
        event("metadata", {"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, "metrics": {}}),
    )

    assert finished.parts == (
        Thinking(text="hm", opaque="c2ln", maker=MAKER),
        Thinking(text="", opaque="c2VjcmV0", maker=MAKER, redacted=True),
        Text(text="Hi"),
        ToolCall(id="t1", name="f", arguments={"x": 1}),
    )
    assert shown == [ThinkingDelta(text="h"), ThinkingDelta(text="m"), TextDelta(text="Hi"), CallDelta(name="f")]
    assert (finished.stop, finished.usage) == (StopReason.TOOL_CALLS, Usage(input=3, output=4))


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("guardrail_intervened", StopReason.REFUSED),
        ("content_filtered", StopReason.REFUSED),
        ("a_new_one", StopReason.OTHER),
    ],
)
def test_why_it_stopped_is_named(reason: str, stop: StopReason):
    assert read(grown(0, text="Half"), event("messageStop", {"stopReason": reason}))[0].stop is stop


def test_a_guardrail_that_leaves_no_word_is_a_refusal():
    with pytest.raises(ContentRefused, match="guardrail_intervened"):
        read(event("messageStop", {"stopReason": "guardrail_intervened"}))


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_what_the_service_could_not_read_is_worth_another_attempt(reason: str):
    with pytest.raises(MalformedReply, match="cannot be read"):
        read(grown(0, text="Half"), event("messageStop", {"stopReason": reason}))


def test_usage_counts_the_cache_as_input():
    usage = {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 30, "cacheWriteInputTokens": 400}
    finished, _ = read(grown(0, text="x"), END, event("metadata", {"usage": usage}))

    assert finished.usage == Usage(input=431, output=2, cached=30, cache_write=400)


def test_an_answer_whose_usage_was_lost_is_whole_with_unknown_usage():
    assert read(grown(0, text="x"), END)[0].usage == Usage(known=False)


def test_the_end_is_the_metadata_after_the_stop():
    framing, decoder = DIALECT.framing(), DIALECT.decoder(ROUTE, set())
    for data in framing.feed(grown(0, text="x") + END):
        decoder.feed(data)
    assert not decoder.done
    for data in framing.feed(event("metadata", {"usage": {"inputTokens": 1}})):
        decoder.feed(data)
    assert decoder.done


def test_unknown_events_blocks_and_pieces_are_passed_over():
    finished, _ = read(
        event("aNewEvent", {"x": 1}),
        event("contentBlockStart", {"contentBlockIndex": 0, "start": {"image": {"format": "png"}}}),
        grown(0, citation={"title": "x"}),
        grown(1, text="x"),
        END,
    )
    assert finished.parts == (Text(text="x"),)


def test_arguments_of_a_block_that_is_no_call_break_the_protocol():
    with pytest.raises(MalformedReply, match="block 4, which is no call"):
        read(grown(4, toolUse={"input": "{"}))


def test_a_stream_without_an_end_is_broken():
    with pytest.raises(MalformedReply, match="in the middle"):
        read(grown(0, text="x"))


@pytest.mark.parametrize(
    ("kind", "words", "error"),
    [
        ("throttlingException", "Too many requests", RateLimited),
        ("serviceUnavailableException", "busy", Overloaded),
        ("internalServerException", "oops", ServerFailed),
        ("modelStreamErrorException", "the model failed", ServerFailed),
        ("validationException", "Input is too long for requested model.", ContextTooLong),
        ("validationException", "The value is wrong.", BadRequest),
        ("aNewException", "oops", ServerFailed),
    ],
)
def test_an_exception_in_the_stream_is_a_typed_outcome_that_keeps_the_words(
    kind: str, words: str, error: type[ProviderError]
):
    with pytest.raises(error, match=words.rstrip(".")) as caught:
        read(grown(0, text="Half"), exception(kind, {"message": words, "originalStatusCode": 500}))
    assert type(caught.value) is error
    assert caught.value.partial == "Half"


def test_an_error_message_of_the_stream_itself_is_an_outcome():
    headers = {":message-type": "error", ":error-code": "InternalServerException", ":error-message": "cut off"}
    with pytest.raises(ServerFailed, match="cut off"):
        read(message(headers, b""))


@pytest.mark.parametrize("payload", ["nonsense", '{"delta": 3}', "[]"])
def test_what_is_no_event_is_malformed(payload: str):
    with pytest.raises(MalformedReply):
        read(message({":event-type": "contentBlockDelta", ":message-type": "event"}, payload.encode()))


def test_arguments_that_end_too_early_are_kept_as_they_came():
    finished, _ = read(
        called(0), grown(0, toolUse={"input": '{"x'}), event("messageStop", {"stopReason": "max_tokens"})
    )

    assert finished.parts == (ToolCall(id="t1", name="f", arguments={}, broken='{"x'),)
    assert json.dumps(finished.stop) == '"length"'
