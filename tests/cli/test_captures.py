"""What a person sees of the command line, at terminals of all kinds: help, lists, setup, the setup of a channel."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_agent.cli.output import width
from hermes_agent.cli.table import COMMANDS, GROUPS
from hermes_agent.providers.demo.script import Say
from hermes_agent.testing.faults import Hang
from hermes_agent.testing.model_servers import openai_model, serving_in_thread
from tests.cli.chat.terminal import Terminal
from tests.cli.shell import program

SIZES = [(80, 24), (40, 24), (120, 40)]
CODES = re.compile(r"\x1b[\[\]()][0-9;?]*[A-Za-z]?")
NARROW = 80
MOST_KEYS, A_MINUTE = 8, 60.0
DOWN, ENTER = "\x1b[B", "\r"
ASKED = "Which of the files in this folder should I read first, and why that one?"


@contextmanager
def shown(home: Path, *arguments: str, columns: int = 80, rows: int = 24, **variables: str) -> Iterator[Terminal]:
    folder = home / "project"
    folder.mkdir(parents=True, exist_ok=True)
    term = variables.pop("TERM", "xterm-256color")
    with Terminal(
        *arguments, home=home, folder=folder, columns=columns, rows=rows, term=term, variables=variables
    ) as terminal:
        yield terminal


def whole(home: Path, *arguments: str, columns: int = 80, rows: int = 24, **variables: str) -> tuple[str, bytes]:
    """What a command printed until its end, and every byte of it."""
    with shown(home, *arguments, columns=columns, rows=rows, **variables) as terminal:
        assert terminal.wait_for_end() == 0
        return terminal.text, terminal.raw


def too_wide(raw: bytes, columns: int) -> list[str]:
    """The lines that the terminal had to break, in the middle of a word or not."""
    return [line for line in CODES.sub("", raw.decode()).split("\r\n") if width(line.strip("\r")) > columns]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which three questions were asked."""
    home: Path = tmp_path_factory.mktemp("used") / "home"
    home.mkdir()
    for words in (ASKED, "run `echo hello`", "日本語のファイルを読んでください"):
        assert program("-m", "demo", "-z", words, home=home).code == 0
    return home


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_the_help_names_every_command_in_its_group_and_breaks_no_word(tmp_path: Path, columns: int, rows: int) -> None:
    text, raw = whole(tmp_path, "--help", columns=columns, rows=rows)

    assert too_wide(raw, columns) == []
    for title in GROUPS:
        assert f"\n{title}:\n" in text
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert text.endswith("hermes gateway setup telegram")
    assert b"\x1b" not in raw


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_sessions_are_told_by_their_first_words_at_every_width(used: Path, columns: int, rows: int) -> None:
    text, raw = whole(used, "sessions", "list", columns=columns, rows=rows)

    assert "日本語のファ" in text
    assert "run `echo hello`" in text
    assert ASKED[:17] in text
    assert too_wide(raw, columns) == []
    assert ("\n  messages: 3\n" in text) == (columns < NARROW)


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_found_words_are_bold_where_there_are_colours_and_marked_elsewhere(
    used: Path, variables: Mapping[str, str]
) -> None:
    text, raw = whole(used, "sessions", "search", "hello", **variables)

    assert (b"\x1b[1;33mhello\x1b[0m" in raw) == (not variables)
    assert ("**hello**" in text) == bool(variables)
    assert b"\x1b" not in raw or not variables


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_setup_begins_with_a_list_whose_help_can_be_read(tmp_path: Path, columns: int, rows: int) -> None:
    with shown(tmp_path, "setup", "--no-local", columns=columns, rows=rows) as terminal:
        terminal.wait_for("Which model should answer?", "demo/scripted")
        text = terminal.text
        terminal.send("\x1b")
        terminal.wait_for("Nothing was changed.")
        assert terminal.wait_for_end() == 130

    assert "type to narrow, Enter takes, Esc leaves" in text
    assert "> another vendor" in text
    assert "goes on where you left" in " ".join(terminal.text.split())


