from dataclasses import replace

import pytest

from hermes_agent.cli.chat.questions import answer_of, keys_of, question_lines
from hermes_agent.cli.chat.text import plain
from hermes_agent.core.events import Asked

CHOICES = ("once", "session", "always", "deny")
APPROVAL = Asked(question="q", text="May I run this?\nrm -r build", choices=CHOICES, purpose="approval")
CLARIFY = Asked(question="q", text="Which colour?", choices=("red", "blue"), purpose="clarify")
OPEN = Asked(question="q", text="What name?", choices=(), purpose="clarify")


def test_choices_have_letters_where_they_differ_and_numbers_always():
    assert keys_of(APPROVAL) == dict(zip("1234osad", CHOICES * 2, strict=True))
    assert keys_of(replace(APPROVAL, choices=("yes", "yes to all"))) == {"1": "yes", "2": "yes to all"}


def test_a_fact_has_numbers_alone_since_a_letter_could_begin_an_answer():
    assert keys_of(CLARIFY) == {"1": "red", "2": "blue"}
    assert keys_of(OPEN) == {}


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("o", "once"),
        ("S", "session"),
        ("3", "always"),
        ("Deny", "deny"),
        ("deny use rm -i", "use rm -i"),
        ("hurry up please", None),
        ("yes", None),
        ("  ", None),
        ("5", None),
    ],
)
def test_a_decision_takes_nothing_but_its_choices_or_a_reasoned_no(line: str, answer: str | None):
    assert answer_of(APPROVAL, line) == answer


def test_a_fact_may_be_a_choice_or_free_words():
    assert answer_of(CLARIFY, "2") == "blue"
    assert answer_of(CLARIFY, "RED") == "red"
    assert answer_of(CLARIFY, "rather green") == "rather green"
    assert answer_of(OPEN, "Ada") == "Ada"


def test_a_question_shows_what_is_asked_and_how_to_answer():
    shown = plain(question_lines(APPROVAL, 1, 78))
    assert shown.split("\n")[:3] == ["? May I run this?", "  rm -r build", "  [o] once  this call only"]
    assert "[d] deny" in shown
    assert "(1 more after this one)" in shown
    assert "[1] red" in plain(question_lines(CLARIFY, 0, 78))
    assert "type the answer" in plain(question_lines(OPEN, 0, 78))


def test_a_question_cannot_steer_the_terminal():
    asked = Asked(question="q", text="rm \x1b[8mhidden\x1b[0m\rharmless", choices=CHOICES, purpose="approval")
    shown = plain(question_lines(asked, 0, 78))
    assert "\x1b" not in shown
    assert "rm hidden\n  harmless" in shown


def test_a_long_question_is_cut_visibly():
    asked = Asked(question="q", text="line\n" * 40, choices=CHOICES, purpose="approval")
    assert "more lines" in question_lines(asked, 0, 78)


def test_a_narrow_terminal_breaks_between_words_and_leaves_the_meanings_out():
    asked = replace(APPROVAL, text="May I run this command for you now?\nrm x")
    lines = plain(question_lines(asked, 0, 24)).split("\n")
    assert lines[:4] == ["? May I run this command", "  for you now?", "  rm x", "  [o] once"]
