"""One question from the command line in a folder that nobody answered for: asked at a terminal, told elsewhere."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_agent.app.folder_trust import FILE
from tests.cli.chat.terminal import Terminal
from tests.cli.test_oneshot import Shell, shell

__all__ = ["shell"]
QUESTION = ("speaks to the agent.", "trust (t) / this time (o)", "no (n)?")


@contextmanager
def at_terminal(shell: Shell) -> Iterator[Terminal]:
    with Terminal("-z", "Hi", home=shell.home, folder=shell.work, columns=400) as terminal:
        yield terminal


@pytest.fixture
def speaking(shell: Shell) -> Path:
    (shell.work / "AGENTS.md").write_text("Use tabs.\n")
    return shell.home / FILE


def test_at_a_terminal_the_folder_is_asked_about_before_the_run_and_once(shell: Shell, speaking: Path):
    with at_terminal(shell) as first:
        first.wait_for(*QUESTION)
        assert shell.server is not None
        assert shell.server.exchanges == []
        first.send("t\r")
        first.wait_for("Its instructions count", "Reply 1 of m.")
    with at_terminal(shell) as second:
        text = second.wait_for("Reply 1 of m.")

    assert str(shell.work) in speaking.read_text()
    assert "Do you trust" not in text


@pytest.mark.parametrize(
    ("line", "told"), [("what?\r", "hermes trust add"), ("\x04", "hermes trust add"), ("no\r", "")]
)
def test_any_other_line_is_no_trust_and_the_run_goes_on(shell: Shell, speaking: Path, line: str, told: str):
    with at_terminal(shell) as terminal:
        terminal.wait_for(*QUESTION)
        terminal.send(line)
        terminal.wait_for("is not trusted", told, "Reply 1 of m.")
    with at_terminal(shell) as second:
        second.wait_for("Reply 1 of m." if line == "no\r" else "Do you trust")

    assert not speaking.exists() or '"folders":{}' in speaking.read_text().replace(" ", "")


def test_an_interrupt_ends_the_question(shell: Shell, speaking: Path):
    with at_terminal(shell) as terminal:
        terminal.wait_for(*QUESTION)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(10) != 0
    assert not speaking.exists()
    assert shell.server is not None
    assert shell.server.exchanges == []


def test_where_nobody_can_be_asked_one_line_says_so_until_it_is_declined(shell: Shell, speaking: Path):
    first = shell.run("-z", "Hi")
    shell.run("trust", "decline")
    second = shell.run("-z", "Hi")

    assert first.out == second.out == "Reply 1 of m.\n"
    assert first.err.startswith(f"{shell.work} is not trusted")
    assert first.err.count("\n") == 1
    assert second.err == ""
    assert '"folders":{}' in speaking.read_text().replace(" ", "")
