"""Picker of the chat: below the input, what can be chosen for the word that is typed: commands, their verbs, what they
act on, and files behind an `@`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from prompt_toolkit.formatted_text import StyleAndTextTuples

from hermes_agent.app.commands import ALIASES
from hermes_agent.cli.chat.chat_session import Name, names
from hermes_agent.cli.picker_choices import Choice, Narrowed
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.tasks import spawn

OF_VERBS = (
    ("agents", "show log say stop", "agents"),
    ("approvals", "revoke", "approvals"),
    ("cron", "show pause resume run remove runs", "jobs"),
    ("goal", "show pause resume done clear check", "goals"),
    ("kanban", "show", "cards"),
    ("learn", "show diff undo approve reject", "lessons"),
    ("mcp", "show test login", "servers"),
    ("permissions", "revoke", "approvals"),
    ("rollback", "diff", "checkpoints"),
)
PICKERS: dict[str, str] = {
    "resume": "recent",
    "model": "models",
    "rollback": "checkpoints",
    "skills": "skills",
    "config": "settings",
    "unpin": "pins",
    **{f"{name} {verb}": source for name, verbs, source in OF_VERBS for verb in verbs.split()},
}
"""Command, or command and verb -> what can be chosen after it, as `choices` names it."""
AT_ONCE = ("model", "resume", "rollback", "skills", "reasoning")
"""Commands that open their list where nothing follows them."""
MENU = "/"
WORD, FILE = re.compile(r"/[\w-]*"), re.compile(r"(?<!\S)@(\S*)$")
LINE = re.compile(r"/([\w-]+) (?:([a-z]+) )?([^\n]*)")
VERB = re.compile(r"(?:^\[?|\|)([a-z]+)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What can be chosen here: the list `key`, narrowed by `query`; choosing replaces the text from `start`. `source`
    is empty for a list of words that may also be others: commands, verbs, files."""

    key: str
    query: str
    start: int = 0
    source: str = ""


def wanted_in(before: str) -> Wanted | None:
    """What the text before the cursor asks for; None for nothing."""
    if WORD.fullmatch(before):
        return Wanted(key=MENU, query=before)
    if found := LINE.fullmatch(before):
        name = ALIASES.get(found[1], found[1])
        if found[2] and (source := PICKERS.get(f"{name} {found[2]}")):
            return Wanted(key=f"{found[1]} {found[2]}", query=found[3], source=source)
        source, query = PICKERS.get(name, ""), before[len(found[1]) + 2 :]
        if (source and not (name == "config" and " " in query)) or (" " not in query and verbs(found[1])):
            return Wanted(key=found[1], query=query, source=source)
    if found := FILE.search(before):
        head, slash, last = found[1].rpartition("/")
        return Wanted(key=f"@{head}{slash}{'.' * last.startswith('.')}", query=found[1], start=found.start())
    return None


def verbs(command: str) -> list[Choice]:
    """The words that the usage of a command names as alternatives: `[list|show|undo]`. What is whole with it is sent at
    once: the first, which a command alone means too, and each where nothing may follow."""
    name = ALIASES.get(command, command)
    usage = next((each.arguments for each in names() if each.name == name), "")
    is_whole = re.fullmatch(r"\[[a-z|]+\]", usage) is not None
    return [
        Choice(name=verb, line=f"/{command} {verb} ", sends=is_whole or (place == 0 and usage.startswith("[")))
        for place, verb in enumerate(VERB.findall(usage) if "|" in usage else ())
    ]


def menu(skills: Sequence[tuple[str, str]]) -> list[Choice]:
    """Commands, then skills, then other names of commands; a command shadows a skill of the same name."""
    known = {each.name: each for each in names()}
    shown = [_entry(each, each.name, each.summary) for each in known.values()]
    shown += [
        Choice(name=f"/{name}", about=does, line=f"/{name} ", sends=False) for name, does in skills if name not in known
    ]
    return shown + [
        _entry(known[name], alias, f"{known[name].summary} (/{name})")
        for alias, name in ALIASES.items()
        if alias not in known
    ]


