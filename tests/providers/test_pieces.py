"""Ids, arguments, JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_agent.core.messages import File, Image, Text, ToolCall, ToolResult
from hermes_agent.providers.pieces import (
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
