"""Journeys with questions that no run waits for: the folder at the start, what was learned under a reply."""

from pathlib import Path

import pytest

from tests.cli.chat.conftest import LESSON, Open

IDLE = " idle ·"


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
