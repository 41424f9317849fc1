"""Open questions of a run in the chat: renders them, and parses a key or line as the answer."""

from __future__ import annotations

from string import ascii_lowercase

from hermes_agent.cli.chat.text import BOLD, CYAN, DIM, YELLOW, clean, paint, wrapped
from hermes_agent.cli.output import width
from hermes_agent.core.events import Asked

MEANINGS = {
    "once": "this call only",
    "session": "this exact call, until the session ends",
    "always": "this exact call, from now on",
    "rule": "what the rule says, from now on",
    "deny": "do not run it (`deny WHY` tells the model why)",
}
MOST_LINES = 14


def keys_of(asked: Asked) -> dict[str, str]:
    """Key -> choice: numbers from 1 to 9, and for an approval the first letters if they all differ.

    A free-text question gets no letters, as an answer could begin with one.
    """
    choices = asked.choices
    keys = {str(number): choice for number, choice in enumerate(choices[:9], 1)}
    letters = [choice[:1].lower() for choice in choices if asked.purpose == "approval"]
    if letters and len(set(letters)) == len(letters) and all(letter in ascii_lowercase for letter in letters):
        keys |= dict(zip(letters, choices, strict=True))
    return keys


def answer_of(asked: Asked, line: str) -> str | None:
    """Parse a line as an answer: a choice by key or text, or free text if the question asks for information.

    None if it is no answer: an approval accepts only its choices.
    """
    said = line.strip()
    if not said:
        return None
    key = keys_of(asked).get(said.lower())
    if key is not None:
        return key
    for choice in asked.choices:
        if choice.lower() == said.lower():
            return choice
    if asked.purpose == "clarify" or not asked.choices:
        return said
    refusal, _, why = said.partition(" ")
    return why.strip() or None if refusal.lower() in ("deny", "no") else None


def question_lines(asked: Asked, others: int, columns: int) -> str:
    """The question with its choices, one per line; `others` counts the questions after it."""
    head, *rest = clean(asked.text).strip().split("\n")
    if len(rest) > MOST_LINES:
        rest = [*rest[:MOST_LINES], f"… {len(rest) - MOST_LINES} more lines"]
    first, *more = wrapped(head, columns - 2)
    lines = [f"{paint('?', BOLD, YELLOW)} {paint(first, BOLD)}", *(f"  {paint(line, BOLD)}" for line in more)]
    lines += [f"  {line}" for line in rest]
    letters = {choice: key for key, choice in keys_of(asked).items() if key.isalpha()}
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
