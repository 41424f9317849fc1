"""What SQLite says, as the errors that this program names."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path

import apsw

from hermes_agent.core.errors import DatabaseDamaged, DatabaseUnreachable, DiskFull, StoreError
from hermes_agent.host.files import sentence
from hermes_agent.store.sqlite.busy import writer_of

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
    """The sentence for what SQLite raised about the database at `path`."""
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
    """The type of the mount that `path` lies on, "" if none is listed; the later of two mounts at one place counts."""
    text, best, kind = str(path), "", ""
    for line in table.splitlines():
        fields = line.split(" ")
        place = fields[1] if "\\" not in fields[1] else _unescape(fields[1])
        if len(place) >= len(best) and (text == place or text.startswith(place.rstrip("/") + "/")):
            best, kind = place, fields[2]
    return kind


def _unescape(text: str) -> str:
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
