"""Who each command talked to: lines in its record, which a later program reads too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE = "network"
REACHED, STOPPED, PEER = "reached", "stopped", "peer"
MOST = 100  # lines of a kind
LONGEST = 200


class Traffic:
    """The connections of one command, noted in its record (`folder`). A line is on its way to the disk before a byte
    of the connection arrives. `group` is the session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.group = folder.parent.name
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def note(self, kind: str, words: str) -> None:
        """Note a fact, once. Blocks. Raises `OSError`: then the connection must not be made."""
        shown = "".join(letter if letter.isprintable() else "?" for letter in words[:LONGEST])
        line = f"{kind} {shown}\n"
        with self._lock:
            if line in self._known or sum(each.startswith(kind) for each in self._known) >= MOST:
                return
            with (self.folder / FILE).open("a") as file:
                file.write(line)
            self._known.add(line)

    def link(self, other: Traffic) -> None:
        """Note that the two talked with each other: what one reached, the other reached too."""
        if other is not self:
            self.note(PEER, other.folder.name)
            other.note(PEER, self.folder.name)


def traffic_of(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The hosts that the command of this record reached, itself or through other commands of its session, and what was
    refused to it. Blocks."""
    stopped = tuple(words for kind, words in _lines(folder) if kind == STOPPED)
    names, reached = [folder.name], dict[str, None]()
    for name in names:
        for kind, words in _lines(folder.parent / name):
            if kind == PEER and words not in names:
                names.append(words)
            elif kind == REACHED:
                reached[words] = None
    return tuple(reached), stopped


def _lines(folder: Path) -> list[tuple[str, str]]:
    try:
        text = (folder / FILE).read_text(errors="replace")
    except OSError:
        return []
    return [(kind, words) for kind, _, words in (line.partition(" ") for line in text.splitlines())]


class Callers:
    """The commands behind the connections to the proxy, by the port at their end."""

    def __init__(self) -> None:
        self._ports: dict[int, Traffic] = {}
        self._lock = threading.Lock()

    @contextmanager
    def connecting(self) -> Iterator[dict[int, Traffic]]:
        """While a connection is made and its port noted, nobody asks whose it is."""
        with self._lock:
            yield self._ports

    def take(self, port: int) -> Traffic | None:
        """Whose connection comes from this port, once."""
        with self._lock:
            return self._ports.pop(port, None)
