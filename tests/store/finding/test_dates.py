"""Dates in questions, as days."""

from datetime import datetime

import pytest

from hermes_agent.store.finding.dates import dated

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
