"""Permanent approvals in a file that a person can read and edit: HERMES_HOME/approvals.yaml."""

from __future__ import annotations

import logging
from collections.abc import Callable, Set
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HomeError
from hermes_agent.host.locks import change_under
from hermes_agent.host.paths import read_small, write_private
from hermes_agent.tools.permission.requests import plain

log = logging.getLogger(__name__)
HEAD = (
    b"# What you allowed for good, each for this tool, command and folder alone. Remove an entry to be asked again.\n"
)


class Approval(msgspec.Struct, frozen=True, omit_defaults=True):
    """One approval in approvals.yaml: `key` decides, with the `program` that it is bound to (real path and hash, empty:
    none); the rest is for the reader. `when` is seconds since 1970."""

    key: str
    tool: str
    what: str
    folder: str
    when: float
    program: str = ""


def parsed(content: bytes) -> tuple[Approval, ...]:
    """Parse the file. Raises `ValueError` or `msgspec.DecodeError`."""
    return msgspec.yaml.decode(content, type=tuple[Approval, ...] | None) or ()


def wrong_with(path: Path) -> str:
    """Why the file cannot be read, as a sentence; empty if it can or is missing."""
    try:
        parsed(read_small(path) or b"")
    except HomeError as error:
        return f"{error} Hermes will ask again for everything that it allowed."
    except (msgspec.DecodeError, ValueError) as error:
        return (
            f"{path.name} cannot be read, so Hermes will ask again for everything that it allowed: "
            f"{' '.join(str(error).split())}"
        )
    return ""


class RememberedFile:
    """Permanent approvals of tool calls in a YAML file. An unreadable file counts as empty, so people are asked again;
    it is not overwritten."""

    def __init__(self, path: Path, clock: Clock, redact: Callable[[str], str] = str) -> None:
        self._path = path
        self._redact = redact
        self._clock = clock
        self._stamp: tuple[int, int] | None = None
        self._entries: tuple[Approval, ...] = ()
        self._broken = ""

    def knows(self, said: Set[str]) -> bool:
        """Whether an approval is for one of these calls or rules, for whatever person, folder and environment."""
        return any(plain(entry.what) in said for entry in self._read())

    def program(self, key: str) -> str | None:
        """The program that a permanent approval is bound to, empty for any; None if there is no such approval."""
        return next((entry.program for entry in reversed(self._read()) if entry.key == key), None)

    def list(self) -> tuple[Approval, ...]:
        """All permanent approvals, oldest first. Raises `HomeError` if the file is unreadable."""
        entries = self._read()
        if self._broken:
            raise HomeError(f"{self._path} cannot be read ({self._broken}): repair it or move it away.")
        return entries

    async def add(self, key: str, *, tool: str, what: str, folder: str, program: str = "") -> None:
        """Allow a call permanently. Raises `HomeError` if the file cannot be written, or is unreadable and must not
        be overwritten."""

        def work() -> None:
            kept = [entry for entry in self.list() if entry.key != key]
            added = Approval(
                key=key, tool=tool, what=self._redact(what), folder=folder, when=self._clock.now(), program=program
            )
            write_private(self._path, HEAD + msgspec.yaml.encode((*kept, added)))

        await change_under(self._path.with_suffix(".lock"), work)

    async def withdraw(self, key: str) -> None:
        """Delete an approval. Raises `HomeError` as `add` does."""

        def work() -> None:
            write_private(self._path, HEAD + msgspec.yaml.encode([each for each in self.list() if each.key != key]))

        await change_under(self._path.with_suffix(".lock"), work)

    def _read(self) -> tuple[Approval, ...]:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return ()
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp != self._stamp:
            self._entries = self._parse(read_small(self._path) or b"")
            self._stamp = stamp
        return self._entries

    def _parse(self, content: bytes) -> tuple[Approval, ...]:
        self._broken = ""
        try:
            return parsed(content)
        except (msgspec.DecodeError, ValueError) as error:
            self._broken = " ".join(str(error).split())
            log.warning(
                "%s cannot be read, so Hermes will ask again for everything that it allowed: %s", self._path, error
            )
            return ()
