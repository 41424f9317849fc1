"""Questions: any text is one, and little in it has a meaning."""

from datetime import datetime

import pytest
from hypothesis import given, strategies as some

from hermes_agent.store.finding.question import Question, dated, understood


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


NOW = datetime.fromisoformat("2024-05-15T12:00:00").astimezone().timestamp()  # a Wednesday


def days(question: str) -> list[tuple[str, str]]:
    """The spans as first day and the day after the last."""
    spans, _rest = dated(question, NOW)
    return [
        (datetime.fromtimestamp(span.start).date().isoformat(), datetime.fromtimestamp(span.end).date().isoformat())  # noqa: DTZ006  local on purpose
        for span in spans
    ]


@pytest.mark.parametrize(
    ("question", "first", "after"),
    [
        ("what did I say yesterday?", "2024-05-14", "2024-05-15"),
        ("the day before yesterday", "2024-05-13", "2024-05-14"),
        ("today's plan", "2024-05-15", "2024-05-16"),
        ("last week", "2024-05-06", "2024-05-13"),
        ("last month", "2024-04-01", "2024-05-01"),
        ("this year", "2024-01-01", "2025-01-01"),
        ("three days ago", "2024-05-12", "2024-05-13"),
        ("a week ago", "2024-05-06", "2024-05-13"),
        ("2 months ago", "2024-03-01", "2024-04-01"),
        ("in the last 3 days", "2024-05-12", "2024-05-16"),
        ("on Monday", "2024-05-13", "2024-05-14"),
        ("last Wednesday", "2024-05-08", "2024-05-09"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("on 7 December 2022", "2022-12-07", "2022-12-08"),
        ("December 31st, 2022", "2022-12-31", "2023-01-01"),
        ("2023-02-03", "2023-02-03", "2023-02-04"),
        ("2023-12", "2023-12-01", "2024-01-01"),
        ("back in 2021", "2021-01-01", "2022-01-01"),
        ("was habe ich gestern gesagt", "2024-05-14", "2024-05-15"),
        ("la semaine dernière", "2024-05-06", "2024-05-13"),
        ("昨天说了什么", "2024-05-14", "2024-05-15"),
        ("2023年5月7日", "2023-05-07", "2023-05-08"),
        ("지난주", "2024-05-06", "2024-05-13"),
        ("le 3 mai 2023", "2023-05-03", "2023-05-04"),
    ],
)
def test_a_date_is_the_days_it_names(question: str, first: str, after: str):
    assert days(question) == [(first, after)]


def test_a_month_without_a_year_is_that_of_any_of_the_last_ten():
    found = days("in August")

    assert len(found) == 10
    assert ("2023-08-01", "2023-09-01") in found


@pytest.mark.parametrize("question", ["may I march on?", "the 99 bottles", "31 June 2023", "2023-15-40", "port 8080"])
def test_what_is_no_date_names_no_day(question: str):
    assert days(question) == []


def test_words_that_count_from_today_are_taken_out_and_others_stay():
    assert dated("Paris Yesterday or in May 2023", NOW)[1].split() == ["Paris", "or", "in", "May", "2023"]
