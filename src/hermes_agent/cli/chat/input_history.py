"""Persistent input history of the chat."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

from hermes_agent.host.paths import PRIVATE_FILE

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
