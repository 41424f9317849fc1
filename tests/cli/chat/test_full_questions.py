"""Journeys with questions: a run that waits for a person."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_agent.cli.chat.keys import ALONE, TOO_SOON
from tests.cli.chat.conftest import LESSON, Open
from tests.cli.chat.terminal import Terminal

IDLE = " idle ·"


@pytest.fixture
def asking(at_terminal: Open) -> Callable[..., Terminal]:
    return lambda *arguments: at_terminal(*arguments, program=("-m", "tests.cli.chat.asking"))


def test_a_decision_is_asked_for_and_given_by_its_key(asking: Callable[..., Terminal]):
    terminal = asking()
    terminal.wait_for("new session")

    terminal.send("ask me\r")
    terminal.wait_for("? May I run this?", "  rm -r build", "[o] once", "[d] deny", "waits for you")
    terminal.send("o\r")

    text = terminal.wait_for("Decided: once", "That is what I found.", IDLE)
    assert "[o] once" not in text
    assert "? May I run this? rm -r build → once" in text


def test_one_key_decides_once_the_question_has_been_seen(asking: Callable[..., Terminal]):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("ask me\r")
    terminal.wait_for("[d] deny")

    press_alone(terminal, "d")

    terminal.wait_for("Decided: deny", IDLE)


def press_alone(terminal: Terminal, key: str, done: str = "Decided") -> None:
    """Press it until it decides: too soon after the question it only stands in the input."""
    while f"{done}: " not in terminal.text:
        until = time.monotonic() + 3 * ALONE
        terminal.send(key)
        terminal.wait_until(lambda until=until: f"{done}: " in terminal.text or time.monotonic() > until, "the key")
        if f"{done}: " not in terminal.text:
            terminal.send("\x7f")


def test_a_sentence_that_begins_like_a_choice_is_none(asking: Callable[..., Terminal]):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("ask me\r")
    terminal.wait_for("[d] deny")
    seen = time.monotonic()
    terminal.wait_until(lambda: time.monotonic() > seen + TOO_SOON, "the time to read the question")

    terminal.send("actually not\r")
    terminal.wait_for("> actually not (queued)", "[a] always")
    terminal.send("deny keep it\r")

    terminal.wait_for("Decided: keep it", IDLE)


def test_words_are_no_decision(asking: Callable[..., Terminal]):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("ask me\r")
    terminal.wait_for("[d] deny")

    terminal.send("what is build\r")
    terminal.wait_for("> what is build (queued)", "[d] deny")
    terminal.send("deny keep it\r")

    terminal.wait_for("Decided: keep it")


def test_a_fact_may_be_given_in_free_words(asking: Callable[..., Terminal]):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("colour please\r")
    terminal.wait_for("? Which colour?", "[1] red", "[2] blue")

    terminal.send("rather green\r")

    terminal.wait_for("Colour: rather green", IDLE)


def test_a_number_alone_chooses_and_a_sentence_that_begins_with_one_does_not(asking: Callable[..., Terminal]):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("colour please\r")
    terminal.wait_for("[2] blue")
    press_alone(terminal, "2", "Colour")
    terminal.wait_for("Colour: blue", IDLE)

    terminal.send("colour again\r")
    terminal.wait_for("[2] blue")
    terminal.send("2 of them\r")

    terminal.wait_for("Colour: 2 of them", IDLE)


@pytest.mark.parametrize(
    ("typed", "decided"), [("yes", "once"), ("Y", "once"), ("no", "deny"), ("no, See ./Makefile", "See ./Makefile")]
)
def test_plain_words_decide_and_the_words_of_a_refusal_stay_as_written(
    asking: Callable[..., Terminal], typed: str, decided: str
):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("ask me\r")
    terminal.wait_for("[d] deny")

    terminal.send(f"{typed}\r")

    terminal.wait_for(f"Decided: {decided}", IDLE)


def test_a_question_appears_again_after_a_crash_and_can_be_answered(asking: Callable[..., Terminal]):
    first = asking()
    first.wait_for("new session")
    first.send("ask me\r")
    first.wait_for("[d] deny")
    first.kill()

    second = asking("-c")
    second.wait_for("The run was interrupted", "? May I run this?", "[d] deny")
    second.send("session\r")

    second.wait_for("Decided: session", "That is what I found.", IDLE)


@pytest.mark.parametrize("typed", ["/approve once", "/deny See ./Makefile"])
def test_a_typed_decision_leaves_nothing_below_the_replies(asking: Callable[..., Terminal], typed: str):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("ask me\r")
    terminal.wait_for("[d] deny")

    terminal.send(f"{typed}\r")
    terminal.wait_for(f"Decided: {'once' if 'once' in typed else 'See ./Makefile'}", IDLE)
    terminal.send("hello\r")
    text = terminal.wait_for("You said: 'hello'", IDLE)

    assert text.splitlines()[-2:] == [">", text.splitlines()[-1]]
    assert text.splitlines()[-4].strip() == "You said: 'hello'"


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_what_was_learned_is_asked_about_under_the_reply_and_kept(at_terminal: Open, home: Path, term: str):
    terminal = at_terminal(term=term)
    terminal.wait_for("new session")
    terminal.send("learn it\r")
    terminal.wait_for("That is what I found.", "Learned: note", "keep (k)", "(v)?")

    terminal.send("k\r")
    terminal.wait_for("p1 is live (version 1")

    assert LESSON in (home / "memories/MEMORY.md").read_text()


def test_a_sentence_is_a_message_and_the_lesson_waits(at_terminal: Open, home: Path):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("learn it\r")
    terminal.wait_for("(v)?", IDLE)

    terminal.send("keep it short\r")
    terminal.wait_for("You said: 'keep it short'", IDLE)
    terminal.send("keep\r")

    terminal.wait_for("You said: 'keep'")
    assert not (home / "memories/MEMORY.md").exists()


def test_leaving_does_not_wait_for_an_answer(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("learn it\r")
    terminal.wait_for("(v)?", IDLE)

    terminal.send("\x04")

    terminal.wait_for("Come back with")


def test_the_folder_is_asked_about_at_the_start_until_it_is_declined(at_terminal: Open, project: Path):
    (project / "AGENTS.md").write_text("Use tabs.\n")
    first = at_terminal()
    first.wait_for("AGENTS.md speaks to the agent.", "(t)", "no (n)?")
    first.send("n\r")
    first.wait_for("`/trust add` changes that.")
    first.send("\x04")
    first.wait_for("Come back with")

    second = at_terminal()
    text = second.wait_for("new session", IDLE)

    assert "Do you trust" not in text


def test_the_folder_is_trusted_by_a_letter_and_the_next_session_asks_nothing(at_terminal: Open):
    first = at_terminal()
    first.wait_for("Do you trust the files of", IDLE)
    first.send("t\r")
    first.wait_for("Its instructions")
    first.send("\x04")
    first.wait_for("Come back with")

    second = at_terminal()
    assert "Do you trust" not in second.wait_for("new session", IDLE)
