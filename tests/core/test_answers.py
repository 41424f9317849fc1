from dataclasses import replace

import pytest

from hermes_agent.core.answers import answer_in, keys_of, open_in, reason_in
from hermes_agent.core.events import Answered, Asked, Entry, Notice, Outcome, RunEnded

CHOICES = ("once", "session", "always", "deny")
APPROVAL = Asked(question="q", text="May I run this?\nrm -r build", choices=CHOICES, purpose="approval")
CLARIFY = Asked(question="q", text="Which colour?", choices=("red", "blue"), purpose="clarify")
OPEN = Asked(question="q", text="What name?", choices=(), purpose="clarify")


def test_choices_have_letters_where_they_differ_and_numbers_always():
    assert keys_of(APPROVAL) == dict(zip("1234osad", CHOICES * 2, strict=True)) | {"y": "once", "n": "deny"}
    assert keys_of(replace(APPROVAL, choices=("yes", "yes to all"))) == {"1": "yes", "2": "yes to all", "y": "yes"}


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
        ("yes", "once"),
        ("Y", "once"),
        ("No.", "deny"),
        ("n", "deny"),
        ("no, See ./Makefile", "See ./Makefile"),
        ("no once", "deny"),
        ("not now", None),
        ("  ", None),
        ("5", None),
    ],
)
def test_a_decision_takes_nothing_but_its_choices_or_a_reasoned_no(line: str, answer: str | None):
    assert answer_in(APPROVAL, line) == answer


def test_a_fact_may_be_a_choice_or_free_words():
    assert answer_in(CLARIFY, "2") == "blue"
    assert answer_in(CLARIFY, "RED") == "red"
    assert answer_in(CLARIFY, "rather green") == "rather green"
    assert answer_in(OPEN, "Ada") == "Ada"
    assert answer_in(OPEN, "no") == "no"
    assert answer_in(replace(CLARIFY, choices=("Yes", "Later")), "y") == "Yes"


def test_the_reason_of_a_refusal_is_never_a_choice():
    assert reason_in(APPROVAL, "Use ./Makefile") == "Use ./Makefile"
    assert [reason_in(APPROVAL, words) for words in ("once", "Y", "", " 3 ")] == ["deny"] * 4


def test_questions_are_open_until_they_are_answered_or_the_run_ends():
    asked = [Entry(number=n, run="r", at=float(n), event=replace(OPEN, question=str(n))) for n in (1, 2)]
    answered = Entry(number=3, run="r", at=3.0, event=Answered(question="1", answer="x", principal="cli:me"))
    said = Entry(number=3, run="r", at=3.0, event=Notice(text="Still here."))
    over = Entry(number=4, run="r", at=4.0, event=RunEnded(outcome=Outcome.STOPPED, text="", turns=1))

    assert [(each.asked.question, each.at) for each in open_in([*asked, said, answered])] == [("2", 2.0)]
    assert open_in([*asked, over]) == []
