"""The files beside a database (`-wal`, `-shm`, `-journal`): verifies that they belong to it and sets foreign ones
aside.

SQLite does not check whose `-wal` it finds: beside a file that was made, moved or restored after a process died,
it would write the pages of one database into another. So each process with the database open holds a shared lock
on `locks/NAME.used`, which also records the file that the `-wal` belongs to. A process that is alone compares.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from itertools import count
from pathlib import Path

SUFFIXES = ("-wal", "-shm", "-journal")
HEADER = 32
FRAME = struct.Struct(">IIII8x")  # page number, pages after a commit, two salts, two checksums
BEGINNING = struct.Struct(">8xI4xII8x")  # the header of all: page size, two salts


class Sidecars:
    """Verifies that a database's sidecar files (-wal, -shm, -journal) belong to it and sets foreign ones aside;
    holds a lock until `close`. `alone`: no other process has the database open. Raises `OSError`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        folder = path.parent / "locks"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(folder / f"{path.name}.used", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.alone = True
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.alone = False
        self._known = os.pread(self._lock, 200, 0).decode("ascii", "replace").strip()

    def share(self) -> None:
        """Let other processes in: the sidecars are verified now."""
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def close(self) -> None:
        """Release the lock; the database is closed."""
        os.close(self._lock)

    @property
    def had_one(self) -> bool:
        """Whether there are traces of an earlier database here."""
        return bool(self._known) or any(self._beside(suffix).exists() for suffix in SUFFIXES)

    def record(self) -> None:
        """Record the current file: after opening, and whenever pages of the `-wal` were checkpointed. A failure only
        costs a comparison."""
        with suppress(OSError):
            os.pwrite(self._lock, f"{self._here():<120}".encode("ascii"), 0)

    def belong(self) -> bool:
        """Whether the `-wal` may be replayed into this database; for a process that is alone. True where nothing
        tells."""
        wal = self._beside("-wal")
        if not self._known or not wal.exists() or not wal.stat().st_size:
            return True
        here, known = self._here().split(), self._known.split()
        if here == known or here[-1] != known[-1]:  # As it was left; or all files were brought here together.
            return True
        written_last = self._path.stat().st_ctime_ns >= wal.stat().st_ctime_ns  # file systems count it in steps
        return not written_last or self._holds_any_page(wal.read_bytes())

    def set_aside(self) -> Path | None:
        """Rename the sidecars so that no database finds them; the database name that they would belong to, None
        where there were none. Raises `OSError`."""
        found = [suffix for suffix in SUFFIXES if self._beside(suffix).exists()]
        if not found:
            return None
        names = (self._path.with_name(f"{self._path.name}.left-{number}") for number in count(1))
        left = next(name for name in names if not any(Path(f"{name}{suffix}").exists() for suffix in ("", *SUFFIXES)))
        for suffix in found:
            self._beside(suffix).rename(f"{left}{suffix}")
        return left

    def _beside(self, suffix: str) -> Path:
        return Path(f"{self._path}{suffix}")

    def _here(self) -> str:
        main, wal = self._path.stat(), self._beside("-wal")
        return f"{main.st_ino} {main.st_size} {main.st_mtime_ns} {wal.stat().st_ino if wal.exists() else 0}"

    def _holds_any_page(self, wal: bytes) -> bool:
        """Whether the database has any page as the `-wal` has it: a process died while it took them in."""
        size, *salts = BEGINNING.unpack_from(wal.ljust(HEADER, b"\0"))
        with self._path.open("rb") as main:
            for start in range(HEADER, len(wal) - FRAME.size - size + 1, FRAME.size + size):
                number, _commit, *own = FRAME.unpack_from(wal, start)
                if not number or own != salts:
                    break
                main.seek((number - 1) * size)
                if main.read(size) == wal[start + FRAME.size : start + FRAME.size + size]:
                    return True
        return False


def discard(path: Path) -> None:
    """Delete a disposable database with its sidecars. Raises `OSError`."""
    for suffix in ("", *SUFFIXES):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
