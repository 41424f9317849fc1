"""Choosing one of many in a terminal: the list shrinks while a person types; elsewhere it is numbered."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import field

import click

from hermes_agent.cli.output import clean, remark, table
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.late import late

SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the list: `name` is what is chosen, `about` stands beside it."""

    name: str
    about: str = ""


@dataclass(slots=True)
class Narrowed:
    """The list as far as it fits what was typed, with the one that is marked."""

    choices: Sequence[Choice]
    typed: str = ""
    marked: int = 0
    found: list[Choice] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.type(self.typed)

    def type(self, text: str) -> None:
        """Keep what fits the text; the mark goes back to the first."""
        self.typed, self.marked = text, 0
        self.found = matching(self.choices, text)

    def move(self, by: int) -> None:
        """Move the mark; it stays in the list."""
        self.marked = max(0, min(len(self.found) - 1, self.marked + by))

    @property
    def chosen(self) -> Choice | None:
        """The marked one; None where nothing fits."""
        return self.found[self.marked] if self.found else None

    def lines(self) -> list[tuple[bool, str]]:
        """What a screen shows: whether it is marked, and the line; the mark is always in sight."""
        first = max(0, min(self.marked - SHOWN // 2, len(self.found) - SHOWN))
        part = self.found[first : first + SHOWN]
        rows = table([(each.name, each.about) for each in part]).split("\n") if part else ["(nothing fits)"]
        return [(bool(part) and first + place == self.marked, row) for place, row in enumerate(rows)]


def matching(choices: Sequence[Choice], text: str) -> list[Choice]:
    """The choices whose name or description holds every word of the text, those with it at the front first."""
    words = text.lower().split()
    fits = [each for each in choices if all(word in f"{each.name} {each.about}".lower() for word in words)]
    return sorted(fits, key=lambda each: not each.name.lower().startswith(text.lower().strip()))


def pick(title: str, choices: Sequence[Choice]) -> Choice | None:
    """The one that the person chooses; None where they leave. Without a terminal a number is read."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        chosen: Choice | None = late("hermes_agent.cli.picker:run")(title, Narrowed(choices))
        return chosen
    return by_number(title, choices)


def by_number(title: str, choices: Sequence[Choice]) -> Choice | None:
    """The one whose number, or whole name, is typed; None for an empty line."""
    remark(title)
    remark(table([(f"{number}", clean(each.name), each.about) for number, each in enumerate(choices, 1)], right=(0,)))
    names = {each.name: each for each in choices}
    while True:
        said = click.prompt("Number or name (empty: none)", default="", show_default=False, err=True).strip()
        if not said:
            return None
        if said in names:
            return names[said]
        if said.isdecimal() and 1 <= int(said) <= len(choices):
            return choices[int(said) - 1]
        remark(f"There is no `{said}` in the list.")
