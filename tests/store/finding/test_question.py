"""Questions: any text is one, and little in it has a meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hermes_agent.store.finding.question import Question, understood

NOW = 1.7e9


def asked(text: str) -> Question:
    return understood(text, NOW)


def test_words_are_wanted_without_those_that_say_nothing():
    assert asked("What did the Build-Server do?").words == (("build",), ("server",))


def test_words_that_say_nothing_are_wanted_where_there_are_no_others():
    assert asked("who are you").words == (("who",), ("ar",), ("you",))


def test_quoted_words_are_required_together():
    found = asked("big “Red dogs” apple")

    assert found.words == (("big",), ("appl",))
    assert found.required == (("red", "dog"),)
    assert found.apart == (("red",), ("dog",))


@pytest.mark.parametrize("text", ["kettle -tea", "kettle NOT tea", 'kettle -"tea"', "kettle AND NOT tea"])
def test_what_is_excluded_is_not_wanted(text: str):
    found = asked(text)

    assert (found.words, found.excluded) == ((("kettl",),), (("tea",),))


@pytest.mark.parametrize("text", ["it is not tea", "well-known", "at -5 degrees", "DO NOT PANIC", "a - b"])
def test_other_words_and_dashes_exclude_nothing(text: str):
    assert asked(text).excluded == ()


def test_where_all_is_excluded_it_is_looked_for():
    assert asked("-tea").words == (("tea",),)
    assert asked("-tea").excluded == ()


def test_characters_that_stand_alone_are_wanted_in_pairs():
    assert asked("数据库 猫 ab").words == (("数", "据"), ("据", "库"), ("猫",), ("ab",))


@pytest.mark.parametrize("text", ["", "  ", '""', "!!! ???", "…"])
def test_punctuation_alone_is_empty(text: str):
    assert asked(text).is_empty


def test_a_date_alone_is_a_question():
    assert not asked("yesterday").is_empty


@given(some.text(max_size=200))
def test_any_text_is_a_question(text: str):
    found = asked(text)

    assert all(phrase for phrase in (*found.words, *found.required, *found.excluded))
    assert all(term for phrase in found.words for term in phrase)
