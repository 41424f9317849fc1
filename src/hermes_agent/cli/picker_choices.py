"""Questions at the terminal: the list that narrows while a person types, a choice by number, and secrets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes_agent.cli.output import clean, has_controls, remark, shortened, table, width
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.host.paths import environment

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples

SHOWN = 8
NOTHING = "(nothing fits)"
BOUNDARIES = "/._- :"
FAR = 1_000.0
"""The score of a match whose letters are scattered, from which on those with more gaps are worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An entry of a list to choose from: `name` is shown and is the value, `about` its description. In the chat `line`
    is what choosing it writes into the input, and `sends` whether that is sent at once."""

    name: str
    about: str = ""
    line: str = ""
    sends: bool = True


@dataclass(slots=True)
class Narrowed:
    """State of a list to choose from: the choices that match the typed text, and the marked one. With `by_name` only
    names match that hold the text in one piece, those that begin with it first."""

    choices: Sequence[Choice]
    by_name: bool = False
    marked: int = 0
    found: list[Choice] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._texts = [f"{each.name} {each.about}".lower() for each in self.choices]
        self.type("")

    def type(self, text: str) -> None:
        """Filter by the text and mark the first match."""
        self.marked = 0
        if self.by_name:
            held = [each for each in self.choices if text in each.name]
            self.found = sorted(held, key=lambda each: (each.name != text, not each.name.startswith(text)))
        else:
            self.found = [self.choices[place] for place in best(text, self._texts)]

    def move(self, by: int) -> None:
        """Move the mark within the list."""
        self.marked = max(0, min(len(self.found) - 1, self.marked + by))

    @property
    def chosen(self) -> Choice | None:
        """The marked choice; None if nothing matches."""
        return self.found[self.marked] if self.found else None

    def rows(self, columns: int, nothing: str = NOTHING) -> StyleAndTextTuples:
        """The visible rows as styles and texts, each row at most `columns` wide; the marked one is always visible."""
        if not self.found:
            return [("class:status", f" {_one_line(nothing, columns - 1)}")]
        first = max(0, min(self.marked - SHOWN // 2, len(self.found) - SHOWN))
        part = self.found[first : first + SHOWN]
        most = columns * 2 // 3 if columns >= 36 and any(each.about for each in part) else columns - 3
        room = max(8, min(max(width(each.name) for each in part), most))
        rows: StyleAndTextTuples = []
        for place, each in enumerate(part, first):
            name, left = _one_line(each.name, room), columns - room - 5
            about = _one_line(each.about, left) if left > 4 else ""
            gap = " " * (room - width(name) + 2) if about else ""
            is_marked = place == self.marked
            rows += [("reverse" if is_marked else "", f"{'>' if is_marked else ' '} {name}")]
            rows += [("class:status", gap + about), ("", "\n")]
        rows[-1] = ("class:status", f"\n  {len(self.found):,} fit" if len(self.found) > SHOWN else "")
        return rows


def _one_line(text: str, columns: int) -> str:
    return shortened(" ".join(clean(text[: columns * 8]).split()), max(0, columns))


def best(query: str, texts: Sequence[str]) -> list[int]:
    """The places of the texts that match every word of the query, best first; all in their order for an empty one.
    The texts are in small letters."""
    words = query.lower().split()
    if not words:
        return list(range(len(texts)))
    scored = []
    for place, text in enumerate(texts):
        distances = [_distance(word, text) for word in words]
        if None not in distances:
            scored.append((sum(filter(None, distances)) + len(text) / 1_000, place))
    return [place for _, place in sorted(scored)]


def _distance(word: str, text: str) -> float | None:
    place = text.rfind(word)
    if place >= 0:  # In one piece: best at the beginning of the last part, then of any part, then anywhere.
        begins = place == 0 or text[place - 1] in BOUNDARIES
        is_last = "/" not in text[place:]
        return (0.0 if begins else 50.0) + (0.0 if is_last else 20.0)
    at, gaps = -1, 0
    for letter in word:
        next_at = text.find(letter, at + 1)
        if next_at < 0:
            return None
        gaps += at >= 0 and next_at > at + 1 and text[next_at - 1] not in BOUNDARIES
        at = next_at
    return FAR + gaps * 10 if gaps <= len(word) // 2 else None


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
