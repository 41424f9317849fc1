"""Streams of servers that speak chat completions each in their own way."""

import json

import pytest

from hermes_agent.core.errors import AuthRefused, MalformedReply, RateLimited, ServerFailed
from hermes_agent.core.messages import StopReason, Text, Thinking, ThinkingDelta, Usage
from hermes_agent.providers.dialects.openai_chat import DIALECT
from tests.providers.asking import route_to


def read(*deltas: dict, finish: str | None = "stop", usage: dict | None = None, model: str = "openai/gpt-5.2"):
    decoder = DIALECT.decoder(route_to(model), set())
    shown = []
    for delta in deltas:
        shown += decoder.feed(json.dumps({"choices": [{"delta": delta}]}).encode())
    last = {"choices": [{"delta": {}, "finish_reason": finish}], "usage": usage}
    decoder.feed(json.dumps(last).encode())
    return decoder.finish(), shown


def calls(*pieces: dict) -> list[tuple[str, str, dict]]:
    finished, _ = read(*({"tool_calls": [piece]} for piece in pieces))
    return [(part.id, part.name, part.arguments) for part in finished.parts]


def piece(index: int | None, id_: str | None, name: str | None, arguments: object) -> dict:
    return {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    "pieces",
    [
        (piece(0, "a", "f", '{"x"'), piece(0, None, None, ": 1}"), piece(1, "b", "g", "{}")),
        (piece(0, "a", "f", '{"x": 1}'), piece(0, "b", "g", "{}")),
        (piece(None, "a", "f", '{"x": 1}'), piece(None, "b", "g", "")),
        (piece(None, "a", "f", '{"x"'), piece(None, None, None, ": 1}"), piece(None, "b", "g", "{}")),
        (piece(0, "a", "f", {"x": 1}), piece(1, "b", "g", {})),
        (piece(0, "a", "f", None), piece(1, "b", "g", ""), piece(0, "", "", '{"x": 1}')),
        (piece(0, "a", "f", '{"x"'), piece(0, "a", "f", ": 1}"), piece(1, "b", "g", "{}")),
    ],
)
def test_calls_are_put_together_however_a_server_numbers_them(pieces: tuple[dict, ...]):
    assert calls(*pieces) == [("a", "f", {"x": 1}), ("b", "g", {})]


def test_a_call_without_an_id_gets_one():
    (call,) = calls(piece(0, None, "f", "{}"))
    assert call[0]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_read_from_either_field(field: str):
    finished, shown = read({field: "hm"}, {"content": "Hi"})
    assert finished.parts == (Thinking(text="hm", maker="openai/gpt-5.2"), Text(text="Hi"))
    assert shown[0] == ThinkingDelta(text="hm")


def test_reasoning_details_are_joined_and_kept_word_for_word():
    finished, _ = read(
        {"reasoning_details": [{"type": "reasoning.text", "text": "Fir", "index": 0, "format": "a"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "st", "index": 0, "signature": "sig"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "id": "r1", "index": 1}]},
        {"content": "Hi"},
    )
    thought = finished.parts[0]
    assert thought.text == "First"
    assert json.loads(thought.opaque) == [
        {"type": "reasoning.text", "text": "First", "index": 0, "format": "a", "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "x", "id": "r1", "index": 1},
    ]


@pytest.mark.parametrize(
    ("usage", "read_as"),
    [
        (None, Usage(known=False)),
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(input=5, output=2)),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 4},
            Usage(input=5, output=2, cached=4),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input=9, output=4, cached=6, cache_write=2, reasoning=3),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "prompt_tokens_details": None,
                "completion_tokens_details": {},
            },
            Usage(input=5, output=2),
        ),
    ],
)
def test_usage_is_read_in_every_shape(usage: dict | None, read_as: Usage):
    assert read({"content": "Hi"}, usage=usage)[0].usage == read_as


def test_a_cost_is_believed_only_where_it_is_dollars():
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "cost": 0.25}
    assert read({"content": "Hi"}, usage=usage)[0].cost is None
    assert read({"content": "Hi"}, usage=usage, model="openrouter/x/y")[0].cost == 0.25


def test_a_stop_beside_calls_is_a_stop_for_calls():
    finished, _ = read({"tool_calls": [piece(0, "a", "f", "{}")]}, finish="stop")
    assert finished.stop is StopReason.TOOL_CALLS


def test_a_refusal_is_shown_and_named():
    finished, _ = read({"refusal": "I will not."})
    assert (finished.stop, finished.parts) == (StopReason.REFUSED, (Text(text="I will not."),))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow", "code": 429}, RateLimited),
        ({"message": "slow", "type": "rate_limit_exceeded"}, RateLimited),
        ({"message": "who?", "code": 401}, AuthRefused),
        ("something", ServerFailed),
        ({"message": None}, ServerFailed),
    ],
)
def test_an_error_in_the_stream_is_an_outcome(error: object, kind: type[Exception]):
    decoder = DIALECT.decoder(route_to("openai/gpt-5.2"), set())
    decoder.feed(b'{"choices": [{"delta": {"content": "Hal"}}], "error": null}')
    with pytest.raises(kind) as caught:
        decoder.feed(json.dumps({"error": error}).encode())
    assert caught.value.partial == "Hal"


@pytest.mark.parametrize("data", [b"", b"[]", b"3", b"{", b'{"choices": [{"delta": {"content": 3}}]}', b"[" * 100_000])
def test_what_is_no_chunk_is_malformed(data: bytes):
    with pytest.raises(MalformedReply):
        DIALECT.decoder(route_to("openai/gpt-5.2"), set()).feed(data)


def test_an_end_mark_without_a_reason_is_an_end():
    decoder = DIALECT.decoder(route_to("openai/gpt-5.2"), set())
    decoder.feed(b'{"choices": [{"delta": {"content": "Hi"}}]}')
    decoder.feed(b"[DONE]")
    assert decoder.finish().stop is StopReason.END
