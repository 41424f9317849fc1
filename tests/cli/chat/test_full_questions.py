"""Journeys with questions: a run that waits for a person."""

from collections.abc import Callable

import pytest

from tests.cli.chat.conftest import Open
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

    while "Decided" not in terminal.text:
        terminal.send("d")
        typed = terminal.wait_until(lambda: "Decided" in terminal.text or "\n> d\n" in terminal.text, "the key")
        if "Decided" not in typed:  # too soon: it went to the input
            terminal.send("\x7f")
            terminal.wait_until(lambda: "\n> d\n" not in terminal.text, "an empty input")

    terminal.wait_for("Decided: deny", IDLE)


def test_words_are_no_decision(asking: Callable[..., Terminal]):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("ask me\r")
    terminal.wait_for("[d] deny")

    terminal.send("what is build\r")
    terminal.wait_for("> what is build (waits)", "[d] deny")
    terminal.send("deny keep it\r")

    terminal.wait_for("Decided: keep it")


def test_a_fact_may_be_given_in_free_words(asking: Callable[..., Terminal]):
    terminal = asking()
    terminal.wait_for("new session")
    terminal.send("colour please\r")
    terminal.wait_for("? Which colour?", "[1] red", "[2] blue")

    terminal.send("rather green\r")

    terminal.wait_for("Colour: rather green", IDLE)


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
