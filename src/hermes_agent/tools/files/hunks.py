"""Puts the hunks of a patch into a file: exactly, or by the mistakes of models where only one place can be meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes_agent.core.errors import ToolError
from hermes_agent.core.plain_characters import plainer
from hermes_agent.tools.files.patches import Hunk

# How lines may differ and still be meant, the strictest first.
_ALIKE: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("", lambda row: row),
    ("trailing spaces overlooked", str.rstrip),
    ("indentation overlooked", str.strip),
    ("spaces, quotes and dashes overlooked", lambda row: " ".join(plainer(row).split())),
)


def apply_hunks(content: str, hunks: Sequence[Hunk], shown: str) -> tuple[str, str]:
    """The content with all hunks in it, and what was overlooked to find them. Raises `ToolError`."""
    rows, cursor, shift, overlooked = content.split("\n"), 0, 0, ""
    for hunk in hunks:
        at, note = _place(rows, hunk, cursor, shift, shown)
        made = _made(rows, hunk, at)
        size = len(hunk.old)
        rows[at : at + size] = made
        cursor, shift = at + len(made), shift + len(made) - size
        overlooked = overlooked or note
    return "\n".join(rows), overlooked


def _place(rows: list[str], hunk: Hunk, cursor: int, shift: int, shown: str) -> tuple[int, str]:
    """Where the hunk's old lines begin. What follows an earlier hunk of the patch comes before what precedes it."""
    first = _after_anchor(rows, hunk, cursor, shown)
    old, told = hunk.old, hunk.line - 1 + shift if hunk.line else None
    if not old:
        if told is None and not hunk.anchor:
            return len(rows) - (rows[-1] == ""), ""
        return (first if told is None else min(len(rows), max(0, told + 1))), ""
    for note, alike in _ALIKE:
        wanted, have = [alike(row) for row in old], [alike(row) for row in rows]
        places = [at for at in range(first, len(rows) - len(old) + 1) if have[at : at + len(old)] == wanted]
        if told is not None and places:
            return min(places, key=lambda at: abs(at - told)), note
        if len(places) == 1 or (places and hunk.anchor):
            return places[0], note
        if places:
            lines = ", ".join(str(at + 1) for at in places[:5])
            raise ToolError(
                f"{shown}: these lines stand at {len(places)} places (lines {lines}): {_quoted(old)}.",
                hint="Give more lines around them, or the line before them after `@@`.",
            )
    raise ToolError(f"{shown}: these lines were not found: {_quoted(old)}.", hint="Read the file again.")


def _after_anchor(rows: list[str], hunk: Hunk, cursor: int, shown: str) -> int:
    if not hunk.anchor:
        return cursor
    for start in (cursor, 0):
        found = next((at for at in range(start, len(rows)) if rows[at].strip() == hunk.anchor), None)
        if found is not None:
            return found if hunk.old[:1] and hunk.old[0].strip() == hunk.anchor else found + 1
    raise ToolError(f"{shown}: the line `@@ {hunk.anchor[:120]}` was not found.", hint="Read the file again.")


def _made(rows: list[str], hunk: Hunk, at: int) -> list[str]:
    """The lines after the change: those that stay are the file's own, those that come are indented as they are."""
    made: list[str] = []
    position, (given, real) = at, _indents(rows, hunk, at)
    for sign, text in hunk.rows:
        if sign == "+":
            made.append(real + text.removeprefix(given) if text.strip() and text.startswith(given) else text)
            continue
        if text.strip():
            given, real = _indent(text), _indent(rows[position])
        if sign == " ":
            made.append(rows[position])
        position += 1
    return made


def _indents(rows: list[str], hunk: Hunk, at: int) -> tuple[str, str]:
    """The indentation of the first old line that has any text: as given, and as it is."""
    return next(((_indent(text), _indent(rows[at + n])) for n, text in enumerate(hunk.old) if text.strip()), ("", ""))


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip())]


def _quoted(old: list[str]) -> str:
    return f"`{' / '.join(row.strip() for row in old[:3])[:160]}`"