def test_a_newcomer_comes_to_a_first_answer_in_the_own_folder_with_eight_keys(tmp_path: Path) -> None:
    script = openai_model(lambda heard: Say(f"{heard.tools and 'One Python file.'}"), keys=(), models=("a", "b"))
    began = time.monotonic()
    with serving_in_thread(script) as server:
        address = server.url.removeprefix("http://").removesuffix("/v1")
        with shown(tmp_path, "setup", "--no-local") as terminal:
            keys = [("Which model", DOWN), ("> another server", ENTER), ("Address", f"{address}{ENTER}")]
            keys += [("Which of its models", ENTER), ("which folder", ENTER), ("no (n)?", f"t{ENTER}")]
            for words, pressed in keys:
                terminal.wait_for(words)
                terminal.send(pressed)
            terminal.wait_for("One Python file.", "`hermes -c` goes on from here")
            assert terminal.wait_for_end() == 0

    assert sum(len(pressed.removeprefix(address)) if pressed != DOWN else 1 for _, pressed in keys) <= MOST_KEYS
    assert time.monotonic() - began < A_MINUTE


def test_a_server_that_loads_its_model_can_be_left_waiting(tmp_path: Path) -> None:
    with serving_in_thread(openai_model([Hang()] * 3, keys=(), models=("m",))) as server:
        address = server.url.removeprefix("http://").removesuffix("/v1")
        with shown(tmp_path, "setup", "--no-local") as terminal:
            for words, pressed in (("Which model", f"server{ENTER}"), ("Address", f"{address}{ENTER}")):
                terminal.wait_for(words)
                terminal.send(pressed)
            terminal.wait_for("Ctrl-C ends the waiting")
            terminal.process.send_signal(signal.SIGINT)
            terminal.wait_for("had not answered yet", "Keep it all the same?")
            terminal.send("y\r")
            assert terminal.wait_for_end() == 5

    assert "Saved custom/m, but it did not answer." in " ".join(terminal.text.split())


def test_a_terminal_whose_cursor_does_not_move_gets_numbers(tmp_path: Path) -> None:
    with shown(tmp_path, "setup", "--no-local", TERM="dumb") as terminal:
        terminal.wait_for("1  another vendor", "Number or name")
        terminal.send("\x04")
        assert terminal.wait_for_end() == 130

    assert b"\x1b" not in terminal.raw


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_the_setup_of_a_channel_says_what_to_do_and_can_be_left(tmp_path: Path, columns: int, rows: int) -> None:
    arguments = ("gateway", "setup", "telegram")
    with shown(tmp_path, *arguments, columns=columns, rows=rows, HERMES_MODEL="demo/scripted") as terminal:
        terminal.wait_for("@BotFather", "(not shown")
        terminal.send("\x04")
        assert terminal.wait_for_end() == 130

    assert too_wide(terminal.raw, columns + 8) == []  # The question itself is left to the terminal.
    assert "`hermes gateway setup telegram` goes on" in " ".join(terminal.text.split())


def test_a_question_from_the_command_line_is_titled_by_its_first_words(used: Path) -> None:
    found = json.loads(program("sessions", "list", "--json", home=used).out)

    assert [each["title"] for each in found] == [
        "日本語のファイルを読んでください",
        "run `echo hello`",
        ASKED[:58] + "…",
    ]
    assert program("sessions", "show", ASKED[:20], home=used).code == 0


@pytest.mark.parametrize("command", ["config edit", "memory edit"])
def test_without_a_terminal_no_editor_hangs(tmp_path: Path, command: str) -> None:
    said = program(*command.split(), home=tmp_path)

    assert said.code == 1
    assert said.err == "There is no terminal for an editor. Set EDITOR to a program that changes the file.\n"
