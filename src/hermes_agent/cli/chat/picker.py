"""Picker of the chat: below the input, what can be chosen after a slash command, narrowed as the person types."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from prompt_toolkit.formatted_text import StyleAndTextTuples

from hermes_agent.app.commands import ALIASES
from hermes_agent.cli.chat.chat_session import ChatSession
from hermes_agent.cli.chat.text import one_line
from hermes_agent.cli.fuzzy import best
from hermes_agent.cli.output import width
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.host.tasks import spawn

PICKERS: dict[str, str] = {
    "resume": "hermes_agent.cli.chat.choices:sessions",
    "model": "hermes_agent.cli.chat.choices:models",
    "rollback": "hermes_agent.cli.chat.choices:checkpoints",
    "skills": "hermes_agent.cli.chat.choices:skills",
    "reasoning": "hermes_agent.cli.chat.choices:levels",
    "help": "hermes_agent.cli.chat.choices:commands",
    "config": "hermes_agent.cli.chat.choices:settings",
}
"""Command -> what gives that which can be chosen after it."""
SHOWN = 8
MOST_FOUND = 500
LINE = re.compile(r"/([\w-]+) ([^\n]*)")
VERBS = {"rollback": re.compile(r"diff\b"), "config": re.compile(r"\S+\s"), "permissions": re.compile(r".")}
"""What follows a command where no picker opens, as it is another use of the command."""
AT_ONCE = ("model", "resume", "rollback", "skills", "reasoning")
"""Commands that open their picker where nothing follows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """An entry of a picker: the input line that choosing it makes, what is shown, and whether the line is sent."""

    line: str
    label: str
    about: str = ""
    sends: bool = True


async def picks_for(chat: ChatSession, command: str) -> list[Pick]:
    """What can be chosen after that command; its lines use the name that was typed. Raises `HermesError`."""
    name = ALIASES.get(command, command)
    found: list[Pick] = await late(PICKERS[name])(chat)
    return [replace(each, line=each.line.replace(f"/{name} ", f"/{command} ", 1)) for each in found]


class Picker:
    """State of the picker: follows the input line, and holds the choices of its command. `changed` is called when
    they arrive."""

    def __init__(self, load: Callable[[str], Awaitable[Sequence[Pick]]], changed: Callable[[], None]) -> None:
        self._load, self._changed = load, changed
        self._command = self._query = ""
        self._picks: Sequence[Pick] | None = None
        self._found: list[Pick] = []
        self._marked = 0
        self._closed = ""
        self._problem = ""

    @property
    def is_open(self) -> bool:
        """Whether the picker is shown."""
        return bool(self._command) and self._closed != self._command

    @property
    def chosen(self) -> Pick | None:
        """The marked choice; None if nothing fits."""
        return self._found[self._marked] if self._found else None

    def opens(self, line: str) -> bool:
        """Whether a line is a command alone that opens its picker."""
        name = line.strip().removeprefix("/")
        return line.startswith("/") and ALIASES.get(name, name) in AT_ONCE and not line.endswith(" ")

    def follow(self, line: str) -> None:
        """Follow the input line: open, narrow or close."""
        found = LINE.fullmatch(line)
        command = found[1] if found else ""
        name, query = ALIASES.get(command, command), found[2] if found else ""
        if name not in PICKERS or ((other := VERBS.get(name)) and other.match(query)):
            command = ""
        if command != self._command:
            self._command, self._picks, self._closed, self._problem = command, None, "", ""
            if command:
                spawn(self._fill(command), name=f"choices of /{command}")
        self._query, self._marked = query, 0
        self._narrow()

    def move(self, by: int) -> None:
        """Move the mark."""
        self._marked = max(0, min(len(self._found) - 1, self._marked + by))

    def close(self) -> None:
        """Close until another command is typed."""
        self._closed = self._command

    def rows(self, columns: int) -> StyleAndTextTuples:
        """The visible rows, each at most `columns` wide; the marked one is always visible."""
        if self._picks is None or self._problem or not self._found:
            words = self._problem or ("…" if self._picks is None else "(nothing fits: Enter sends it as it is)")
            return [("class:status", f" {one_line(words, columns - 1)}")]
        first = max(0, min(self._marked - SHOWN // 2, len(self._found) - SHOWN))
        part = self._found[first : first + SHOWN]
        room = max(8, min(max(width(each.label) for each in part), columns * 2 // 3 if columns >= 36 else columns - 3))
        rows: StyleAndTextTuples = []
        for place, each in enumerate(part, first):
            label = one_line(each.label, room)
            about = one_line(each.about, max(0, columns - room - 5)) if columns - room > 9 else ""
            marked = place == self._marked
            gap = " " * (room - width(label) + 2) if about else ""
            rows += [("reverse" if marked else "", f"{'>' if marked else ' '} {label}"), ("class:status", gap + about)]
            rows.append(("", "\n"))
        rows[-1] = ("class:status", f"\n  {len(self._found):,} fit" if len(self._found) > SHOWN else "")
        return rows

    async def _fill(self, command: str) -> None:
        try:
            picks, problem = await self._load(command), ""
        except HermesError as error:
            picks, problem = (), str(error)
        if command == self._command:
            self._picks, self._problem = picks, problem
            await asyncio.sleep(0)
            self._narrow()
            self._changed()

    def _narrow(self) -> None:
        self._found = best(self._query, self._picks or (), lambda each: f"{each.label} {each.about}", MOST_FOUND)
