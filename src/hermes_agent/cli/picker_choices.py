"""Questions at the terminal: a choice from a list, by a full-screen picker or a number, and secrets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

import click

from hermes_agent.cli.output import clean, has_controls, remark, table
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.host.paths import environment

SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An entry of a list to choose from: `name` is the value, `about` its description."""

    name: str
    about: str = ""


@dataclass(slots=True)
class Narrowed:
    """State of the full-screen picker: the choices that match the typed text, and the selected one."""

    choices: Sequence[Choice]
    typed: str = ""
    marked: int = 0
    found: list[Choice] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.type(self.typed)

    def type(self, text: str) -> None:
        """Filter by the text and select the first match."""
        self.typed, self.marked = text, 0
        self.found = matching(self.choices, text)

    def move(self, by: int) -> None:
        """Move the selection within the list."""
        self.marked = max(0, min(len(self.found) - 1, self.marked + by))

    @property
    def chosen(self) -> Choice | None:
        """The selected choice; None if nothing matches."""
        return self.found[self.marked] if self.found else None

    def lines(self) -> list[tuple[bool, str]]:
        """The visible rows, each with whether it is selected; the selection is always visible."""
        first = max(0, min(self.marked - SHOWN // 2, len(self.found) - SHOWN))
        part = self.found[first : first + SHOWN]
        rows = table([(each.name, each.about) for each in part]).split("\n") if part else ["(nothing fits)"]
        return [(bool(part) and first + place == self.marked, row) for place, row in enumerate(rows)]


def matching(choices: Sequence[Choice], text: str) -> list[Choice]:
    """Choices whose name or description contains every word, prefix matches first."""
    words = text.lower().split()
    fits = [each for each in choices if all(word in f"{each.name} {each.about}".lower() for word in words)]
    return sorted(fits, key=lambda each: not each.name.lower().startswith(text.lower().strip()))


def pick(title: str, choices: Sequence[Choice]) -> Choice | None:
    """Let the person choose; None if cancelled. Without a terminal whose cursor moves a number is read."""
    if sys.stdin.isatty() and sys.stderr.isatty() and has_controls(environment()):
        chosen: Choice | None = late("hermes_agent.cli.picker:run")(title, Narrowed(choices))
        return chosen
    return by_number(title, choices)


def ask_secret(question: str, *, empty: bool = False) -> str:
    """Prompt for a secret that is not shown; a line of standard input where that is no terminal. With `empty` an empty
    answer is one too."""
    if not sys.stdin.isatty():
        remark(question)
        line = sys.stdin.readline()
        if not line.strip() and not (line and empty):
            raise click.Abort
        return line.strip()
    default = "" if empty else None
    return str(click.prompt(question, default=default, show_default=False, hide_input=True, err=True)).strip()


def edit(text: str | None = None, file: Path | None = None) -> str | None:
    """Have the person edit a text or a file in their editor; the text, None if it is as it was. Raises `HermesError`
    where there is neither a terminal nor a program of theirs that would do it."""
    if not sys.stdin.isatty() and not any(environment().get(name) for name in ("VISUAL", "EDITOR")):
        raise HermesError("There is no terminal for an editor. Set EDITOR to a program that changes the file.")
    return click.edit(filename=str(file)) if file else click.edit(text or "", extension=".md")


def by_number(title: str, choices: Sequence[Choice]) -> Choice | None:
    """Prompt for a number or whole name; None for an empty line."""
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
