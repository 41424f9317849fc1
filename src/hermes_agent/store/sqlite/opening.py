"""Opens a SQLite file: creates it once, checks it, and migrates it after a verified copy."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, closing, suppress
from functools import partial
from pathlib import Path

import apsw

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseDamaged, DatabaseTooNew, DatabaseUnreachable
from hermes_agent.host.locks import locked
from hermes_agent.store.migrations import Step, newest, steps_after
from hermes_agent.store.sqlite.errors import refuse_network
from hermes_agent.store.sqlite.opening import Sidecars, discard

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
