import pytest

from hermes_agent.tools.web.backend import Result, Unsearched, made, rows_of


def test_rows_are_found_under_their_names():
    assert rows_of(b'{"a": {"b": [{"url": "x"}, 3]}}', "a", "b") == [{"url": "x"}]
    for body in (b"", b"[]", b'{"a": 1}', b'{"a": {"b": {}}}', b"\xff"):
        with pytest.raises(Unsearched):
            rows_of(body, "a", "b")


def test_a_row_without_an_address_is_left_out():
    rows = [{"url": "u", "title": " a\n b ", "text": None}, {"title": "x"}, {"url": ""}, {"url": 3}]

    assert made(rows, text="text") == [Result(title="a b", url="u")]
