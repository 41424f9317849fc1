"""Blocks grow piece by piece and become parts."""

import json

import pytest
from hypothesis import given, strategies as st

from hermes_agent.core.messages import (
    CallDelta,
    File,
    Image,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolResult,
)
from hermes_agent.providers.dialect import Dialect
from hermes_agent.providers.dialects.openai_chat import DIALECT
from hermes_agent.providers.reading import (
    Block,
    CallIds,
    arguments_of,
    attached,
    data_url,
    json_bytes,
    safe_id,
    tool_call,
    words_in,
    written,
)
from tests.providers.asking import route_to

MAKER = "vendor/model"


def grown(block: Block, *pieces: str):
    shown = [delta for piece in pieces for delta in block.grow(piece)]
    return block.part(MAKER, CallIds(set())), shown


def test_words_and_thoughts_are_shown_as_they_come():
    assert grown(Block("text"), "a", "", "b") == (Text(text="ab"), [TextDelta(text="a"), TextDelta(text="b")])
    thought = Thinking(text="hm", opaque="sig", maker=MAKER)
    assert grown(Block("thinking", opaque="sig"), "hm") == (thought, [ThinkingDelta(text="hm")])


def test_arguments_are_not_shown_and_are_whole_in_the_call():
    call = ToolCall(id="a", name="f", arguments={"x": 1})
    assert grown(Block("call", id="a", name="f"), '{"x"', ":1}") == (call, [])


def test_a_block_with_nothing_in_it_is_no_part():
    assert grown(Block("text")) == grown(Block("thinking")) == grown(Block(""), "what") == (None, [])


def test_hidden_thinking_is_a_part_without_words():
    hidden = Thinking(text="", opaque="x", maker=MAKER, redacted=True)
    assert grown(Block("thinking", opaque="x", redacted=True))[0] == hidden


def read(dialect: Dialect, *events: bytes, names: dict[str, str]):
    decoder = dialect.decoder(route_to("openai/gpt-5.2"), set(), names)
    shown = [delta for event in events for delta in decoder.feed(event)]
    return shown, decoder.finish().parts


def test_a_tool_that_the_wire_calls_otherwise_has_its_own_name_again():
    call = (
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look_up","arguments":"{}"}}]}}]}'
    )
    end = b'{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}'

    shown, parts = read(DIALECT, call, end, b"[DONE]", names={"look_up": "look.up"})

    assert shown == [CallDelta(name="look.up")]
    assert parts == (ToolCall(id="a", name="look.up", arguments={}),)


@given(
    st.recursive(
        st.none() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_value_becomes_valid_json_in_utf8(value: object):
    assert json.loads(json_bytes(value)) is not None or value is None


@given(st.lists(st.text(max_size=80)), st.sets(st.text(max_size=5)))
def test_ids_are_safe_and_never_twice(wanted: list[str], taken: set[str]):
    ids = CallIds(taken)
    given_ids = [ids.give(one) for one in wanted]
    assert len(set(given_ids)) == len(given_ids)
    assert not set(given_ids) & taken
    assert all(safe_id(one) == one for one in given_ids)


def test_a_safe_id_stays_as_it_is():
    assert CallIds(frozenset()).give("toolu_01AbC-9") == "toolu_01AbC-9"


@pytest.mark.parametrize("text", ['{"a', "[1]", "3", '"x"', "null", "\ud800", "[" * 100_000])
def test_what_is_no_object_is_broken(text: str):
    call = tool_call("a", "read", text)
    assert (call.arguments, call.broken) == ({}, text)
    assert isinstance(arguments_of(call), dict)


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(text: str):
    assert tool_call("a", "read", text) == ToolCall(id="a", name="read", arguments={})


def test_a_document_that_is_text_is_read_and_another_is_not():
    assert written(File(name="a.md", media_type="text/markdown; charset=utf-8", data="aGk=")) == "[a.md]\nhi"
    assert written(File(name="a.pdf", media_type="application/pdf", data="aGk=")) is None
    assert written(File(name="a.txt", media_type="text/plain", data="!")) is None


def test_an_address_is_the_picture_s_own_or_its_bytes():
    assert data_url(Image(url="https://x/y.png")) == "https://x/y.png"
    assert data_url(Image(data="aGk=", media_type="image/gif")) == "data:image/gif;base64,aGk="


def test_a_result_is_its_words_and_what_is_attached():
    picture, note = Image(data="AAAA"), File(name="a.md", media_type="text/markdown", data="aGVsbG8=")
    result = ToolResult(call_id="1", name="f", parts=(Text(text="one"), picture, note, Text(text="two")))

    assert words_in(result) == "one\n\n[a.md]\nhello\n\ntwo"
    assert attached(result) == [picture]
