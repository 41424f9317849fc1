"""Input line of the chat: completion of slash commands, skills and `@` files, and the persistent input history."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from hermes_agent.app.commands import ALIASES
from hermes_agent.cli.chat.attaching import FileIndex, at
from hermes_agent.cli.chat.chat_session import names
from hermes_agent.cli.fuzzy import best
from hermes_agent.cli.output import shortened
from hermes_agent.host.paths import PRIVATE_FILE

AT_PATH = re.compile(r"(?:^|\s)@(\S*)$")
MOST_PATHS, MOST_FUZZY = 200, 50
LONGEST_META = 80
LONGEST_NAME = 30
"""Cells of a name in the menu: what it does needs the others."""


class ChatCompleter(Completer):
    """Completer of the chat's input line: slash commands, skills, and behind an `@` files by any letters of their path.
    `folder` gives the base of relative paths, `skills` the skills with descriptions."""

    def __init__(self, folder: Callable[[], str], skills: Callable[[], Sequence[tuple[str, str]]] = tuple) -> None:
        self._folder, self._skills = folder, skills
        self._files = FileIndex(folder)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library's shape
        before = document.text_before_cursor
        if re.fullmatch(r"/[\w-]*", before):
            return self._commands(before[1:])
        found = AT_PATH.search(before)
        return self._paths(found.group(1)) if found else ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """As `get_completions`, the files from a thread."""
        if AT_PATH.search(document.text_before_cursor):
            found = await asyncio.to_thread(lambda: list(self.get_completions(document, complete_event)))
        else:
            found = list(self.get_completions(document, complete_event))
        for each in found:
            yield each

    def _commands(self, begun: str) -> Iterator[Completion]:
        """Commands, then skills, then other names of commands; a command shadows a skill of the same name."""
        entries = [(each.name, each.summary) for each in names()]
        taken = {name for name, _ in entries}
        entries += [(name, does) for name, does in self._skills() if name not in taken]
        if begun:
            summaries = dict(entries)
            others = {alias: f"{summaries[name]} (/{name})" for alias, name in ALIASES.items()}
            entries += [(alias, does) for alias, does in others.items() if alias not in summaries]
        for name, does in entries:
            if name.startswith(begun):
                meta = " ".join(does.split())[:LONGEST_META]
                shown = shortened(f"/{name}", LONGEST_NAME)
                yield Completion(name, start_position=-len(begun), display=shown, display_meta=meta)

    def _paths(self, begun: str) -> Iterator[Completion]:
        """Entries of the folder that is typed; then files anywhere below the working folder that fit the letters."""
        head, slash, last = begun.rpartition("/")
        offered = set()
        for name in self._entries(Path(self._folder(), Path(f"{head}{slash}").expanduser()), last):
            offered.add(f"{head}{slash}{name}")
            yield Completion(name, start_position=-len(last), display=name)
        if not begun or begun.startswith(("/", "~", ".")):
            return
        for name in best(begun, self._files.names(), str, MOST_FUZZY):
            if name not in offered and not any(part.startswith(".") for part in name.split("/")):
                yield Completion(at(name)[1:], start_position=-len(begun), display=name)

    def _entries(self, folder: Path, begun: str) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                found = sorted((entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(begun))
        except OSError:
            return []
        shown = [each for each in found if begun.startswith(".") or not each[0].startswith(".")]
        return [f"{name}/" if is_folder else name for name, is_folder in shown[:MOST_PATHS] if name.isprintable()]


MOST_READ = 512 * 1024
"""Bytes from the file's end that are read."""


class ChatHistory(History):
    """Input history of the chat in a file, one JSON string per message, newest last.

    A message that begins with a space is not saved; if the file is unusable, the history is kept in memory.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """The saved messages, newest first."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - MOST_READ))
                lines = file.read().split(b"\n")
        except OSError:
            return
        for line in reversed(lines):
            with suppress(ValueError):
                said = json.loads(line)
                if isinstance(said, str):
                    yield said

    def store_string(self, string: str) -> None:
        """Append a message to the file."""
        with suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(string).encode() + b"\n")

    def append_string(self, string: str) -> None:
        """Add a message, unless it begins with a space or repeats the last one."""
        if not string.startswith(" ") and string.strip() and self.get_strings()[-1:] != [string]:
            super().append_string(string)
