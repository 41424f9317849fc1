"""How long a connection waits while another program has the database locked, and which program that is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import apsw

from hermes_agent.host.lock_file import GROWTH, LONGEST, PATIENCE, SHORTEST, kernel_holder, named

WRITES, SHARED_MEMORY = 120, "-shm"
"""The byte that a writer locks there (https://www.sqlite.org/walformat.html, "WAL locks")."""
PENDING, RESERVED = 0x40000000, 0x40000001
"""What a writer without a write-ahead log locks of the database itself (https://www.sqlite.org/lockingv3.html)."""
HURRY = 0.3
"""Seconds that a program which ends still waits."""


def _nothing(_: str) -> None:
    """Nobody is told."""


class BusyWait:
    """The busy handler of a connection: waits at most `seconds`, and no longer than anybody `wants` what is waited for.
    `told` is called once, after `PATIENCE` seconds, with a sentence. `blocked` says meanwhile who is waited for."""

    def __init__(
        self, path: Path, seconds: float, wants: Callable[[], bool], told: Callable[[str], None] = _nothing
    ) -> None:
        self.blocked = ""
        self._path = path
        self._seconds = seconds
        self._wants = wants
        self._told = told
        self._began = 0.0
        self._until = float("inf")

    def install(self, connection: apsw.Connection) -> None:
        """Have this connection wait so."""
        connection.set_busy_handler(self)

    def hurry(self) -> None:
        """Wait no longer than a moment from now on: the program ends."""
        self._until = min(self._until, time.monotonic() + HURRY)

    def done(self) -> None:
        """What was waited for is there, or given up."""
        self.blocked = ""

    def __call__(self, tries: int) -> bool:
        """Whether to try again, after a pause. In the connection's thread."""
        now = time.monotonic()
        if tries == 0:
            self._began = now
        waited = now - self._began
        if waited >= self._seconds or now >= self._until or not self._wants():
            return False
        if waited >= PATIENCE and not self.blocked:
            self.blocked = f"The database {self._path} is locked by {writer_of(self._path)}."
            self._told(f"Waiting: {self.blocked}")
        time.sleep(min(SHORTEST * GROWTH ** min(tries, 20), LONGEST))
        return True


def writer_of(path: Path) -> str:
    """The process that has the database locked for writing, as far as the system tells."""
    for file, byte in ((f"{path}{SHARED_MEMORY}", WRITES), (f"{path}", RESERVED), (f"{path}", PENDING)):
        try:
            pid = kernel_holder(Path(file).stat(), "POSIX", byte)
        except OSError:
            continue
        if pid:
            return named(pid)
    return "another program"
