from dataclasses import replace

from hermes_agent.cli.chat.questions import question_lines
from hermes_agent.cli.chat.text import plain
from hermes_agent.core.events import Asked

CHOICES = ("once", "session", "always", "deny")
APPROVAL = Asked(question="q", text="May I run this?\nrm -r build", choices=CHOICES, purpose="approval")
CLARIFY = Asked(question="q", text="Which colour?", choices=("red", "blue"), purpose="clarify")
OPEN = Asked(question="q", text="What name?", choices=(), purpose="clarify")


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


def test_on_a_terminal_of_few_rows_the_choices_and_the_command_come_before_the_words():
    asked = replace(APPROVAL, text="May I run this? " + "It publishes. " * 9 + "\nrm -r build")
    lines = plain(question_lines(asked, 0, 20, rows=12)).split("\n")
    assert len(lines) <= 8
    assert lines[-5:] == ["  rm -r build", "  [o] once", "  [s] session", "  [a] always", "  [d] deny"]
    assert "…" in lines[-6]
