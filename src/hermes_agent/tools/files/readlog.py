"""Read log: hashes of the file contents that a session has seen, so that stale writes are detected; write intents."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from dataclasses import field
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass

SESSIONS_IN_MEMORY = 16


def content_hash(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a session's read log. With a `key` it is a write intent of that call: `hash` of the new content, and
    the `answer` it will give."""

    path: str
    hash: str
    key: str = ""
    answer: str = ""


@dataclass(slots=True)
class _Session:
    known: dict[str, str] = field(default_factory=dict)
    pending: dict[str, Entry] = field(default_factory=dict)

    def take(self, entry: Entry) -> None:
        if entry.key:
            self.pending[entry.key] = entry
        else:
            self.known[entry.path] = entry.hash


class ReadLog:
    """Hashes of the file contents that each session has seen, in one append-only file per session in `folder`.

    A session that continues in another process still knows what it has read, and a repeated write can tell whether it
    had happened. If the folder is lost, sessions only have to read their files again. Thread-safe.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._recent: dict[str, _Session] = {}

    def saw(self, session: str, path: Path, digest: str) -> None:
        """Record that the session has read or written this content."""
        with self._lock:
            if self._of(session).known.get(_text(path)) != digest:
                self._add(session, Entry(path=_text(path), hash=digest))

    def known(self, session: str, path: Path) -> str:
        """The hash last seen by the session; empty if none."""
        with self._lock:
            return self._of(session).known.get(_text(path), "")

    def intend(self, session: str, path: Path, *, key: str, digest: str, answer: str) -> None:
        """Record a write intent of the call `key`."""
        with self._lock:
            self._add(session, Entry(path=_text(path), hash=digest, key=key, answer=answer))

    def intended(self, session: str, path: Path, *, key: str) -> Entry | None:
        """The write intent of an earlier attempt of the same call."""
        with self._lock:
            found = self._of(session).pending.get(key)
            return found if found is not None and found.path == _text(path) else None

    def _of(self, session: str) -> _Session:
        found = self._recent.pop(session, None) or self._read(session)
        self._recent[session] = found
        if len(self._recent) > SESSIONS_IN_MEMORY:
            del self._recent[next(iter(self._recent))]
        return found

    def _read(self, session: str) -> _Session:
        found = _Session()
        try:
            lines = self._file(session).read_bytes().splitlines()
        except FileNotFoundError:
            return found
        for line in filter(None, lines):
            with suppress(msgspec.DecodeError):  # a line that a crash cut off: what it said is read again when needed
                found.take(msgspec.json.decode(line, type=Entry))
        return found

    def _add(self, session: str, entry: Entry) -> None:
        self._of(session).take(entry)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(self._file(session), flags, 0o600)
        try:
            os.write(handle, b"\n" + msgspec.json.encode(entry) + b"\n")
        finally:
            os.close(handle)

    def _file(self, session: str) -> Path:
        return self._folder / f"{_as_name(session)}.jsonl"


def _text(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _as_name(session: str) -> str:
    plain = all(character.isalnum() or character in "_-" for character in session)
    return session if plain and session else content_hash(session.encode())[:32]
