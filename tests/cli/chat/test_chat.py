from pathlib import Path

from hermes_agent.cli.chat.chat import place_line, short_path
from tests.cli.chat.conftest import Open

IDLE = " idle ·"


def test_a_folder_is_written_as_people_do(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert short_path(str(tmp_path)) == "~"
    assert short_path(f"{tmp_path}/project") == "~/project"
    assert short_path(f"{tmp_path}-other") == f"{tmp_path}-other"


def test_the_second_line_fits_a_narrow_terminal():
    assert place_line("~/p", "new session", 80) == "~/p · new session · /help, /keys"
    assert place_line("~/p", "new session", 30) == "~/p · new session"
    assert place_line("/a/very/long/folder/of/mine", "new session", 30) == "…/folder/of/mine · new session"


def test_another_session_is_shown_when_it_is_switched_to(at_terminal: Open):
    terminal = at_terminal(rows=40)
    terminal.wait_for("new session")
    terminal.send("hello\r")
    terminal.wait_for("You said: 'hello'", IDLE)
    terminal.send("/title First\r")
    terminal.wait_for("Titled")
    terminal.send("/new\r")
    terminal.wait_for("New session 20")
    terminal.send("second\r")
    terminal.wait_for("You said: 'second'", IDLE)

    terminal.send("/resume First\r")
    text = terminal.wait_for("(First).", "· First")

    assert text.count("You said: 'hello'") == 2
    assert text.count("You said: 'second'") == 1


def test_the_keys_are_explained(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/keys\r")

    terminal.wait_for("Alt+Enter, Ctrl-J", "stop the run")


def test_a_queued_message_waits_for_the_end_of_the_run(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("linger\r")
    terminal.wait_for("slow slow")

    terminal.send("/queue later\r")
    terminal.wait_for("> later (queued)", "1 queued")

    terminal.wait_for("You said: 'later'", IDLE)
