"""The event stream format, cut in every place."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.errors import MalformedReply
from hermes_agent.core.messages import Image, Message, ModelRequest, Prefix, Role, Text, Thinking, said
from hermes_agent.providers.catalog import ModelFacts
from hermes_agent.providers.dialect import LONGEST_EVENT, ConversationCompiler, SseDecoder, thinking_fields
from hermes_agent.providers.reading import IMAGE_TOKENS, json_bytes
from hermes_agent.providers.verifier import Turn
from tests.providers.asking import PREFIX, result, route_to


def decoded(*chunks: bytes) -> list[bytes]:
    decoder = SseDecoder()
    return [data for chunk in chunks for data in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\ndata:b\n\n", [b"a", b"b"]),
        (b"data:  two spaces\n\n", [b" two spaces"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\n\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b"data\ndata: x\n\n", [b"\nx"]),
        (b": comment\n\nevent: ping\nid: 7\nretry: 3\n\ndata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: unfinished", [b"unfinished"]),
        (b"\n\n\n", []),
        (b"", []),
        (b"nonsense\n\n", []),
    ],
)
def test_a_stream_is_read_wherever_it_is_cut(stream: bytes, data: list[bytes]):
    assert decoded(stream) == data
    for place in range(len(stream)):
        assert decoded(stream[:place], stream[place:]) == data, place
    assert decoded(*(bytes([byte]) for byte in stream)) == data


@given(
    st.lists(st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), min_size=1), max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 7),
)
def test_any_text_survives_any_line_end_and_any_cut(texts: list[str], end: str, size: int):
    stream = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    assert decoded(*(stream[at : at + size] for at in range(0, len(stream), size))) == [text.encode() for text in texts]


def test_a_line_of_ten_megabytes_is_read_and_one_of_more_than_sixteen_is_refused():
    piece = b"x" * 2**20
    assert len(decoded(b"data: ", *[piece] * 10, b"\n\n")[0]) == 10 * 2**20
    with pytest.raises(MalformedReply, match="16 MB"):
        decoded(b"data: ", *[piece] * (LONGEST_EVENT // 2**20 + 1))


def test_an_event_of_many_lines_is_bounded_as_a_line_is():
    piece = b"data: " + b"x" * 2**20 + b"\n"
    assert len(decoded(*[piece] * 10, b"\n")[0]) == 10 * 2**20 + 9
    with pytest.raises(MalformedReply, match="16 MB"):
        decoded(*[piece] * 17)
    with pytest.raises(MalformedReply, match="16 MB"):
        decoded(*[piece] * 15, *[b"data\n" * 100_000] * 11)
    assert len(decoded(*[piece * 10 + b"\n"] * 3)) == 3


class Smallest(ConversationCompiler):
    """Turns as their words alone; `heads` counts how often the beginning was written."""

    heads = 0

    def _head(self, prefix: Prefix) -> bytes:
        self.heads += 1
        return json_bytes({"system": prefix.system})[:-1] + b',"turns":['

    def _turn(self, turn: Turn) -> bytes:
        return json_bytes("".join(part.text for part in turn.parts if isinstance(part, Text)))

    def _tail(self, request: ModelRequest, max_output: int | None) -> dict[str, Any]:
        return {} if max_output is None else {"limit": max_output}

    def _path(self) -> str:
        return "/ask"


def asked(compiler: Smallest, messages: list[Message], prefix: Prefix = PREFIX, max_output: int | None = None) -> dict:
    request = ModelRequest(call_id="c", session="s", run="r", turn=1, purpose="chat", prefix=prefix, messages=messages)
    compiler.take(request)
    return json.loads(compiler.write(request, max_output).body)


def test_a_request_is_its_head_its_turns_and_its_tail():
    messages = [said("one"), Message(role=Role.ASSISTANT, parts=(Text(text="two"),)), said("three")]
    body = asked(Smallest(route_to("openai/gpt-5.2")), messages, max_output=7)
    assert body == {"system": PREFIX.system, "turns": ["one", "two", "three"], "limit": 7}


def test_a_tail_without_fields_still_closes_the_object():
    assert asked(Smallest(route_to("openai/gpt-5.2")), [said("one")]) == {"system": PREFIX.system, "turns": ["one"]}


def test_the_head_is_written_again_only_for_another_prefix():
    compiler, messages = Smallest(route_to("openai/gpt-5.2")), [said("one")]
    asked(compiler, messages)
    asked(compiler, messages)
    assert compiler.heads == 1
    other = Prefix(system="Another.", tools=(), hash="1")
    assert (asked(compiler, messages, other)["system"], compiler.heads) == ("Another.", 2)


def test_size_counts_the_head_and_the_turns():
    compiler = Smallest(route_to("openai/gpt-5.2"))
    asked(compiler, [said("w" * 400)], Prefix(system="s" * 400, tools=(), hash="1"))
    assert 200 <= compiler.tokens <= 215


class Counting(Smallest):
    """Keeps which turns were written."""

    def __init__(self) -> None:
        super().__init__(route_to("openai/gpt-5.2"))
        self.written: list[Turn] = []

    def _turn(self, turn: Turn) -> bytes:
        self.written.append(turn)
        return super()._turn(turn)


def replied(text: str) -> Message:
    return Message(role=Role.ASSISTANT, parts=(Text(text=text),))


def test_only_new_turns_are_encoded():
    compiler, messages = Counting(), [said("one"), replied("two"), said("three")]
    assert asked(compiler, messages)["turns"] == ["one", "two", "three"]
    messages += [replied("four"), said("five")]
    assert asked(compiler, messages)["turns"] == ["one", "two", "three", "four", "five"]
    assert len(compiler.written) == 5


def test_a_turn_that_grew_is_encoded_again_and_its_neighbours_are_not():
    compiler, messages = Counting(), [said("one"), replied("two"), said("three")]
    asked(compiler, messages)
    messages.append(said("and more"))
    assert asked(compiler, messages)["turns"][-1] == "threeand more"
    assert len(compiler.written) == 4


def test_the_ending_that_was_answered_stays_where_it_was():
    compiler, messages = Counting(), [said("one"), replied("half")]
    assert asked(compiler, messages)["turns"][-1] == "Continue."
    messages.append(replied(" whole"))
    assert asked(compiler, messages)["turns"][:4] == ["one", "half", "Continue.", " whole"]


def test_size_is_bytes_by_four_and_a_flat_figure_for_pictures():
    compiler, picture = Counting(), Image(data="x" * 40_000)
    asked(compiler, [Message(role=Role.USER, parts=(Text(text="w" * 400), picture))])
    assert IMAGE_TOKENS <= compiler.tokens <= IMAGE_TOKENS + 100


ADAPTIVE = ModelFacts(thinking="adaptive", thinking_off="disabled")
BUDGET = ModelFacts(thinking="budget")
SUMMARIZED = {"type": "adaptive", "display": "summarized"}


def enabled(tokens: int) -> dict:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


@pytest.mark.parametrize(
    ("facts", "level", "room", "fields"),
    [
        (ADAPTIVE, "high", 32_000, {"thinking": SUMMARIZED, "output_config": {"effort": "high"}}),
        (ADAPTIVE, "none", 32_000, {"thinking": {"type": "disabled"}}),
        (BUDGET, "high", 64_000, enabled(16_384)),
        (BUDGET, "high", 10_000, enabled(5_000)),
        (BUDGET, "high", 2_000, {}),
        (BUDGET, "none", 64_000, {}),
        (ModelFacts(), "high", 64_000, {}),
    ],
)
def test_a_level_is_told_as_the_model_wants_it(facts, level, room, fields):
    assert thinking_fields(facts, level, room, []) == fields


@pytest.mark.parametrize(
    ("first", "thinks"), [(Text(text="x"), False), (Thinking(text="x"), False), (Thinking(text="x", opaque="s"), True)]
)
def test_a_turn_of_calls_that_began_without_thinking_goes_on_without(first, thinks):
    turns = [Turn(role=Role.ASSISTANT, parts=[first]), Turn(role=Role.USER, results=[result("c", "x")])]

    assert bool(thinking_fields(BUDGET, "high", 64_000, turns)) is thinks
