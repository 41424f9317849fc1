"""Records that are made ready while nobody waits: making files can take most of the time that a short command takes."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from errno import EEXIST, ENOTEMPTY
from pathlib import Path

FILES = ("meta.json", "out", "exit", "env")
"""Empty ones stand for none."""
PREFIX = ".spare."


class PreparedShells:
    """Makes records below `folder`, and keeps one of them ready."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready: list[Path] = []

    def make(self) -> None:
        """Have one ready. Blocks; a failure leaves none, and a record is then made as it comes."""
        with suppress(OSError):
            if not self._ready:
                self._ready.append(self._made())

    def claim(self, record: Path) -> None:
        """Put a record there: whoever does may start the command. Blocks for microseconds where one is ready. Raises
        `FileExistsError` where there is one."""
        made = self._taken() or self._made()
        try:
            self._move(made, record)
        except OSError as error:
            self._ready.append(made)
            if error.errno in (EEXIST, ENOTEMPTY):
                raise FileExistsError(error.errno, error.strerror) from error
            raise

    def drop(self) -> None:
        """Remove what is ready, and what programs that were killed left. Blocks."""
        while made := self._taken():
            shutil.rmtree(made, ignore_errors=True)
        with suppress(OSError):  # Whoever comes next removes it.
            for left in self._folder.glob(f"{PREFIX}*"):
                if not Path("/proc", left.name.removeprefix(PREFIX).partition(".")[0]).exists():
                    shutil.rmtree(left, ignore_errors=True)

    def _taken(self) -> Path | None:
        with suppress(IndexError):  # several threads may ask for the last one
            return self._ready.pop()
        return None

    def _move(self, made: Path, record: Path) -> None:
        """A folder takes the place of an empty one too; no record is ever empty."""
        try:
            made.rename(record)
        except FileNotFoundError:
            record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (made if made.is_dir() else self._made()).rename(record)

    def _made(self) -> Path:
        folder = self._folder / f"{PREFIX}{os.getpid()}.{os.urandom(4).hex()}"
        folder.mkdir(parents=True, mode=0o700)
        for name in FILES:
            os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        return folder
