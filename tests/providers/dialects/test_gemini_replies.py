"""Streams of generateContent, also odd ones."""

import json

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.errors import (
    ContentRefused,
    EmptyReply,
    MalformedReply,
    Overloaded,
    RateLimited,
    ThinkingRefused,
)
from hermes_agent.core.messages import CallDelta, StopReason, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from hermes_agent.providers.dialects.gemini import DIALECT
from tests.providers.asking import route_to

MAKER = "gemini/gemini-3.8-flash"
ROUTE = route_to(MAKER)
END = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 3}}


def said(*parts: dict, finish: str = "") -> dict:
    candidate = {"content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}


def call(name: str = "f", signature: str = "", **args: object) -> dict:
    part = {"functionCall": {"name": name, "args": args}}
    return {**part, "thoughtSignature": signature} if signature else part


def thought(text: str, **more: object) -> dict:
    return {"text": text, "thought": True, **more}


def signed(text: str, signature: str) -> dict:
    return {"text": text, "thoughtSignature": signature}


def read(*chunks: dict, taken: frozenset[str] = frozenset()):
    decoder = DIALECT.decoder(ROUTE, taken)
    shown = [delta for chunk in chunks for delta in decoder.feed(json.dumps(chunk).encode())]
    return decoder.finish(), shown


def opaque(signature: str, text: str = "") -> Thinking:
    return Thinking(text=text, opaque=signature, maker=MAKER)


def test_thoughts_words_and_calls_keep_their_order():
    finished, shown = read(
        said(thought("h")), said(thought("m")), said({"text": "H"}), said({"text": "i"}, call(x=1)), END
    )

    assert [part for part in finished.parts if not isinstance(part, ToolCall)] == [
        Thinking(text="hm", maker=MAKER),
        Text(text="Hi"),
    ]
    assert finished.parts[2].arguments == {"x": 1}
    assert shown == [
        ThinkingDelta(text="h"),
        ThinkingDelta(text="m"),
        TextDelta(text="H"),
        TextDelta(text="i"),
        CallDelta(name="f"),
    ]
    assert finished.stop is StopReason.TOOL_CALLS


@pytest.mark.parametrize(
    ("chunks", "kinds"),
    [
        ([said(thought("hm")), said(call(signature="S"), call())], [opaque("S", "hm"), "call", "call"]),
        ([said(call(signature="S"), call(signature="T"))], [opaque("S"), "call", opaque("T"), "call"]),
        ([said({"text": "Hi"}), said(signed("", "S"))], [opaque("S"), Text(text="Hi")]),
        ([said(signed("H", "S")), said({"text": "i"})], [opaque("S"), Text(text="Hi")]),
        ([said(thought("hm", thoughtSignature="S")), said({"text": "Hi"})], [opaque("S", "hm"), Text(text="Hi")]),
        ([said(thought("hm")), said({"text": "Hi"}), said(signed("", "S"))], [opaque("S", "hm"), Text(text="Hi")]),
        ([said(thought("hm")), said(signed("", "S")), said(call())], [opaque("S", "hm"), "call"]),
        ([said(call()), said(signed("", "S"))], ["call", opaque("S")]),
        ([said({"text": "Hi"}, call(signature="S"))], [Text(text="Hi"), opaque("S"), "call"]),
    ],
    ids=str,
)
def test_a_signature_is_kept_right_before_the_part_that_it_came_on(chunks, kinds):
    finished, _ = read(*chunks, END)

    assert ["call" if isinstance(part, ToolCall) else part for part in finished.parts] == kinds


def test_ids_are_kept_and_made_where_there_are_none():
    named = {"functionCall": {"name": "f", "id": "own", "args": {}}}
    finished, _ = read(
        said(call(), call()), said(named, {"functionCall": {"name": "g"}}), END, taken=frozenset({"own"})
    )

    ids = [part.id for part in finished.parts]
    assert len(set(ids)) == 4
    assert "own" not in ids
    assert finished.parts[3].arguments == {}


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", StopReason.END),
        ("MAX_TOKENS", StopReason.LENGTH),
        ("SAFETY", StopReason.REFUSED),
        ("RECITATION", StopReason.REFUSED),
        ("PROHIBITED_CONTENT", StopReason.REFUSED),
        ("SPII", StopReason.REFUSED),
        ("OTHER", StopReason.OTHER),
        ("A_NEW_ONE", StopReason.OTHER),
    ],
)
def test_why_it_stopped_is_named(reason: str, stop: StopReason):
    assert read(said({"text": "Half"}, finish=reason))[0].stop is stop


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "BLOCKLIST", "LANGUAGE"])
def test_an_answer_that_is_withheld_is_refused_with_its_reason(reason: str):
    with pytest.raises(ContentRefused, match=reason):
        read({"candidates": [{"finishReason": reason}]})


