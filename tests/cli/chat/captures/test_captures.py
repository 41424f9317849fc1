"""Whole screens of the chat as a person sees them, on terminals of several sizes and kinds."""

import re
from pathlib import Path

import pytest
from wcwidth import wcswidth

from tests.cli.chat.conftest import Open
from tests.cli.chat.terminal import Terminal

CAPTURES = Path(__file__).parent
IDLE = " idle ·"
CHANGING = {
    r"20\d{6}_\d{6}_[0-9a-f]{6}": "SESSION",
    r"\d+\.\d s|\d+ s\b": "N s",
    r"[•⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] (approve: .*?)(?: N s)?\n": r"• \1\n",
    r"in /\S.*": "in PROJECT",
}
PALETTE = {*range(10), *range(22, 30), *range(30, 38), 39, *range(40, 48), 49, *range(90, 98)}
"""Codes that leave it to the terminal what a colour is, so that they fit its ground."""


def frames(terminal: Terminal) -> list[str]:
    """A tour: a reply in Markdown, the menu, a list, a question, a command that fails, a plan to leave."""
    terminal.wait_for("Hermes", "idle")
    terminal.send("tour\r")
    seen = [terminal.wait_for("The end of it.", IDLE)]
    terminal.send("/re")
    seen.append(terminal.wait_for("> /resume", "fit"))
    terminal.send("\x15/reasoning\r")
    seen.append(terminal.wait_for("> none", "  off"))
    terminal.send("\x1b")
    terminal.wait_until(lambda: "> none" not in terminal.text, "no list")
    terminal.send("\x15ask me\r")
    seen.append(terminal.wait_for("> ask me\n\n", "approve: rm -r build", "[d] deny", "waits for you"))
    terminal.send("no see ./Makefile\r")
    terminal.wait_for("That is what I found.", IDLE)
    terminal.send("!seq 1 40; exit 3\r")
    seen.append(terminal.wait_for("exit 3\n", "  40\n\n>", IDLE))
    return [_part(each) for each in seen]


def _part(text: str) -> str:
    """What is on the screen from the first message on, without what changes."""
    shown = text[text.index("> tour") :]
    for pattern, word in CHANGING.items():
        shown = re.sub(pattern, word, shown)
    return shown


def tour(at_terminal: Open, *, columns: int, rows: int, **options: object) -> tuple[str, Terminal]:
    terminal = at_terminal(columns=columns, rows=rows, program=("-m", "tests.cli.chat.asking"), **options)
    seen = frames(terminal)
    assert all(wcswidth(line) <= columns for frame in seen for line in frame.split("\n"))
    ends = [frame[frame.rindex("\n> ") :] for frame in seen[1:3]]
    return "\n=====\n".join(
        [seen[0], *ends, seen[3][seen[3].rindex("> ask") :], seen[4][seen[4].rindex("> ask") :]]
    ), terminal


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 24), (120, 40)])
def test_the_screen_is_as_it_was_looked_at(at_terminal: Open, columns: int, rows: int):
    """Delete a file to take it anew; then look at it."""
    shown, terminal = tour(at_terminal, columns=columns, rows=rows)

    kept = CAPTURES / f"{columns}x{rows}.txt"
    if not kept.exists():
        kept.write_text(f"{shown}\n")
        pytest.fail(f"{kept} was not there, and is as the screen is now.")
    assert shown == kept.read_text().removesuffix("\n")
    codes = {int(code) for found in re.findall(rb"\x1b\[([0-9;]+)m", terminal.raw) for code in found.split(b";")}
    assert codes <= PALETTE


@pytest.mark.parametrize(
    "variables",
    [
        {"NO_COLOR": "1"},
        {"SSH_TTY": "/dev/pts/1", "SSH_CONNECTION": "::1 1 ::1 22", "TMUX": "/tmp/tmux-0/default,1,0"},
        {"COLORFGBG": "0;15", "COLORTERM": "truecolor"},
    ],
    ids=["no_color", "ssh_and_tmux", "light"],
)
def test_the_words_are_the_same_everywhere(at_terminal: Open, variables: dict[str, str]):
    term = "tmux-256color" if "TMUX" in variables else "xterm-256color"

    shown, terminal = tour(at_terminal, columns=80, rows=24, variables=variables, term=term)

    assert shown == (CAPTURES / "80x24.txt").read_text().removesuffix("\n")
    if "NO_COLOR" in variables:
        assert not re.search(rb"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7])(?:;\d+)*m", terminal.raw)
