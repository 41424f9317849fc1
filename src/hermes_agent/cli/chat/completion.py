"""Completion of slash commands and skills at the start of the input, and of paths behind an `@`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes_agent.cli.chat.menu import names
from hermes_agent.cli.output import shortened

AT_PATH = re.compile(r"(?:^|\s)@(\S*)$")
MOST_PATHS = 200
LONGEST_META = 80
LONGEST_NAME = 30
"""Cells of a name in the menu: what it does needs the others."""


class ChatCompleter(Completer):
    """`folder` says where relative paths begin, `skills` which skills a slash would use, and what each does."""

    def __init__(self, folder: Callable[[], str], skills: Callable[[], Sequence[tuple[str, str]]] = tuple) -> None:
        self._folder, self._skills = folder, skills

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library's shape
        before = document.text_before_cursor
        if re.fullmatch(r"/[\w-]*", before):
            return self._commands(before[1:])
        found = AT_PATH.search(before)
        return self._paths(found.group(1)) if found else ()

    def _commands(self, begun: str) -> Iterator[Completion]:
        """Commands, then skills: a command of the same name wins."""
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
