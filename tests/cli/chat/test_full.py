"""Journeys: a person at a terminal, a real child process, a model behind a socket."""

import re

import pytest

from tests.cli.chat.conftest import Open

IDLE = " idle ·"


def test_a_reply_is_written_once_and_stays_in_the_scrollback(at_terminal: Open):
    terminal = at_terminal(rows=12)
    terminal.wait_for("Hermes", "custom/test-model", "new session")

    terminal.send("tour\r")
    text = terminal.wait_for("The end of it.", IDLE)

    for once in ("A tour", "日本語のテキストと絵文字", "• first item", "りんご", "def hello():", "The end of it."):
        assert text.count(once) == 1, once
    assert "Vec<String>" in text
    assert "```" not in text
    # No other screen, no mouse, no clearing: all that would disturb the scrollback.
    for sequence in (b"\x1b[?1049h", b"\x1b[?1000h", b"\x1b[2J", b"\x1b[3J", b"\x1b[6n"):
        assert sequence not in terminal.raw


def test_blocks_are_in_the_order_they_were_written_in(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("tour\r")
    text = terminal.wait_for("The end of it.", IDLE)

    marks = ["> tour", "A tour", "日本語", "first item", "りんご", "def hello", "The end of it."]
    assert [text.index(mark) for mark in marks] == sorted(text.index(mark) for mark in marks)


def test_a_call_leaves_one_line_with_its_result(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("read it\r")
    text = terminal.wait_for("That is what I found.", IDLE)

    assert re.search(r"✓ read_file: a\.txt \d\.\d s · 3 lines", text)
    assert text.count("read_file") == 1


def test_calls_side_by_side_have_a_line_each_and_a_failure_says_why(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("both of them\r")
    text = terminal.wait_for("That is what I found.", IDLE)

    assert "✓ read_file: a.txt" in text
    assert re.search(r"✗ read_file: none\.txt.*\n  \S", text)


def test_a_change_is_shown_as_a_diff(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("patch it\r")
    text = terminal.wait_for("That is what I found.", IDLE)

    assert "  -two\n  +zwei\n" in text
    assert b"\x1b[31m  -two" in terminal.raw
    assert b"\x1b[32m  +zwei" in terminal.raw


def test_thoughts_are_one_dim_line(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("think\r")
    text = terminal.wait_for("I know now.", IDLE)

    assert len(re.findall(r"∴ thought · Let me see what this could mean\.", text)) == 1


def test_a_reply_that_broke_off_is_said_to_be_tried_again(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("flaky\r")
    text = terminal.wait_for("This counts.", IDLE)

    assert re.search(r"(?s)↻ .*attempt 2 in ", text)
    assert text.count("This counts.") == 1
    assert "And this" not in text


def test_a_message_during_a_run_is_read_by_the_model(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("linger\r")
    terminal.wait_for("slow slow")
    terminal.send("hurry\r")
    terminal.wait_for("> hurry (queued)")

    text = terminal.wait_for("You said: 'hurry'", IDLE)
    assert "(queued)" not in text


@pytest.mark.parametrize("stop", ["\x03", "\x1b", "/stop\r"])
def test_a_stop_gives_what_was_queued_back_to_the_input(at_terminal: Open, stop: str):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("hang on\r")
    terminal.wait_for("slow slow")
    terminal.send("hurry\r")
    terminal.wait_for("> hurry (queued)")
    terminal.send("/queue then test\r")
    terminal.wait_for("> then test (queued)")

    terminal.send(stop)
    text = terminal.wait_for("Stopped", "> hurry\n  then test\n idle ·")
    assert "(queued)" not in text
    terminal.send(" it\r")

    text = terminal.wait_for(r"You said: 'hurry\nthen test it'", IDLE)
    assert text.count("Stopped") == 1


def test_what_was_queued_can_be_taken_back_while_the_run_goes_on(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("hang on\r")
    terminal.wait_for("slow slow")
    terminal.send("hurry\r")
    terminal.wait_for("> hurry (queued)")

    terminal.send("\x1b[A")

    terminal.wait_until(lambda: "(queued)" not in terminal.text, "an empty queue")
    assert "> hurry" in terminal.text
    assert "Stopped" not in terminal.text


def test_a_killed_chat_goes_on_where_it_was(at_terminal: Open):
    first = at_terminal()
    first.wait_for("new session")
    first.send("read it\r")
    first.wait_for("That is what I found.", IDLE)
    first.send("hang on\r")
    first.wait_for("slow slow")
    first.kill()

    second = at_terminal("-c")
    text = second.wait_for("The run was interrupted", "slow slow")
    assert "> read it" in text
    assert "That is what I found." in text

    second.send("\x03")
    second.wait_for("Stopped")
    second.send("\x04")
    assert second.wait_for_end() == 0
    assert "hermes --resume 20" in second.text


def test_a_session_is_taken_up_by_its_title(at_terminal: Open):
    first = at_terminal()
    first.wait_for("new session")
    first.send("hello\r")
    first.wait_for("You said: 'hello'", IDLE)
    first.send("/title Green tea\r")
    first.wait_for("Titled", "· Green tea")
    first.send("/quit\r")
    assert first.wait_for_end() == 0

    second = at_terminal("-r", "Green tea")

    text = second.wait_for("(Green tea)", "You said: 'hello'", IDLE)
    assert text.count("> hello") == 1


def test_a_chat_in_which_nothing_was_said_leaves_nothing(at_terminal: Open):
    first = at_terminal()
    first.wait_for("new session")
    first.send("\x04")
    assert first.wait_for_end() == 0
    assert "--resume" not in first.text

    second = at_terminal("-c")
    second.wait_for("new session")


def test_a_slash_command_answers_and_an_unknown_one_says_what_is_near(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/staus\r")
    terminal.wait_for("Did you mean `/status`?")
    terminal.send("/status\r")

    terminal.wait_for("Model    custom/test-model", "Run      none")