def _entry(command: Name, name: str, about: str) -> Choice:
    needs = command.arguments and not command.arguments.startswith("[")
    return Choice(name=f"/{name}", about=about, line=f"/{name} ", sends=not (needs or command.name in AT_ONCE))


class Picker:
    """State of the picker: follows the input, and holds the list that it asks for. `load` gets a list that takes a
    while, `skills` are the names that a slash may lead to, `changed` is called when a list arrives."""

    def __init__(
        self,
        load: Callable[[Wanted], Awaitable[Sequence[Choice]]],
        skills: Callable[[], Sequence[tuple[str, str]]],
        changed: Callable[[], None],
    ) -> None:
        self._load, self._skills, self._changed = load, skills, changed
        self._wanted: Wanted | None = None
        self._list = Narrowed(())
        self._closed = self._problem = ""
        self._loading: list[Callable[[], object]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the picker is shown."""
        wanted = self._wanted
        return wanted is not None and wanted.key != self._closed and bool(wanted.source or self._list.found)

    @property
    def chosen(self) -> Choice | None:
        """The marked choice; None if nothing fits."""
        return self._list.chosen if self.is_open else None

    @property
    def start(self) -> int:
        """Where the text begins that choosing replaces."""
        return self._wanted.start if self._wanted is not None else 0

    def opens(self, line: str) -> bool:
        """Whether a line is a command alone that opens its list."""
        name = line.strip().removeprefix("/")
        return line.startswith("/") and ALIASES.get(name, name) in AT_ONCE and not line.endswith(" ")

    def follow(self, before: str, *, opens: bool = True) -> None:
        """Follow the text before the cursor: open a list, narrow or close it. Without `opens` none is opened, as where
        an earlier line is fetched."""
        wanted = wanted_in(before)
        is_new = wanted is not None and (self._wanted is None or wanted.key != self._wanted.key)
        self._wanted = wanted if opens or not is_new else None
        if self._wanted is None:
            self._closed = ""
        elif is_new:
            self._begin(self._wanted)
        else:
            self._list.type(self._wanted.query)

    def move(self, by: int) -> None:
        """Move the mark."""
        self._list.move(by)

    def close(self) -> None:
        """Close until another list is asked for."""
        self._closed = self._wanted.key if self._wanted is not None else ""

    def when_loaded(self, act: Callable[[], object]) -> None:
        """Act now, or when the list has arrived that the input asks for."""
        if self._loading is None:
            act()
        else:
            self._loading.append(act)

    def rows(self, columns: int) -> StyleAndTextTuples:
        """The visible rows, each at most `columns` wide."""
        loading = "…" if self._loading is not None else "(nothing fits: Enter sends it as it is)"
        return self._list.rows(columns, self._problem or loading)

    def _begin(self, wanted: Wanted) -> None:
        self._closed = self._problem = ""
        self._loading = None
        if wanted.key == MENU:
            self._show(Narrowed(menu(self._skills()), by_name=True))
        elif not (wanted.source or wanted.key.startswith("@")):
            self._show(Narrowed(verbs(wanted.key), by_name=True))
        else:
            self._list, self._loading = Narrowed(()), []
            spawn(self._fill(wanted), name=f"choices of {wanted.key}")

    def _show(self, choices: Narrowed) -> None:
        self._list = choices
        if self._wanted is not None:
            choices.type(self._wanted.query)

    async def _fill(self, wanted: Wanted) -> None:
        problem, found = "(could not be read: `hermes logs` says why)", Narrowed(())
        try:
            found, problem = Narrowed(await self._load(wanted)), ""
        except HermesError as error:
            problem = str(error)
        finally:
            if self._wanted is not None and self._wanted.key == wanted.key:
                acts, self._loading, self._problem = self._loading or (), None, problem
                self._show(found)
                for act in acts:
                    act()
                self._changed()
