"""Input line of the chat: completion of slash commands, skills and `@` paths, and the persistent input history."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from hermes_agent.cli.chat.chat_session import names
from hermes_agent.cli.output import shortened
from hermes_agent.host.files import PRIVATE_FILE

AT_PATH = re.compile(r"(?:^|\s)@(\S*)$")
MOST_PATHS = 200
LONGEST_META = 80
LONGEST_NAME = 30
"""Cells of a name in the menu: what it does needs the others."""


class ChatCompleter(Completer):
    """Completer of the chat's input line: slash commands, skills and `@` paths. `folder` gives the base of relative
    paths, `skills` the skills with descriptions."""

    def __init__(self, folder: Callable[[], str], skills: Callable[[], Sequence[tuple[str, str]]] = tuple) -> None:
        self._folder, self._skills = folder, skills

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library's shape
        before = document.text_before_cursor
        if re.fullmatch(r"/[\w-]*", before):
            return self._commands(before[1:])
        found = AT_PATH.search(before)
        return self._paths(found.group(1)) if found else ()

    def _commands(self, begun: str) -> Iterator[Completion]:
        """Commands, then skills; a command shadows a skill of the same name."""
        commands = names()
        for each in commands:
            if each.name.startswith(begun):
                yield Completion(
                    each.name, start_position=-len(begun), display=f"/{each.name}", display_meta=each.summary
                )
        taken = {each.name for each in commands}
        for name, does in self._skills():
            if name.startswith(begun) and name not in taken:
                taken.add(name)
                meta = " ".join(does.split())[:LONGEST_META]
                shown = shortened(f"/{name}", LONGEST_NAME)
                yield Completion(name, start_position=-len(begun), display=shown, display_meta=meta)

    def _paths(self, begun: str) -> Iterator[Completion]:
        head, slash, last = begun.rpartition("/")
        folder = Path(self._folder(), Path(f"{head}{slash}").expanduser())
        try:
            with os.scandir(folder) as entries:
                found = sorted((entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(last))
        except OSError:
            return
        shown = [each for each in found if last.startswith(".") or not each[0].startswith(".")]
        for name, is_folder in shown[:MOST_PATHS]:
            text = f"{name}/" if is_folder else name
            if name.isprintable():
                yield Completion(text, start_position=-len(last), display=text)


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
