"""Opens a SQLite file: creates it once, checks it and the files beside it, and migrates it after a verified copy.

SQLite does not check whose `-wal` it finds: beside a file that was made, moved or restored after a process died,
it would write the pages of one database into another. So each process with the database open holds a shared lock
on `locks/NAME.used`, which also records the file that the `-wal` belongs to. A process that is alone compares.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from functools import partial
from itertools import count
from pathlib import Path

import apsw

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseDamaged, DatabaseTooNew, DatabaseUnreachable
from hermes_agent.host.locks import locked
from hermes_agent.store.migrations import Step, newest, steps_after
from hermes_agent.store.sqlite.errors import refuse_network

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


APPLICATION = 0x4845524D  # "HERM", in the file's header
STEPS = Path(__file__).parent.parent / "sql" / "sqlite"


GONE = "There is no database at {path}, where there was one: a new one begins, without the sessions of before."
KEPT = (
    " What its last process had not written into it yet is kept as {left}-wal. It goes with the old file: to have both "
    "back, put that one in its place, and {left}-wal beside it as {name}-wal."
)
REPLACED = (
    "{path} was replaced after the program had died: what the file before it had not taken in yet is not part of it, "
    "and is kept as {left}-wal."
)
TAKEN_AWAY = "{path} was taken away while another process works with it. Put it back, or end that process first."
EMPTIED = (
    "{path} is empty (0 bytes), and there was a database here. Put a backup in its place, or move it away to begin "
    "without the sessions of before."
)
NOT_SO = (
    "{path} says that its format is {current}, but it cannot be brought from there to what this version needs "
    "({error}). Nothing was changed. Put a backup in its place, or move it away to begin without the sessions of "
    "before."
)
CHECKPOINT_PAGES = 1000


@dataclass(slots=True, kw_only=True)
class OpenFile:
    """An open database; `notice` tells the person about its state when it was found (empty: nothing)."""

    connection: apsw.Connection
    sidecars: Sidecars
    notice: str = ""

    def close(self) -> None:
        """Close it and release its lock."""
        self.connection.close()
        self.sidecars.close()


def open_writer(path: Path, busy_seconds: float, steps: Path = STEPS) -> OpenFile:
    """The writing connection of an up-to-date database; creates or migrates the file first.

    Raises `DatabaseTooNew`, `DatabaseDamaged`, `DatabaseUnreachable`, `OSError` or `apsw.Error`.
    """
    refuse_network(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with creation_lock(path), ExitStack() as failing:
        sidecars = Sidecars(path)
        failing.callback(sidecars.close)
        notice = _settled(path, sidecars)
        if not path.exists() or path.stat().st_size == 0:
            _create(path, busy_seconds, steps)
        connection = connect(path, busy_seconds)
        failing.callback(connection.close)
        current = version(connection, path, newest(steps))
        if sidecars.alone and connection.pragma("journal_mode") != "wal":
            connection.pragma("journal_mode", "wal")  # A copy was put in its place.
        if current < newest(steps):
            verified_copy(connection, path.with_name(f"{path.name}.before-{newest(steps)}"))
            try:
                _apply(connection, steps_after(steps, current))
            except apsw.SQLError as error:
                raise DatabaseDamaged(NOT_SO.format(path=path, current=current, error=error)) from error
        if sidecars.alone:
            sidecars.record()
            sidecars.share()
        connection.pragma("temp_store", 2)  # In memory: what a group of changes may undo is small, and never kept.
        connection.set_wal_hook(partial(_committed, sidecars))
        failing.pop_all()
        return OpenFile(connection=connection, sidecars=sidecars, notice=notice)


def _settled(path: Path, sidecars: Sidecars) -> str:
    """See to it that what lies beside the file is its own; what the person should know of that."""
    if path.exists() and path.stat().st_size:
        if sidecars.alone and not sidecars.belong():
            return REPLACED.format(path=path, left=sidecars.set_aside())
        return ""
    if not sidecars.had_one:
        return ""
    if path.exists():
        raise DatabaseDamaged(EMPTIED.format(path=path))
    if not sidecars.alone:
        raise DatabaseUnreachable(TAKEN_AWAY.format(path=path))
    left = sidecars.set_aside()
    return GONE.format(path=path) + (KEPT.format(left=left, name=path.name) if left else "")


def _committed(sidecars: Sidecars, connection: apsw.Connection, _name: str, pages: int) -> int:
    """Take the `-wal` in where it is long, as SQLite does by itself, and note how the file stands then."""
    if pages >= CHECKPOINT_PAGES:
        with suppress(apsw.Error):  # Somebody else does it just now.
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        sidecars.record()
    return apsw.SQLITE_OK


def connect(path: Path, busy_seconds: float, *, readonly: bool = False) -> apsw.Connection:
    """A connection with this program's settings to an existing database."""
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(int(busy_seconds * 1000))
    connection.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL")
    return connection


def version(connection: apsw.Connection, path: Path, latest: int) -> int:
    """The number of the database's last migration; raises where the file is not ours or later than this program."""
    made_by, current = connection.pragma("application_id"), connection.pragma("user_version")
    if made_by != APPLICATION:
        raise DatabaseDamaged(f"{path} is a database of another program. Move it away and start again.")
    if current > latest:
        raise DatabaseTooNew(
            f"{path} was made by a later version of Hermes (its format is {current}, this one knows {latest}). "
            "Update Hermes."
        )
    return int(current)


def creation_lock(path: Path, seconds: float = float("inf")) -> AbstractContextManager[None]:
    """Lock for creating or migrating the database at `path`, one process at a time."""
    return locked(path.parent / "locks" / f"{path.name}.lock", seconds)


def _create(path: Path, busy_seconds: float, steps: Path) -> None:
    # A database that is half made must not be found under its name: it is made beside it and moved.
    draft = path.with_name(path.name + ".new")
    discard(draft)
    with closing(apsw.Connection(str(draft))) as connection:
        connection.set_busy_timeout(int(busy_seconds * 1000))
        connection.pragma("application_id", APPLICATION)
        connection.pragma("journal_mode", "wal")
        _apply(connection, steps_after(steps, 0))
    draft.chmod(0o600)
    draft.replace(path)


def _apply(connection: apsw.Connection, steps: list[Step]) -> None:
    with connection:
        for step in steps:
            connection.execute(step.sql)
            connection.pragma("user_version", step.number)


def verified_copy(connection: apsw.Connection, target: Path, *, compact: bool = False) -> None:
    """Copy the database to `target`, which gets that name only after SQLite's own check; with `compact`, without
    free pages. The copy is a consistent snapshot, whoever writes meanwhile."""
    draft = target.with_name(target.name + ".new")
    discard(draft)
    if compact:
        connection.execute("VACUUM INTO ?", (str(draft),))
    with closing(apsw.Connection(str(draft))) as copy:
        if not compact:
            with copy.backup("main", connection, "main") as backup:
                backup.step()  # All pages in one: page by page it would begin anew with each change.
        found = copy.pragma("integrity_check")
        if found != "ok":
            raise DatabaseDamaged(
                f"The database fails its own check ({found}). Put a backup copy in its place; "
                f"the old file is left as it is."
            )
        copy.pragma("journal_mode", "delete")
    draft.chmod(0o600)
    draft.replace(target)