@pytest.mark.parametrize(
    ("feedback", "words"),
    [
        ({"blockReason": "PROHIBITED_CONTENT"}, "PROHIBITED_CONTENT"),
        ({"blockReason": "SAFETY", "blockReasonMessage": "Not that."}, "Not that"),
    ],
)
def test_a_prompt_that_is_blocked_is_refused_with_its_reason(feedback: dict, words: str):
    with pytest.raises(ContentRefused, match=words):
        read({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 3}})


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
def test_what_the_service_could_not_read_is_worth_another_attempt(reason: str):
    with pytest.raises(MalformedReply, match="default_api") as caught:
        read(
            {"candidates": [{"finishReason": reason, "finishMessage": "Malformed function call: print(default_api.f("}]}
        )
    assert caught.value.retryable
    with pytest.raises(MalformedReply):
        read({"candidates": [{"finishReason": reason}]})


def test_a_missing_signature_leaves_thinking_out_of_the_next_attempt():
    with pytest.raises(ThinkingRefused):
        read({"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]})


def test_a_length_limit_used_up_by_thinking_says_so():
    with pytest.raises(EmptyReply, match="by thinking"):
        read(said(thought("for ever"), finish="MAX_TOKENS"))


def test_usage_counts_thoughts_as_output_and_tools_as_input():
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
        "toolUsePromptTokenCount": 20,
    }
    finished, _ = read(said({"text": "x"}), {"usageMetadata": {"promptTokenCount": 1}}, {**END, "usageMetadata": usage})

    assert finished.usage == Usage(input=120, output=12, cached=60, reasoning=7)


def test_usage_that_never_came_is_unknown():
    assert read(said({"text": "x"}, finish="STOP"))[0].usage == Usage(known=False)


def test_the_end_is_a_finish_reason_with_usage():
    decoder = DIALECT.decoder(ROUTE, set())
    decoder.feed(json.dumps(said({"text": "x"}, finish="STOP")).encode())
    assert not decoder.done
    decoder.feed(json.dumps(END).encode())
    assert decoder.done


def test_a_stream_without_a_finish_reason_is_broken():
    with pytest.raises(MalformedReply, match="in the middle"):
        read(said({"text": "x"}))


@pytest.mark.parametrize(
    ("error", "kind", "delay"),
    [
        ({"code": 503, "status": "UNAVAILABLE", "message": "busy"}, Overloaded, None),
        (
            {
                "code": 429,
                "status": "RESOURCE_EXHAUSTED",
                "message": "quota",
                "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}],
            },
            RateLimited,
            34.5,
        ),
    ],
)
def test_an_error_in_the_stream_keeps_the_words_before_it(error: dict, kind: type, delay: float | None):
    decoder = DIALECT.decoder(ROUTE, set())
    decoder.feed(json.dumps(said({"text": "Half"})).encode())
    with pytest.raises(kind) as caught:
        decoder.feed(json.dumps({"error": error}).encode())
    assert (caught.value.partial, caught.value.retry_after) == ("Half", delay)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"candidates": 3}', b'{"choices": []}', b"\xff", b"null"])
def test_what_is_no_answer_is_malformed(data: bytes):
    with pytest.raises(MalformedReply):
        DIALECT.decoder(ROUTE, set()).feed(data)


PARTS = st.one_of(
    st.builds(lambda text: {"text": text}, st.text(max_size=5)),
    st.builds(lambda text: {"text": text, "thought": True}, st.text(max_size=5)),
    st.builds(signed, st.text(max_size=5), st.text("abc", min_size=1, max_size=5)),
    st.builds(lambda name, sign: call(name, sign), st.text("fg", min_size=1), st.text("abc", max_size=5)),
)


@given(st.lists(st.lists(PARTS, max_size=3), max_size=8))
def test_no_word_signature_or_call_is_lost_whatever_the_order(chunks: list[list[dict]]):
    finished, _ = read(*(said(*parts) for parts in chunks), said({"text": "."}), END)

    parts = [part for chunk in chunks for part in chunk]
    words = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    assert "".join(part.text for part in finished.parts if isinstance(part, Text)) == f"{words}."
    assert sorted(part.opaque for part in finished.parts if isinstance(part, Thinking) and part.opaque) == sorted(
        part["thoughtSignature"] for part in parts if part.get("thoughtSignature")
    )
    assert [part.name for part in finished.parts if isinstance(part, ToolCall)] == [
        part["functionCall"]["name"] for part in parts if "functionCall" in part
    ]
