import asyncio
import os
import signal
from contextlib import suppress

from hermes_agent.cli.chat.plain import Lines
from tests.cli.chat.conftest import Open


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
