from pathlib import Path

import pytest

from hermes_agent.cli.chat.begin import can_redraw
from tests.cli.chat.conftest import Open
from tests.cli.chat.terminal import Terminal


def test_without_a_key_there_is_a_sentence_and_no_prompt(home: Path, project: Path):
    with Terminal(home=home, folder=project, columns=200) as terminal:
        assert terminal.wait_for_end() == 3

    assert "`hermes setup`" in terminal.text
    assert "`hermes demo`" in terminal.text
    assert "Traceback" not in terminal.text
    assert "\n>" not in terminal.text


def test_a_session_that_is_not_there_is_a_sentence(at_terminal: Open):
    terminal = at_terminal("-r", "nowhere")

    assert terminal.wait_for_end() != 0
    assert "nowhere" in terminal.text
    assert "Traceback" not in terminal.text


def test_the_demo_says_that_its_model_is_scripted(home: Path, project: Path):
    with Terminal("-m", "demo/scripted", home=home, folder=project) as terminal:
        terminal.wait_for("demo/scripted (scripted model)", "new session")


def test_a_broken_config_is_said_at_the_start_and_in_the_status_line(at_terminal: Open, home: Path):
    first = at_terminal()
    first.wait_for("new session")
    first.send("\x04")
    first.wait_for_end()
    config = home / "config.yaml"
    config.write_text(config.read_text() + "agent:\n  max_turn: 3\n")

    terminal = at_terminal()

    terminal.wait_for("max_turns", "The last good", "! config.yaml", "custom/test-model")


def test_the_first_prompt_comes_before_the_renderer_is_loaded(at_terminal: Open):
    terminal = at_terminal(program=("-X", "importtime", "-m", "hermes_agent"), columns=200)
    terminal.wait_for("new session")

    loaded = {
        line.rpartition(b"|")[2].strip() for line in terminal.raw.split(b"\n") if line.startswith(b"import time:")
    }

    assert b"prompt_toolkit" in loaded
    assert loaded.isdisjoint({b"rich", b"pygments", b"markdown_it", b"httpx2", b"httptools"})


@pytest.mark.parametrize("term", ["dumb", "unknown", ""])
def test_a_terminal_that_cannot_move_its_cursor_is_not_asked_to(term: str):
    assert not can_redraw({"TERM": term})


def test_no_terminal_is_not_redrawn(capfd: pytest.CaptureFixture[str]):
    assert not can_redraw({"TERM": "xterm"})
