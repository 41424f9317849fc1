"""What stands below the scrollback, on terminals of many widths."""

import pytest
from wcwidth import wcswidth

from tests.cli.chat.conftest import Open

IDLE = " idle ·"


@pytest.mark.parametrize("columns", [40, 61])
def test_no_line_is_wider_than_a_narrow_terminal(at_terminal: Open, columns: int):
    terminal = at_terminal(columns=columns)
    terminal.wait_for("Hermes")

    terminal.send("tour\r")
    text = terminal.wait_for("The end of it.", IDLE)

    # Characters of two cells take two: a line that was measured wrongly would have been broken by the terminal.
    assert "日本語のテキストと絵文字 😀" in text
    assert all(wcswidth(line) <= columns for line in text.split("\n"))
    assert "りんご     3" in text
    assert "pear      12" in text


def test_wide_characters_can_be_typed(at_terminal: Open):
    terminal = at_terminal(columns=40)
    terminal.wait_for("new session")

    terminal.send("日本語")
    terminal.wait_for("> 日本語")
    terminal.send("\x7f字\r")

    terminal.wait_for("You said: '日本字'")


def test_the_status_line_tells_model_context_cost_and_session(at_terminal: Open):
    terminal = at_terminal(columns=110)
    terminal.wait_for("idle · custom/test-model")

    terminal.send("hello\r")

    terminal.wait_for("context ", "cost unknown · 20", IDLE)
