import os
import pty
import threading
import time
import tty
from pathlib import Path

import pytest
from prompt_toolkit.keys import Keys

from hermes_agent.cli.chat.keys import LONE_ESCAPE, LONG, Pastes, Typed
from tests.cli.chat.conftest import Open
from tests.cli.chat.terminal import Terminal

IDLE = " idle ·"


def test_ctrl_c_stops_the_run_and_a_second_one_leaves(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("hang on\r")
    terminal.wait_for("slow slow")

    terminal.send("\x03")
    terminal.wait_for("Stopped", "Ctrl-C again leaves")
    terminal.send("\x03")

    assert terminal.wait_for_end() == 0
    assert "hermes --resume 20" in terminal.text


def test_ctrl_c_clears_what_is_typed_before_it_leaves(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("half a sent")
    terminal.wait_for("> half a sent")

    terminal.send("\x03")

    terminal.wait_until(lambda: "half" not in terminal.text, "an empty input")
    assert terminal.process.poll() is None


def test_a_pasted_text_of_many_lines_is_one_message(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("\x1b[200~line one\r\nline two\nzeile drei\x1b[201~")
    terminal.wait_for("zeile drei")
    terminal.send("\r")

    terminal.wait_for(r"You said: 'line one\nline two\nzeile drei'", IDLE)


def test_three_ways_to_a_new_line(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("one\x1b\rtwo\nthree\\\rfour\r")

    terminal.wait_for(r"You said: 'one\ntwo\nthree\nfour'")


def test_a_command_is_completed(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("/statu")
    terminal.wait_for("Show the model, folder and state of this session.")
    terminal.send("\t\r")

    terminal.wait_for("> /status", "Run      none")


def test_escape_does_nothing_where_nothing_runs_and_eats_no_letter(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("/sta")
    terminal.wait_for("Show the model, folder")

    terminal.send("\x1b")
    terminal.wait_until(lambda: "Show the model, folder" not in terminal.text, "no menu")
    terminal.send("also")

    terminal.wait_for("> /staalso")


@pytest.mark.parametrize("word", ["exit", "quit", "/quit"])
def test_the_words_for_leaving_leave(at_terminal: Open, word: str):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send(f"{word}\r")

    assert terminal.wait_for_end() == 0


def test_the_input_is_written_in_the_editor(at_terminal: Open):
    terminal = at_terminal(variables={"EDITOR": "sed -i s/one/two/"})
    terminal.wait_for("new session")
    terminal.send("fix one thing")
    terminal.wait_for("> fix one thing")

    terminal.send("\x18\x05")
    terminal.wait_for("> fix two thing")
    terminal.send("\r")

    terminal.wait_for("You said: 'fix two thing'", IDLE)


def test_a_paste_has_no_control_characters_and_a_dropped_file_is_attached(at_terminal: Open, project: Path):
    terminal = at_terminal(columns=160)
    terminal.wait_for("new session")
    terminal.send("\x1b[200~red \x1b[31mtext\x07\x00 here\x1b[201~")
    terminal.wait_for("> red text here")

    terminal.send(f" \x1b[200~{project}/a.txt\x1b[201~")

    terminal.wait_for(f"> red text here @{project}/a.txt")


def test_ctrl_d_leaves(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    terminal.send("\x04")

    assert terminal.wait_for_end() == 0


def test_a_second_ctrl_c_leaves_only_within_two_seconds(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("\x03")
    terminal.wait_for("Ctrl-C again leaves")

    terminal.wait_until(lambda: "again leaves" not in terminal.text, "the hint to go")
    terminal.send("\x03")
    terminal.wait_for("Ctrl-C again leaves")

    assert terminal.process.poll() is None
    terminal.send("\x03")
    assert terminal.wait_for_end() == 0


def test_the_search_shows_its_match_and_enter_takes_it_into_the_input(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    for words in ("the quick fox", "a slow dog"):
        terminal.send(f"{words}\r")
        terminal.wait_for(f"You said: '{words}'", IDLE)

    terminal.send("\x12quick")
    terminal.wait_for("> the quick fox\nI-search backward: quick")
    terminal.send("\r")
    terminal.wait_until(lambda: "I-search" not in terminal.text, "the end of the search")
    terminal.send(" jumps\r")

    terminal.wait_for("You said: 'the quick fox jumps'", IDLE)


def test_ctrl_c_ends_the_search_alone(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("\x12x")
    terminal.wait_for("I-search backward: x")

    terminal.send("\x03")

    text = terminal.wait_until(lambda: "I-search" not in terminal.text, "the end of the search")
    assert "again leaves" not in text


def test_the_menu_says_what_commands_do_at_the_usual_width_and_then_how(at_terminal: Open):
    terminal = at_terminal(columns=80, rows=24)
    terminal.wait_for("new session")

    terminal.send("/cur")
    assert "[status" not in terminal.wait_for("/curator", "Archive, merge and repair")
    terminal.send("\t ")
    terminal.wait_for("/curator [status")


def test_a_short_paste_is_text_and_a_long_one_a_few_words_that_stand_for_it():
    pastes = Pastes()
    first, second = "one\r\n" * LONG, "two\r" * LONG

    assert pastes.shown("a\r\nb") == "a\nb"
    shown = pastes.shown(first), pastes.shown(second)
    assert shown[0] == f"[pasted text 1: {4 * LONG:,} characters, {LONG + 1:,} lines]"
    assert pastes.whole(f"{shown[1]} and {shown[0]}") == "two\n" * LONG + " and " + "one\n" * LONG
    assert pastes.whole("[pasted text 9: 1 characters, 1 lines]") == "[pasted text 9: 1 characters, 1 lines]"


def paste(terminal: Terminal, text: str, pieces: int = 1) -> None:
    """Give the terminal a paste, in so many pieces, while it is read."""
    whole = f"\x1b[200~{text}\x1b[201~"
    size = len(whole) // pieces + 1

    def write() -> None:
        for start in range(0, len(whole), size):
            terminal.send(whole[start : start + size])

    thread = threading.Thread(target=write)
    thread.start()
    terminal.wait_for("pasted text 1")
    thread.join()


def test_a_large_paste_is_kept_as_a_file_and_the_person_is_told(at_terminal: Open):
    terminal = at_terminal()
    terminal.wait_for("new session")

    paste(terminal, "first line\n" + "a line of many\n" * 40_000 + "last line")
    terminal.send(" what is it?\r")
    text = terminal.wait_for("is too large for the model's", "You said:", IDLE)

    assert "first line" in text
    assert "/cache/input/" in text.replace("\n", "")


def test_a_paste_costs_what_its_length_costs(at_terminal: Open):
    """Four times as much takes about four times as long, not sixteen times."""
    took = []
    for megabytes in (3, 12):
        terminal = at_terminal()
        terminal.wait_for("new session")
        began = time.monotonic()
        paste(terminal, "x" * (megabytes << 20))
        took.append(time.monotonic() - began)

    assert took[1] < 9 * took[0] + 0.5


def test_a_paste_is_one_key_whatever_stands_beside_it_and_wherever_its_marks_are_parted():
    master, slave = pty.openpty()
    tty.setraw(slave)
    pressed = []
    with os.fdopen(slave) as terminal:
        typed = Typed(terminal)
        for piece in (b"a\x1b[200~", b"one\x1b[A\x1b[20", b"1~b\x1b[200~\x1b[201~\x1b"):
            os.write(master, piece)
            pressed.append([(key.key, key.data) for key in typed.read_keys()])
        pressed.append([key.key for key in typed.flush_keys()])
    os.close(master)

    assert pressed == [
        [("a", "a")],
        [],
        [(Keys.BracketedPaste, "one\x1b[A"), ("b", "b"), (Keys.BracketedPaste, "")],
        [LONE_ESCAPE],
    ]
