"""What chat platforms cannot show, made readable: tables as aligned text, formulas in plain signs."""

from __future__ import annotations

import re
import unicodedata

from hermes_agent.gateway.text.fences import read
from hermes_agent.gateway.text.formulas import plain_formula

ROW = re.compile(r"^\s*(?=.*\|)\|?(.+?)\|?\s*$")
RULE = re.compile(r"^\s*(?=.*\|)\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
DISPLAY = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|(\\begin\{(?:equation|align|gather|multline|eqnarray)\*?\}.+?\\end\{\w+\*?\})",
    re.DOTALL,
)
INLINE = re.compile(r"\\\((.+?)\\\)|(?<![\w$\\])\$(?=[^\s$])(?=[^$\n]*[\\^_{])([^$\n]+)(?<=[^\s$\\])\$(?![\w$])")
CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
WIDEST = 60
"""Columns of an aligned table that a phone still shows; a wider one becomes a list."""


def readable(text: str) -> str:
    """Markdown without tables and formulas; code is left as it is."""
    lines: list[str] = []
    prose: list[str] = []
    for piece in read(text):
        if isinstance(piece, str):
            prose.append(piece)
        else:
            lines += [*_prose(prose), piece.written]
            prose = []
    return "\n".join([*lines, *_prose(prose)])


def _prose(lines: list[str]) -> list[str]:
    done: list[str] = []
    plain: list[str] = []
    at = 0
    while at < len(lines):
        end = _end_of_table(lines, at)
        if end == at:
            plain.append(lines[at])
            at += 1
        else:
            rows = [_cells(line) for line in (lines[at], *lines[at + 2 : end])]
            done += [*_without_formulas(plain), *_table(rows)]
            plain, at = [], end
    return [*done, *_without_formulas(plain)]


def _end_of_table(lines: list[str], at: int) -> int:
    """Behind the table that begins there; `at` where none does."""
    if at + 1 >= len(lines) or not (ROW.match(lines[at]) and RULE.match(lines[at + 1])):
        return at
    end = at + 2
    while end < len(lines) and ROW.match(lines[end]):
        end += 1
    return end


def _without_formulas(lines: list[str]) -> list[str]:
    return _formulas("\n".join(lines)).split("\n") if lines else []


def _cells(line: str) -> list[str]:
    found = ROW.match(line)
    inside = found[1] if found else line
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]


def _table(rows: list[list[str]]) -> list[str]:
    columns = max(len(row) for row in rows)
    rows = [[*map(_bare, row), *[""] * (columns - len(row))] for row in rows]
    widths = [max(width(row[column]) for row in rows) for column in range(columns)]
    if sum(widths) + 2 * (columns - 1) > WIDEST:
        return _list(rows)
    drawn = ["  ".join(cell + " " * (widths[n] - width(cell)) for n, cell in enumerate(row)).rstrip() for row in rows]
    return ["```", drawn[0], "  ".join("─" * each for each in widths), *drawn[1:], "```"]


def _list(rows: list[list[str]]) -> list[str]:
    head, *body = rows
    lines = []
    for row in body:
        lines.append(f"• **{row[0] or '-'}**")
        lines += [f"  {name}: {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell]
    return lines or [" · ".join(head)]


def _bare(cell: str) -> str:
    """A cell without the marks that a code block would show."""
    return re.sub(r"\*\*|`|__", "", re.sub(r"\[([^\]]*)\]\(([^)]*)\)", r"\1 (\2)", _formulas(cell)))


def width(text: str) -> int:
    """Columns that a text takes in a fixed-width font."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _formulas(text: str) -> str:
    if "$" not in text and "\\" not in text:
        return text
    kept: list[str] = []

    def hide(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    text = CODE.sub(hide, text)
    text = DISPLAY.sub(lambda found: f"`{plain_formula(found[1] or found[2] or found[3])}`", text)
    text = INLINE.sub(lambda found: f"`{plain_formula(found[1] or found[2])}`", text)
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)
