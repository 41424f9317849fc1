"""Quick replies: which words answer a question under a reply, and which are a message."""

import pytest

from hermes_agent.core.events import Answered, Entry, MessageTaken, Notice, Outcome, RunEnded
from hermes_agent.core.messages import Message, Origin, Role, Text
from hermes_agent.core.quick_replies import (
    FOLDER,
    GOAL,
    LESSON,
    may_answer,
    open_questions,
    replies_to,
    reply_in,
    with_keys,
)

TAKEN = MessageTaken(message=Message(role=Role.USER, parts=(Text(text="Hi", origin=Origin.OWNER),)), inbox=1)
NOTE = MessageTaken(message=Message(role=Role.USER, parts=(Text(text="A note", origin=Origin.RUNTIME),)))


def ended(text: str) -> RunEnded:
    return RunEnded(outcome=Outcome.ANSWERED, text=text, turns=1)


def asked(name: str) -> Notice:
    return Notice(text="Learned.", level="news", question=f"{LESSON}{name}")


def log(*events) -> list[Entry]:
    return [Entry(number=number, run="r", at=0.0, event=event) for number, event in enumerate(events, 1)]


@pytest.mark.parametrize(
    ("said", "word", "brief_word"),
    [
        ("keep", "keep", "keep"),
        (" Not  now. ", "not now", "not now"),
        ("NEVER!", "never", "never"),
        ("k", None, "keep"),
        ("V", None, "never"),
        ("2", None, "not now"),
        ("4", None, None),
        ("keep it short", None, None),
        ("no", None, None),
        ("", None, None),
    ],
)
def test_a_word_a_letter_or_a_number_answers_and_a_sentence_does_not(said: str, word: str | None, brief_word: str):
    for brief, expected in ((False, word), (True, brief_word)):
        found = reply_in(f"{LESSON}p1", said, brief=brief)
        assert (found.word if found else None) == expected


def test_a_bare_no_is_an_answer_only_where_the_reply_asks_nothing():
    assert reply_in(f"{FOLDER}ab", "no", brief=False) is None
    found = reply_in(f"{FOLDER}ab", "no", brief=True)
    assert found is not None
    assert found.word == "no"


def test_another_question_has_no_quick_replies():
    assert replies_to("call-1.clarify") == ()
    assert replies_to("") == ()


def test_questions_stay_open_until_they_are_answered_or_the_person_says_something():
    two = log(TAKEN, ended("Done."), asked("p1"), asked("p2"))
    answered = Answered(question=f"{LESSON}p1", answer="keep", principal="cli:ann")

    assert open_questions(two) == (["learn:p1", "learn:p2"], True)
    assert open_questions(log(*(each.event for each in two), answered, NOTE)) == (["learn:p2"], True)
    assert open_questions(log(*(each.event for each in two), TAKEN)) == ([], True)


def test_what_the_runtime_says_by_itself_closes_no_question_and_a_person_s_words_among_it_do():
    def taken(*origins: Origin) -> MessageTaken:
        parts = tuple(Text(text="x", origin=origin) for origin in origins)
        return MessageTaken(message=Message(role=Role.USER, parts=parts), inbox=1, principal="cli:me")

    assert open_questions(log(asked("p1"), taken(Origin.RUNTIME, Origin.TOOL)))[0] == ["learn:p1"]
    assert open_questions(log(asked("p1"), taken(Origin.RUNTIME, Origin.OWNER)))[0] == []
    assert open_questions(log(asked("p1"), taken(Origin.FILE)))[0] == []


def test_the_proof_of_a_goal_is_counted_or_not_now():
    assert [each.word for each in replies_to(f"{GOAL}g_1:abc")] == ["count it", "not now"]
    assert reply_in(f"{GOAL}g_1:abc", "Count it.", brief=False) == replies_to(GOAL)[0]


@pytest.mark.parametrize("text", ["Shall I go on?", "Which?\n\n1. red\n2. blue", "So:\n 1) red"])
def test_where_the_reply_asks_itself_a_letter_or_number_is_for_the_agent(text: str):
    assert open_questions(log(TAKEN, ended(text), asked("p1"))) == (["learn:p1"], False)


def test_a_terminal_shows_each_quick_reply_with_its_letter():
    shown = with_keys(Notice(text="Keep it?", question=LESSON))
    assert shown.startswith("Keep it? ")
    assert shown.endswith("?")
    assert all(f"{each.word} ({each.key})" in shown for each in replies_to(LESSON))


def test_a_line_may_be_a_reply_to_any_question():
    assert may_answer("trust")
    assert may_answer("k")
    assert not may_answer("Trust me, it is fine")
