"""What stands below the scrollback, on terminals of many widths."""

import re

import pytest
from wcwidth import wcswidth

from hermes_agent.cli.chat.begin import as_written
from hermes_agent.cli.chat.panel import Live
from hermes_agent.cli.chat.text import plain
from hermes_agent.core.events import Event, Outcome, RunEnded, RunStarted, ToolProgress
from hermes_agent.core.messages import CallDelta, ThinkingDelta
from tests.cli.chat.conftest import Open
from tests.cli.chat.test_transcript import TOOL, TURN, delta, shown


def live(*events: Event, height: int = 20, width: int = 40) -> list[str]:
    transcript, _ = shown(*events)
    return [plain(line) for line in Live(transcript, as_written).lines(0.0, width, height)]


def activity(*events: Event) -> str:
    transcript, _ = shown(*events)
    return Live(transcript, as_written).activity(0.0)


def test_nothing_open_takes_no_line():
    assert live() == []
    assert live(RunStarted(), TURN) == []


def test_the_unfinished_words_follow_the_finished_ones():
    assert live(TURN, delta("one\n\ntwo")) == ["", "two"]
    assert live(TURN, delta("Look:\n- a")) == ["Look:", "- a"]


def test_a_block_that_is_higher_than_the_screen_shows_its_end():
    lines = live(TURN, delta("```\n" + "\n".join(map(str, range(50)))), height=5)
    assert lines[-1] == "49"
    assert len(lines) <= 5


def test_running_calls_have_a_line_each_with_their_progress():
    progress = ToolProgress(call_id="1", tool="look", text="half way")
    assert live(TURN, TOOL, progress) == ["", "• look: here · half way"]


def test_the_last_thoughts_are_shown_while_thinking():
    assert live(TURN, ThinkingDelta(text="a\nb\nc")) == ["", "∴ b", "∴ c"]


def test_messages_that_were_not_read_yet_are_shown():
    transcript, _ = shown(RunStarted())
    transcript.wait(1, "hurry\nup")
    lines = Live(transcript, as_written).lines(0.0, 40, 20)
    assert [plain(line) for line in lines] == ["", "> hurry up (queued)"]


@pytest.mark.parametrize("width", [20, 33])
def test_no_line_is_wider_than_the_terminal(width: int):
    thoughts = ThinkingDelta(text="日本語で考えている " * 20)
    assert all(wcswidth(line) <= width for line in live(TURN, TOOL, thoughts, width=width))


def test_what_is_going_on():
    assert activity() == "idle"
    assert "thinking" in activity(RunStarted(), TURN)
    assert "writing" in activity(RunStarted(), TURN, delta("x"))
    assert "look" in activity(RunStarted(), TURN, TOOL)
    assert "patch" in activity(RunStarted(), TURN, CallDelta(name="patch"))
    assert activity(RunStarted(), RunEnded(outcome=Outcome.ANSWERED, text="", turns=1)) == "idle"


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


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 24), (120, 40), (20, 12)])
def test_menu_picker_question_and_output_fit_terminals_of_many_sizes(at_terminal: Open, columns: int, rows: int):
    terminal = at_terminal(columns=columns, rows=rows)
    terminal.wait_for("idle")
    seen = [terminal.text]

    terminal.send("/re")
    seen.append(terminal.wait_for("/resume" if columns > 20 else "/re"))
    terminal.send("\x15/model\r")
    seen.append(terminal.wait_for("> custom/"))
    terminal.send("\x1b\x15")
    terminal.send("!seq 1 40; exit 3\r")
    seen.append(terminal.wait_for("exit 3\n", "  40\n"))

    assert all(wcswidth(line) <= columns for text in seen for line in text.split("\n"))
    if columns >= 80:
        assert "Continue an earlier session." in seen[1]
        assert "current" in seen[2]


def test_without_colours_nothing_is_coloured(at_terminal: Open):
    terminal = at_terminal(variables={"NO_COLOR": "1"})
    terminal.wait_for("idle")

    terminal.send("tour\r")
    terminal.wait_for("The end of it.", IDLE)
    terminal.send("!exit 3\r")
    terminal.wait_for("exit 3\n")

    assert not re.search(rb"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7])(?:;\d+)*m", terminal.raw)


def test_a_terminal_that_cannot_redraw_has_it_line_by_line(at_terminal: Open):
    terminal = at_terminal(term="dumb")
    terminal.wait_for("new session")

    terminal.send("!seq 1 30; exit 3\n")
    terminal.wait_for("✗ ! seq 1 30; exit 3", "… 21 more lines")
    terminal.send("/output\n")
    terminal.wait_for("  17")

    assert b"\x1b" not in terminal.raw
