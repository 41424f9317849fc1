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
MOST_LINES = 14


def question_lines(asked: Asked, others: int, columns: int) -> str:
    """The question with its choices, one per line; `others` counts the questions after it."""
    head, *rest = clean(asked.text).strip().split("\n")
    if len(rest) > MOST_LINES:
        rest = [*rest[:MOST_LINES], f"… {len(rest) - MOST_LINES} more lines"]
    first, *more = wrapped(head, columns - 2)
    lines = [f"{paint('?', BOLD, YELLOW)} {paint(first, BOLD)}", *(f"  {paint(line, BOLD)}" for line in more)]
    lines += [f"  {line}" for line in rest]
    letters = {choice: key for key, choice in reversed(keys_of(asked).items()) if key.isalpha()}
    for number, choice in enumerate(asked.choices, 1):
        key = letters.get(choice, str(number))
        meaning = MEANINGS.get(choice, "") if asked.purpose == "approval" else ""
        fits = meaning and width(choice) + width(meaning) + 9 <= columns
        lines.append(f"  {paint(f'[{key}]', CYAN)} {clean(choice)}{paint(f'  {meaning}', DIM) if fits else ''}")
    if not asked.choices or asked.purpose == "clarify":
        lines.append(paint("  or type an answer" if asked.choices else "  type the answer, then Enter", DIM))
    if others:
        lines.append(paint(f"  ({others} more after this one)", DIM))
    return "\n".join(lines)
