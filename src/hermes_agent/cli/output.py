"""Plain command output: results, remarks, aligned tables and JSON, without control codes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from hermes_agent.host.late import libraries

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
GAP = "  "
T = TypeVar("T")


def say(text: str = "") -> None:
    """Print a result line to standard output."""
    sys.stdout.write(f"{clean(text)}\n")


def announce(text: str) -> None:
    """Print a line and flush, for whoever waits for a server to start."""
    say(text)
    sys.stdout.flush()


def remark(text: str) -> None:
    """Print a line for the person to standard error."""
    sys.stderr.write(f"{clean(text)}\n")


def say_json(value: object) -> None:
    """Print the result as indented JSON."""
    plain = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(f"{plain.decode()}\n")


def show(found: T, text: Callable[[T], str], *, as_json: bool = False, nothing: str = "") -> None:
    """Print a result as text or JSON; `nothing` is remarked for an empty one."""
    if as_json:
        say_json(found)
    elif nothing and not found:
        remark(nothing)
    elif words := text(found):
        say(words)


def clean(text: str) -> str:
    """Replace control characters, so that a title or file name cannot move the cursor or reverse the line."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = (), right: Sequence[int] = ()) -> str:
    """Rows in aligned columns under their heads; `right` lists right-aligned columns."""
    cells = [[clean(cell).replace("\n", " ") for cell in row] for row in ([head, *rows] if head else rows)]
    if not cells:
        return ""
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(GAP.join(_cells(row, widths, right)).rstrip() for row in cells)


def width(text: str) -> int:
    """Terminal columns of a text: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    columns: int = libraries.wcwidth.wcswidth(text)
    return len(text) if columns < 0 else columns


def shortened(text: str, columns: int) -> str:
    """The text cut to `columns`, with an ellipsis."""
    if width(text) <= columns:
        return text
    while text and width(text) > columns - 1:
        text = text[:-1]
    return f"{text}…"


def _cells(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> list[str]:
    filled = []
    for column, cell in enumerate(row):
        space = " " * (widths[column] - width(cell))
        filled.append(f"{space}{cell}" if column in right else f"{cell}{space}")
    return filled
