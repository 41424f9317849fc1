"""Git objects as they are written without a git process: loose files, or one pack where there are many."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Protocol

KINDS = {"commit": 1, "tree": 2, "blob": 3}
FOLDER, LINK, FILE, PROGRAM = 0o40000, 0o120000, 0o100644, 0o100755
COPIED = 1 << 20


class Objects(Protocol):
    """- `write` keeps an object and gives its name (20 bytes); the same one is kept once."""

    def write(self, kind: str, content: bytes) -> bytes: ...


class Loose:
    """Each object is a file of its own, there as a whole or not at all."""

    def __init__(self, repository: Path) -> None:
        self._folder = repository / "objects"
        self.written = 0
        """Bytes so far."""

    def write(self, kind: str, content: bytes) -> bytes:
        head = b"%s %d\0" % (kind.encode(), len(content))
        name = named(head, content)
        path = self._folder / name.hex()[:2] / name.hex()[2:]
        if not _is_there(path):
            path.parent.mkdir(exist_ok=True)
            temporary = path.with_name(f"tmp_obj_{os.urandom(4).hex()}")
            temporary.write_bytes(zlib.compress(head + content, 0))
            temporary.rename(path)
            self.written += len(content)
        return name


class Pack:
    """Objects one after another in a file that `git index-pack` takes in."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._names: set[bytes] = set()
        self.written = 0
        """Bytes so far."""
        self._head()

    def write(self, kind: str, content: bytes) -> bytes:
        name = named(b"%s %d\0" % (kind.encode(), len(content)), content)
        if name not in self._names:
            self._names.add(name)
            self.written += self._file.write(_entry_head(KINDS[kind], len(content)) + zlib.compress(content, 1))
        return name

    def finish(self) -> None:
        """Write how many they are, and the checksum of it all."""
        self._file.seek(0)
        self._head()
        self._file.seek(0)
        checksum = hashlib.sha1(usedforsecurity=False)
        while part := self._file.read(COPIED):
            checksum.update(part)
        self._file.write(checksum.digest())
        self._file.flush()

    def _head(self) -> None:
        self._file.write(b"PACK" + (2).to_bytes(4) + len(self._names).to_bytes(4))


def tree(entries: Iterable[tuple[bytes, int, bytes]]) -> bytes:
    """A tree's content, of names, modes and objects' names; git sorts folders as if a slash followed."""
    rows = sorted(entries, key=lambda row: row[0] + b"/" if row[1] == FOLDER else row[0])
    return b"".join(b"%o %s\0%s" % (mode, name, blob) for name, mode, blob in rows)


def commit(root: str, at: float, message: bytes) -> bytes:
    """A commit's content, without a parent."""
    by = f"Hermes <> {at:.0f} +0000"
    return f"tree {root}\nauthor {by}\ncommitter {by}\n\n".encode() + message + b"\n"


def named(head: bytes, content: bytes) -> bytes:
    """The name of an object."""
    found = hashlib.sha1(head, usedforsecurity=False)
    found.update(content)
    return found.digest()


def _is_there(path: Path) -> bool:
    """A file of no bytes is what a crash of the machine left."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _entry_head(kind: int, size: int) -> bytes:
    """Kind and size in as few bytes as they need, seven bits in each but the first."""
    first, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(first | 128)
        first, size = size & 127, size >> 7
    out.append(first)
    return bytes(out)
