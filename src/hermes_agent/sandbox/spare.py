"""A record that is made ready while nobody waits: making files can take most of the time that a short command takes."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

FILES = ("meta.json", "out", "exit", "env")
"""Empty ones stand for none."""
PREFIX = ".spare."


class Spare:
    """The files of at most one record, below `folder`, of this program alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / f"{PREFIX}{os.getpid()}.{os.urandom(4).hex()}"
        self._turn = threading.Lock()
        self._ready = False

    def make(self) -> None:
        """Make them ready, where they are not. Blocks; a failure leaves none, and a record is then made as it comes."""
        with self._turn, suppress(OSError):
            if not self._ready:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                for name in FILES:
                    os.close(os.open(self._folder / name, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
                self._ready = True

    def give(self, record: Path) -> None:
        """Move them into a record that was just claimed, where they are ready. Blocks for microseconds."""
        if not self._turn.acquire(blocking=False):
            return  # they are being made: making others takes no longer
        try:
            with suppress(OSError):
                for name in FILES if self._ready else ():
                    (self._folder / name).rename(record / name)
            self._ready = False
        finally:
            self._turn.release()

    def drop(self) -> None:
        """Remove them, and those of programs that were killed. Blocks."""
        with self._turn:
            self._ready = False
            shutil.rmtree(self._folder, ignore_errors=True)
            for left in self._folder.parent.glob(f"{PREFIX}*"):
                if not Path("/proc", left.name.removeprefix(PREFIX).partition(".")[0]).exists():
                    shutil.rmtree(left, ignore_errors=True)
