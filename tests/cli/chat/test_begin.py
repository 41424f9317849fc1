import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from hermes_agent.cli.chat.begin import Lines, can_redraw
from tests.cli.chat.conftest import Open
from tests.cli.chat.terminal import Terminal


def test_a_dumb_terminal_gets_lines_without_control_codes(at_terminal: Open):
    terminal = at_terminal(term="dumb")
    terminal.wait_for("new session")

    terminal.send("read it\n")
    text = terminal.wait_for("That is what I found.")
    terminal.send("/status\n")
    terminal.wait_for("Run      none")
    terminal.send("/quit\n")

    assert terminal.wait_for_end() == 0
    assert b"\x1b" not in terminal.raw
    assert "✓ read_file: a.txt" in text
    assert "hermes --resume 20" in terminal.text


def test_a_reply_keeps_the_models_own_marks(at_terminal: Open):
    terminal = at_terminal(term="dumb", rows=40)
    terminal.wait_for("new session")

    terminal.send("tour\n")

    text = terminal.wait_for("The end of it.")
    assert "# A tour" in text
    assert "```python" in text


def test_a_question_is_answered_by_the_next_line(at_terminal: Open):
    terminal = at_terminal(term="dumb", program=("-m", "tests.cli.chat.asking"))
    terminal.wait_for("new session")

    terminal.send("ask me\n")
    terminal.wait_for("? May I run this?", "[o] once")
    terminal.send("once\n")

    terminal.wait_for("Decided: once", "That is what I found.")


def test_an_interrupt_stops_the_run_and_a_second_one_leaves(at_terminal: Open):
    terminal = at_terminal(term="dumb")
    terminal.wait_for("new session")
    terminal.send("hang on\n")
    terminal.wait_for("> hang on")

    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("Stopped")
    os.kill(terminal.process.pid, signal.SIGINT)

    assert terminal.wait_for_end() == 0


def test_the_end_of_the_input_is_the_end(at_terminal: Open):
    terminal = at_terminal(term="dumb")
    terminal.wait_for("new session")

    terminal.send("\x04")

    assert terminal.wait_for_end() == 0


async def test_of_a_pipe_that_never_ends_only_so_much_is_read_as_is_taken():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    lines = Lines(reading)
    lines.open()
    written = 0
    try:
        for _ in range(100):
            with suppress(BlockingIOError):
                written += os.write(writing, b"a\n" * 2000)
            await asyncio.sleep(0)
        taken = [await lines.next() for _ in range(lines._lines.qsize())]
        os.close(writing)
        while (line := await lines.next()) is not None:
            taken.append(line)
    finally:
        os.close(reading)

    assert written < 200_000  # What the pipe itself holds, and a little.
    assert len(taken) == written // 2


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

    terminal.wait_for("max_turns", "good settings are used.", "! config.yaml", "custom/test-model")


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


def test_the_status_line_says_that_nobody_runs_the_jobs(at_terminal: Open, home: Path):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("/cron create @daily Look\r")
    terminal.wait_for("! nobody runs the jobs")
