"""Renders the open questions of a run in the chat."""

from __future__ import annotations

from hermes_agent.cli.chat.text import BOLD, CYAN, DIM, YELLOW, clean, paint, wrapped
from hermes_agent.cli.output import width
from hermes_agent.core.answers import keys_of
from hermes_agent.core.events import Asked

MEANINGS = {
    "once": "this call only",
    "session": "this exact call, until the session ends",
    "always": "this exact call, from now on",
    "rule": "what the rule says, from now on",
    "deny": "do not run it (`no WHY` tells the model why)",
}
MOST_LINES, KEPT_ROWS = 14, 4
"""Lines of what a question is about, and rows of the screen that are for the input and the status line."""


def question_lines(asked: Asked, others: int, columns: int, rows: int = 24) -> str:
    """The question with its choices, one per line; `others` counts the questions after it. On a terminal of few `rows`
    the choices and what they are about come first, and the words before are cut."""
    head, *rest = clean(asked.text).strip().split("\n")
    if len(rest) > MOST_LINES:
        rest = [*rest[:MOST_LINES], f"… {len(rest) - MOST_LINES} more lines"]
    below = _choices(asked, columns)
    if others:
        below.append(paint(f"  ({others} more after this one)", DIM))
    room = max(3, rows - KEPT_ROWS - len(below))
    first, *more = _cut(
        wrapped(head, columns - 2), max(1, room - sum(_height(line, columns) for line in rest)), columns
    )
    lines = [f"{paint('?', BOLD, YELLOW)} {paint(first, BOLD)}", *(f"  {paint(line, BOLD)}" for line in more)]
    return "\n".join([*lines, *(f"  {line}" for line in _cut(rest, room - len(lines), columns)), *below])


def _choices(asked: Asked, columns: int) -> list[str]:
    letters = {choice: key for key, choice in reversed(keys_of(asked).items()) if key.isalpha()}
    lines = []
    for number, choice in enumerate(asked.choices, 1):
        key = letters.get(choice, str(number))
        meaning = MEANINGS.get(choice, "") if asked.purpose == "approval" else ""
        fits = meaning and width(choice) + width(meaning) + 9 <= columns
        lines.append(f"  {paint(f'[{key}]', CYAN)} {clean(choice)}{paint(f'  {meaning}', DIM) if fits else ''}")
    if not asked.choices or asked.purpose == "clarify":
        lines.append(paint("  or type an answer" if asked.choices else "  type the answer, then Enter", DIM))
    return lines


def _cut(lines: list[str], room: int, columns: int) -> list[str]:
    """As many of the lines as fit into that many rows, and a mark where some are left out."""
    shown: list[str] = []
    for line in lines:
        room -= _height(line, columns)
        if room < 0 and shown:
            return [*shown[:-1], f"{shown[-1][: columns - 4]}…"]
        shown.append(line)
    return shown


def _height(line: str, columns: int) -> int:
    return 1 + max(0, width(line) + 1) // columns
