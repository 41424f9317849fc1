"""A SQLite file made ready: created once, checked, migrated after a verified copy."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from hermes_agent.core.errors import DatabaseDamaged, DatabaseTooNew
from hermes_agent.store.migrations import Step, newest, steps_after
from hermes_agent.store.sqlite.filesystem import refuse_network

APPLICATION = 0x4845524D  # "HERM", in the file's header
STEPS = Path(__file__).parent.parent / "sql" / "sqlite"


def open_writer(path: Path, busy_seconds: float, steps: Path = STEPS) -> apsw.Connection:
    """The writing connection of an up-to-date database; the file is made or migrated first where needed.

    Raises `DatabaseTooNew`, `DatabaseDamaged`, `DatabaseUnreachable` or `apsw.Error`.
    """
    refuse_network(path)
    if not path.exists() or path.stat().st_size == 0:
        _create(path, busy_seconds, steps)
    connection = connect(path, busy_seconds)
    try:
        if version(connection, path, newest(steps)) < newest(steps):
            _upgrade(connection, path, steps)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: Path, busy_seconds: float, *, readonly: bool = False) -> apsw.Connection:
    """A connection with this program's settings to a database that exists."""
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(int(busy_seconds * 1000))
    connection.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL")
    return connection


def version(connection: apsw.Connection, path: Path, latest: int) -> int:
    """The number of the last migration of this database; raises where it is not ours or later than this program."""
    made_by, current = connection.pragma("application_id"), connection.pragma("user_version")
    if made_by != APPLICATION:
        raise DatabaseDamaged(f"{path} is a database of another program. Move it away and start again.")
    if current > latest:
        raise DatabaseTooNew(
            f"{path} was made by a later version of Hermes (its format is {current}, this one knows {latest}). "
            "Update Hermes."
        )
    return int(current)


@contextmanager
def creation_lock(path: Path) -> Iterator[None]:
    """One process at a time makes or migrates the database at `path`."""
    locks = path.parent / "locks"
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(locks / f"{path.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _create(path: Path, busy_seconds: float, steps: Path) -> None:
    # A database that is half made must not be found under its name: it is made beside it and moved.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with creation_lock(path):
        if path.exists() and path.stat().st_size > 0:
            return  # pragma: no cover - another process was faster
        draft = path.with_name(path.name + ".new")
        draft.unlink(missing_ok=True)
        with closing(apsw.Connection(str(draft))) as connection:
            connection.set_busy_timeout(int(busy_seconds * 1000))
            connection.pragma("application_id", APPLICATION)
            connection.pragma("journal_mode", "wal")
            _apply(connection, steps_after(steps, 0))
        draft.chmod(0o600)
        draft.replace(path)


def _upgrade(connection: apsw.Connection, path: Path, steps: Path) -> None:
    with creation_lock(path):
        current = version(connection, path, newest(steps))
        if current < newest(steps):
            verified_copy(connection, path.with_name(f"{path.name}.before-{newest(steps)}"))
            _apply(connection, steps_after(steps, current))


def _apply(connection: apsw.Connection, steps: list[Step]) -> None:
    with connection:
        for step in steps:
            connection.execute(step.sql)
            connection.pragma("user_version", step.number)


def verified_copy(connection: apsw.Connection, target: Path) -> None:
    """Copy the database to `target`, which is only there under that name once it passed SQLite's own check."""
    draft = target.with_name(target.name + ".new")
    draft.unlink(missing_ok=True)
    with closing(apsw.Connection(str(draft))) as copy:
        with copy.backup("main", connection, "main") as backup:
            backup.step()
        found = copy.pragma("integrity_check")
        if found != "ok":
            raise DatabaseDamaged(
                f"The database fails its own check ({found}). Put a backup copy in its place; "
                f"the old file is left as it is."
            )
        copy.pragma("journal_mode", "delete")
    draft.chmod(0o600)
    draft.replace(target)
