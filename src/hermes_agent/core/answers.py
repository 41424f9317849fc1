"""Answers in words to a run's open question: which keys and words mean which choice, the same on every surface."""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import ascii_lowercase

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Answered, Asked, Entry, RunEnded

YES, NO = ("y", "yes"), ("n", "no")
REASONED = re.compile(r"(?:deny|no)(?:[ \t\n]|[,:.;] )\s*", re.IGNORECASE)
"""Begins a refusal with a reason."""
TOO_SOON = 0.6
"""Seconds in which words do not decide about a call that was just asked about: they were meant for something else."""


def keys_of(asked: Asked) -> dict[str, str]:
    """Key -> choice: numbers from 1 to 9, and for an approval the first letters if they all differ.

    A free-text question gets no letters, as an answer could begin with one.
    """
    choices = asked.choices
    keys = {str(number): choice for number, choice in enumerate(choices[:9], 1)}
    letters = [choice[:1].lower() for choice in choices if asked.purpose == "approval"]
    if letters and len(set(letters)) == len(letters) and all(letter in ascii_lowercase for letter in letters):
        keys |= dict(zip(letters, choices, strict=True))
    for meant in (YES, NO):
        if asked.purpose == "approval" and (choice := _choice(asked, meant)):
            keys.setdefault(meant[0], choice)
    return keys


def answer_in(asked: Asked, line: str) -> str | None:
    """Parse a line as an answer: a choice by key, number or text, `y`, `yes`, `n` or `no`, a refusal with its reason as
    written, or free text if the question asks for information.

    None if it is no answer: an approval accepts only its choices.
    """
    said = line.strip()
    word = said.lower().rstrip(".!")
    if not said:
        return None
    if found := keys_of(asked).get(word) or next((each for each in asked.choices if each.lower() == word), ""):
        return found
    for meant in (YES, NO):
        if word in meant and (choice := _choice(asked, meant)):
            return choice
    if asked.purpose == "clarify" or not asked.choices:
        return said
    refusal = REASONED.match(said)
    return reason_in(asked, said[refusal.end() :]) if refusal else None


def reason_in(asked: Asked, words: str) -> str:
    """A refusal with these words as its reason, as they were written; none of the choices, whatever they are."""
    return words if words.strip() and answer_in(asked, words) is None else "deny"


def _choice(asked: Asked, meant: tuple[str, str]) -> str:
    """The choice that a plain yes or no stands for; empty where there is none."""
    choices = {each.lower(): each for each in asked.choices}
    if meant[1] in choices:
        return choices[meant[1]]
    stands_for = "once" if meant is YES else "deny"
    return choices.get(stands_for, "") if asked.purpose == "approval" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question that a run waits with, and when it was asked, in seconds since 1970."""

    asked: Asked
    at: float


def open_in(entries: Iterable[Entry]) -> list[OpenQuestion]:
    """The questions that are still open at the end of a log, oldest first."""
    waiting: dict[str, OpenQuestion] = {}
    for entry in entries:
        match entry.event:
            case Asked(question=question) as asked:
                waiting[question] = OpenQuestion(asked=asked, at=entry.at)
            case Answered(question=question):
                waiting.pop(question, None)
            case RunEnded():
                waiting.clear()
            case _:
                pass
    return list(waiting.values())
