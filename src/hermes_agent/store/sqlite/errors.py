"""Translates SQLite errors, waits for locked files and names the process behind a lock, and refuses network file
systems."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import apsw

from hermes_agent.core.errors import DatabaseDamaged, DatabaseUnreachable, DiskFull, StoreError
from hermes_agent.host.locks import GROWTH, LONGEST, PATIENCE, SHORTEST, kernel_holder, named
from hermes_agent.host.paths import sentence

WRITES, SHARED_MEMORY = 120, "-shm"
"""The byte that a writer locks there (https://www.sqlite.org/walformat.html, "WAL locks")."""
PENDING, RESERVED = 0x40000000, 0x40000001
"""What a writer without a write-ahead log locks of the database itself (https://www.sqlite.org/lockingv3.html)."""
HURRY = 0.3
"""Seconds that a program which ends still waits."""


def _nothing(_: str) -> None:
    """Nobody is told."""


class BusyWait:
    """Busy handler of a connection: waits at most `seconds`, and only while `wants` is true. `told` is called once
    with a sentence, after `PATIENCE` seconds; `blocked` names the blocking program meanwhile."""

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
        """Use it on this connection."""
        connection.set_busy_handler(self)

    def hurry(self) -> None:
        """Limit the wait to a moment: the program is ending."""
        self._until = min(self._until, time.monotonic() + HURRY)

    def done(self) -> None:
        """End the wait: the lock was acquired or given up."""
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
    """The process that holds the write lock, as far as the system tells."""
    for file, byte in ((f"{path}{SHARED_MEMORY}", WRITES), (f"{path}", RESERVED), (f"{path}", PENDING)):
        try:
            pid = kernel_holder(Path(file).stat(), "POSIX", byte)
        except OSError:
            continue
        if pid:
            return named(pid)
    return "another program"


FILES = 8
"""So many are open at least where a database is."""
NO_ROOM = (apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP)


SENTENCES: tuple[tuple[tuple[type[apsw.Error], ...], type[StoreError], str], ...] = (
    (
        (apsw.FullError,),
        DiskFull,
        "No room left on the disk of {path}. Nothing that was saved before is lost; make room and try again.",
    ),
    (
        (apsw.NotADBError,),
        DatabaseDamaged,
        "{path} is not a database. Put a backup in its place, or move it away to begin without the sessions of before.",
    ),
    (
        (apsw.CorruptError,),
        DatabaseDamaged,
        "The database {path} is damaged ({error}). `hermes doctor` says how far. Put a backup in its place, or move it "
        "away to begin without the sessions of before.",
    ),
    (
        (apsw.BusyError, apsw.LockedError),
        DatabaseUnreachable,
        "The database {path} stayed locked by {writer}. Try again when it is done, or end it.",
    ),
    (
        (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError),
        DatabaseUnreachable,
        "The database {path} cannot be opened for writing. {system}",
    ),
    (
        (apsw.IOError,),
        DatabaseUnreachable,
        "Reading or writing the database {path} failed ({error}). Check the disk.",
    ),
    ((apsw.Error,), StoreError, "The database {path} refused: {error}"),
)


def explain(error: apsw.Error, path: Path) -> StoreError:
    """The `StoreError` for what SQLite raised about the database at `path`."""
    kind = type(error)
    if getattr(error, "extendedresult", 0) in NO_ROOM and _is_full(path.parent):
        kind = apsw.FullError
    named, words = next((named, text) for kinds, named, text in SENTENCES if issubclass(kind, kinds))
    system = _refusal(path) if "{system}" in words else ""
    writer = writer_of(path) if "{writer}" in words else ""
    return named(words.format(path=path, error=error, system=system, writer=writer))


def _is_full(folder: Path) -> bool:
    with suppress(OSError):
        found = os.statvfs(folder)
        return found.f_bavail == 0 or (found.f_files > 0 and found.f_favail == 0)
    return False


def _refusal(path: Path) -> str:
    """Why nothing can be opened there, where the system says it of the folder too: SQLite does not tell."""
    with ExitStack() as opened:
        try:
            for _ in range(FILES):
                opened.callback(os.close, os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as error:
            return sentence(error)
    return f"Check the rights of {path.parent}"


# Names as /proc/self/mounts gives them; fuse ones carry their program after a dot.
NETWORK = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "smb",
        "9p",
        "afs",
        "ncpfs",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "davfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.davfs",
        "fuse.gcsfuse",
        "fuse.juicefs",
        "fuse.blobfuse",
    )
)
MOUNTS = Path("/proc/self/mounts")


def refuse_network(path: Path, mounts: Path = MOUNTS) -> None:
    """Raise `DatabaseUnreachable` where `path` lies on a network file system. Without a list of mounts (not Linux),
    pass."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = file_system(path, table)
    if kind in NETWORK:
        raise DatabaseUnreachable(
            f"{path} is on a network file system ({kind}), where SQLite loses data. "
            "Use a local disk (HERMES_HOME) or PostgreSQL (store.url)."
        )


def file_system(path: Path, table: str) -> str:
    """The file system type of the mount that contains `path`, "" if none is listed; of two mounts at one place the
    later counts."""
    text, best, kind = str(path), "", ""
    for line in table.splitlines():
        fields = line.split(" ")
        place = fields[1] if "\\" not in fields[1] else _unescape(fields[1])
        if len(place) >= len(best) and (text == place or text.startswith(place.rstrip("/") + "/")):
            best, kind = place, fields[2]
    return kind


def _unescape(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
