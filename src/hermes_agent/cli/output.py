"""Plain command output: results, remarks, aligned tables, and under `--json` one JSON value, without control codes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import partial
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, TypeVar

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.late import libraries
from hermes_agent.host.paths import environment

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MARKED = re.compile(r"\*\*(.+?)\*\*")
BOLD = "\x1b[1;33m\\1\x1b[0m"
QUOTED = re.compile(r"`[^`\n]*`")
GAP = "  "
LAST = 8
"""Columns that the last cell of a row has at least."""
T = TypeVar("T")


@dataclass(slots=True)
class Answer:
    """What a command answers under `--json`: a value that it shows, or else the facts and lines of what it did."""

    facts: dict[str, object] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    is_shown: bool = False


ANSWER: ContextVar[Answer | None] = ContextVar("answer", default=None)
"""The answer of the command at work; None: its lines are printed as they are said."""


@contextmanager
def answering() -> Iterator[None]:
    """Context manager around one command, in which `start_json` may be called. Prints the answer at the end."""
    ANSWER.set(None)
    try:
        yield
        answer = ANSWER.get()
        if answer is not None and not answer.is_shown:
            say_json({**answer.facts, "text": "\n".join(answer.lines)})
    finally:
        ANSWER.set(None)


def start_json() -> None:
    """Give the answer of the command at work as JSON."""
    ANSWER.set(Answer())


def wants_json() -> bool:
    """Whether the answer is given as JSON."""
    return ANSWER.get() is not None


def prints_json() -> bool:
    """Whether JSON is wanted, which the caller then prints by itself."""
    if (answer := ANSWER.get()) is not None:
        answer.is_shown = True
    return answer is not None


def as_json(value: object) -> bool:
    """Give `value` as the whole answer if JSON is wanted. Returns whether it is."""
    if wants_json():
        say_json(value)
    return wants_json()


def has_controls(variables: Mapping[str, str]) -> bool:
    """Whether the person's terminal is one whose cursor moves."""
    return variables.get("TERM", "dumb") not in ("dumb", "unknown", "")


def say(text: str = "", *, has_marks: bool = False, **facts: object) -> None:
    """Print a result line to standard output, `has_marks`: with **marked words** in bold where a terminal has colours.
    Under `--json` the `facts` stand beside it."""
    if (answer := ANSWER.get()) is None:
        variables = environment() if has_marks and sys.stdout.isatty() else {"NO_COLOR": "1"}
        bold = has_controls(variables) and not variables.get("NO_COLOR")
        sys.stdout.write(f"{MARKED.sub(BOLD, clean(text)) if bold else clean(text)}\n")
    else:
        answer.facts |= facts
        answer.lines.append(clean(text))


def announce(text: str) -> None:
    """Print a line and flush, for whoever waits for a server to start."""
    sys.stdout.write(f"{clean(text)}\n")
    sys.stdout.flush()


def remark(text: str) -> None:
    """Print a line for the person to standard error, at a terminal wrapped between words."""
    lines = clean(text)
    sys.stderr.write(f"{wrapped(lines, get_terminal_size().columns) if sys.stderr.isatty() else lines}\n")


def wrapped(text: str, columns: int) -> str:
    """The text with its long lines broken at spaces, but not inside of `a command`, which a person may copy."""
    held = QUOTED.sub(lambda each: each[0].replace(" ", "\0"), text).split("\n")
    wrap = partial(fill, width=max(columns, LAST), break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap(line) if width(line) > columns else line for line in held).replace("\0", " ")


def say_json(value: object) -> None:
    """Print the result as indented JSON."""
    plain = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.write(f"{plain.decode()}\n")
    if (answer := ANSWER.get()) is not None:
        answer.is_shown = True


def show(
    found: T,
    text: Callable[[T], str] | str,
    *,
    nothing: str = "",
    notes: Iterable[str] = (),
    code: int = 0,
    has_marks: bool = False,
) -> int:
    """Print a result as text, or under `--json` as it is. Otherwise `nothing` is remarked for an empty one, and then
    the `notes`. Returns the exit code."""
    if not as_json(found):
        if nothing and not found:
            remark(nothing)
        elif words := text if isinstance(text, str) else text(found):
            say(words, has_marks=has_marks)
        for note in notes:
            remark(note)
    return code


def columns(right: Sequence[int] = (), /, **cells: str | Callable[[Any], object]) -> Callable[[Iterable[Any]], str]:
    """What prints records as a table: under each head the field of that name, or what a function makes of the record.
    In a head `_` stands for a space. Whole numbers have separators, and what is empty is a dash if it has a head."""
    heads = [name.replace("_", " ").strip() for name in cells]

    def text(found: Iterable[Any]) -> str:
        return table([[_cell(each, *pair) for pair in cells.items()] for each in found], heads, right)

    return text


def _cell(record: Any, head: str, cell: str | Callable[[Any], object]) -> str:  # noqa: ANN401  any record
    if not isinstance(cell, str):
        value = cell(record)
    else:
        value = record[cell] if isinstance(record, Mapping) else getattr(record, cell)
    if isinstance(value, int):
        return f"{value:,}"
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return text or "-" * bool(head.strip("_"))


def clean(text: str) -> str:
    """Replace control characters, so that a title or file name cannot move the cursor or reverse the line."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = (), right: Sequence[int] = ()) -> str:
    """Rows in aligned columns under their heads; `right` lists right-aligned columns. On a terminal that is too narrow
    each row is a few lines."""
    cells = [[clean(cell).replace("\n", " ") for cell in row] for row in ([head, *rows] if head else rows)]
    if not cells:
        return ""
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))]
    if head and sys.stdout.isatty() and sum(widths[:-1]) + len(GAP) * len(widths) + LAST > get_terminal_size().columns:
        return "\n".join(_lines(head, row) for row in cells[1:])
    return "\n".join(GAP.join(_cells(row, widths, right)).rstrip() for row in cells)


def _lines(head: Sequence[str], row: Sequence[str]) -> str:
    """A row below its first cell."""
    rest = (f"{GAP}{name.lower()}: {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell)
    return "\n".join((row[0], *(wrapped(line, get_terminal_size().columns) for line in rest)))


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
    text = text[: max(0, columns - 1)]
    while text and width(text) > columns - 1:
        text = text[:-1]
    return f"{text}…"


def _cells(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> list[str]:
    filled = []
    for column, cell in enumerate(row):
        space = " " * (widths[column] - width(cell))
        filled.append(f"{space}{cell}" if column in right else f"{cell}{space}")
    return filled
