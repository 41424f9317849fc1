"""Errors that a change brought are told, those that were there are not."""

import pytest

from hermes_agent.tools.files.checking import new_problem


@pytest.mark.parametrize(
    ("path", "good", "bad", "words"),
    [
        ("a.py", "x = 1\n", "x = (1\n", "line 1: '(' was never closed"),
        ("a.json", '{"a": 1}', '{"a": 1,}', "line 1, column"),
        ("a.ipynb", "{}", "{", "line 1"),
        ("a.toml", "a = 1\n", "a = \n", "at line 1"),
        ("a.yaml", "a: 1\n", "a: [1\n", "line 2"),
        ("A.YML", "a: 1\n", "a: b: c\n", "line 1"),
    ],
)
def test_a_new_error_is_told_with_its_line(path: str, good: str, bad: str, words: str):
    assert words in new_problem(path, good, bad)
    assert words in new_problem(path, None, bad)
    assert new_problem(path, good, good) == ""


def test_an_error_that_was_there_is_not_told_again():
    assert new_problem("a.py", "x = (1\n", "y = (1\n") == ""


def test_what_is_no_error_of_the_language_stays_untold():
    assert new_problem("a.py", "", "x = '\\d'\n") == ""
    assert new_problem("a.txt", "", "x = (") == ""
    assert new_problem("a.yaml", None, "a: !tag 1\n---\nb: 2\n") == ""


@pytest.mark.parametrize("path", ["a.py", "a.json", "a.yaml", "a.toml"])
def test_a_file_nested_without_end_is_an_answer(path: str):
    text = "x = " * (path == "a.toml") + "[" * 30_000
    assert new_problem(path, None, text) != ""
