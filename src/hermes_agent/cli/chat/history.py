"""What was typed before, kept in the home for its owner alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

from hermes_agent.host.files import PRIVATE_FILE

MOST_READ = 512 * 1024
"""Bytes from the file's end that are read."""


class ChatHistory(History):
    """A file with one JSON text per message, the newest last.

    A message that begins with a space is never written; where the file cannot be used, the chat itself remembers.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """What was typed, the newest first."""
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
        """Write one down."""
        with suppress(OSError):
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(string).encode() + b"\n")

    def append_string(self, string: str) -> None:
        """Remember a message, unless it begins with a space or is the last one again."""
        if not string.startswith(" ") and string.strip() and self.get_strings()[-1:] != [string]:
            super().append_string(string)
