"""Reading what a service answers."""

from hermes_agent.memory.backend import rows, texts


def test_only_the_shape_that_is_meant_is_read():
    assert rows({"a": {"b": [{"x": 1}, 2, None]}}, "a", "b") == [{"x": 1}]
    assert rows({"a": []}, "a", "b") == rows(None) == rows("text", "a") == []


def test_the_first_text_of_each_row_is_taken():
    assert texts([{"m": "", "c": "two"}, {"m": "one"}, {"m": 3}], "m", "c") == ["two", "one"]
