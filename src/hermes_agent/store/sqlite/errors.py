"""What SQLite says, as the errors that this program names."""

from __future__ import annotations

from pathlib import Path

import apsw

from hermes_agent.core.errors import DatabaseDamaged, DatabaseUnreachable, DiskFull, StoreError

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
        "{path} is not a database. Move it away or restore a backup: hermes restore",
    ),
    (
        (apsw.CorruptError,),
        DatabaseDamaged,
        "The database {path} is damaged ({error}). Restore a backup: hermes restore",
    ),
    (
        (apsw.BusyError, apsw.LockedError),
        DatabaseUnreachable,
        "The database {path} stayed locked by another program. Is a backup or an editor using it?",
    ),
    (
        (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError),
        DatabaseUnreachable,
        "The database {path} cannot be opened for writing. Check the rights of {path.parent}",
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
    kind = apsw.FullError if getattr(error, "extendedresult", 0) in NO_ROOM else type(error)
    named, sentence = next((named, text) for kinds, named, text in SENTENCES if issubclass(kind, kinds))
    return named(sentence.format(path=path, error=error))
