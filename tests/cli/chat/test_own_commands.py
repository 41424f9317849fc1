"""What only a terminal has: journeys."""

import base64
from pathlib import Path

from tests.cli.chat.conftest import Open

IDLE = " idle ·"


def test_an_own_command_is_shown_and_told_to_the_model(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("!echo one; echo two; exit 4\r")
    text = terminal.wait_for("· exit 4", "  one\n  two")
    assert "✗ ! echo one; echo two; exit 4" in text
    terminal.send("why?\r")

    terminal.wait_for("> why?\n  + ! echo one; echo two; exit 4 [exit 4], 2 lines", "! echo one", r"one\ntwo", IDLE)


def test_escape_stops_an_own_command(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("!echo begun; sleep 300\r")
    terminal.wait_for("· begun")

    terminal.send("\x1b")

    terminal.wait_for("✗ ! echo begun; sleep 300", "exit 137", IDLE)
    terminal.send("hello\r")
    terminal.wait_for("exit 137, stopped", "You said:")


def test_files_are_attached_and_labelled(at_terminal: Open, project: Path):
    (project / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("see @a.txt\r")
    terminal.wait_for("> see @a.txt\n  + a.txt, 3 lines", r"a.txt:\none\ntwo\nthree", IDLE)
    terminal.send("see @bad.pdf\r")

    terminal.wait_for("bad.pdf cannot be read", "> see @bad.pdf\n idle")


def test_the_conversation_is_exported_and_never_over_a_file(at_terminal: Open, project: Path):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("/export\r")
    terminal.wait_for("Nothing was said yet")
    terminal.send("hello\r")
    terminal.wait_for("You said: 'hello'", IDLE)

    terminal.send("/export talk.md\r")
    terminal.wait_for("talk.md")
    terminal.send("/export talk.md\r")
    terminal.wait_for("exists. Name another file.")
    terminal.send("/export talk.doc\r")
    terminal.wait_for("Name a file that ends in .md, .html, .jsonl")

    assert "You said: 'hello'" in (project / "talk.md").read_text()
    assert "<runtime" not in (project / "talk.md").read_text()


def test_the_last_reply_is_copied(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("/copy\r")
    terminal.wait_for("There is no reply to copy yet.")
    terminal.send("hello\r")
    terminal.wait_for("You said: 'hello'", IDLE)

    terminal.send("/copy\r")
    terminal.wait_for("Copied 17 characters")

    assert b"\x1b]52;c;" + base64.b64encode(b"You said: 'hello'") in terminal.raw


def test_folded_output_is_unfolded_by_a_key_and_by_a_command(at_terminal: Open):
    terminal = at_terminal(rows=50)
    terminal.wait_for("new session")
    terminal.send("!seq 1 30\r")
    terminal.wait_for("… 21 more lines (Ctrl-O)")

    terminal.send("\x0f")
    terminal.wait_for("▾ ! seq 1 30", "  17\n")
    terminal.send("/output\r")

    terminal.wait_for("There is nothing more to unfold.")


def test_the_installation_is_checked_from_the_chat(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/doctor\r")

    terminal.wait_for("python", "database", "hermes doctor --security")
