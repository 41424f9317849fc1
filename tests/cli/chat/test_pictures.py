import base64
from pathlib import Path

import pytest

from hermes_agent.cli.chat.pictures import CHUNK, drawing, iterm, kitty, picture_lines
from hermes_agent.cli.chat.text import plain
from hermes_agent.core.messages import Image, Message, Role, Text, ToolResult
from tests.cli.chat.conftest import Open

DATA = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 5_000).decode()
PICTURE = Image(data=DATA)


@pytest.mark.parametrize(
    ("variables", "draws"),
    [
        ({"KITTY_WINDOW_ID": "1", "TERM": "xterm-kitty"}, kitty),
        ({"TERM": "xterm-ghostty"}, kitty),
        ({"TERM_PROGRAM": "iTerm.app", "TERM": "xterm-256color"}, iterm),
        ({"TERM_PROGRAM": "WezTerm"}, iterm),
        ({"LC_TERMINAL": "iTerm2", "TERM": "xterm-256color"}, iterm),
        ({"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x", "TERM": "tmux-256color"}, None),
        ({"TERM": "xterm-256color"}, None),
        ({}, None),
    ],
)
def test_a_terminal_that_can_draw_is_known_by_its_variables(variables: dict[str, str], draws: object):
    assert drawing(variables) is draws


def test_kitty_gets_a_png_in_pieces_and_nothing_else():
    drawn = kitty(PICTURE)

    pieces = drawn.split("\x1b\\")[:-1]
    assert len(pieces) == len(DATA) // CHUNK + 1
    assert pieces[0].startswith("\x1b_Ga=T,f=100,")
    assert [f"m={int(place < len(pieces) - 1)};" in piece for place, piece in enumerate(pieces)] == [True] * len(pieces)
    assert "".join(piece.partition(";")[2] for piece in pieces) == DATA
    assert kitty(Image(media_type="image/jpeg", data=DATA)) == ""


def test_a_picture_that_cannot_be_drawn_is_named():
    result = ToolResult(call_id="c", name="look", parts=(Text(text="here"), PICTURE, Image(url="https://x.org/p")))
    message = Message(role=Role.TOOL, parts=(result,))

    assert [plain(line) for line in picture_lines(message, None)] == ["  [picture, image/png, 5,010 bytes]"]
    assert picture_lines(message, iterm)[0].startswith("\x1b]1337;File=inline=1;")
    assert "… 2 more pictures" in picture_lines(Message(role=Role.USER, parts=(PICTURE,) * 6), None)[-1]


@pytest.mark.parametrize("data", ["abc\x07def", "not base64!", "A" * 8_000_004])
def test_nothing_but_whole_base64_is_written_into_a_sequence(data: str):
    message = Message(role=Role.USER, parts=(Image(data=data),))
    assert "[picture" in picture_lines(message, iterm)[0]


def test_a_picture_is_drawn_in_kitty_and_named_elsewhere(at_terminal: Open, project: Path):
    (project / "p.png").write_bytes(base64.b64decode(DATA))
    terminal = at_terminal(term="xterm-kitty")
    terminal.wait_for("new session")
    terminal.send("look @p.png\r")
    terminal.wait_for("+ picture", "idle")
    assert b"\x1b_Ga=T,f=100" in terminal.raw

    terminal = at_terminal()
    terminal.wait_for("new session")
    terminal.send("look @p.png\r")
    terminal.wait_for("> look @p.png\n  + picture", "idle")
    assert b"\x1b_G" not in terminal.raw
