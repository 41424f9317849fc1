import pytest

from hermes_agent.gateway.matrix.shapes import count, inside, number, table, tables, text


@pytest.mark.parametrize("odd", [None, 5, "x", [], {}, True, 1e400, float("nan"), -3, 10**400])
def test_whatever_stands_there_something_of_its_kind_comes_back(odd):
    assert isinstance(table(odd), dict)
    assert isinstance(inside(odd, "a", "b"), dict)
    assert all(isinstance(each, dict) for each in tables(odd))
    assert isinstance(text(odd), str)
    assert number(odd) == number(odd)
    assert count(odd) >= 0


def test_what_is_there_is_found():
    assert inside({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    assert tables([{"a": 1}, "x"]) == [{"a": 1}]
    assert (text("x"), number(5), count(7), count(-7), count(True)) == ("x", 5.0, 7, 0, 0)


def test_half_a_sign_is_shown_as_one_that_cannot_be_read():
    assert text("a\ud800b").encode() == "a\ufffdb".encode()
