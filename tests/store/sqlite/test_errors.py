"""What SQLite raises, as a sentence."""

from pathlib import Path

import apsw
import pytest

from hermes_agent.core.errors import DatabaseDamaged, DatabaseUnreachable, DiskFull, StoreError
from hermes_agent.store.sqlite.errors import explain

PATH = Path("/home/x/hermes.db")


@pytest.mark.parametrize(
    ("error", "named", "says"),
    [
        (apsw.FullError("x"), DiskFull, "No room left"),
        (apsw.NotADBError("x"), DatabaseDamaged, "is not a database"),
        (apsw.CorruptError("x"), DatabaseDamaged, "is damaged"),
        (apsw.BusyError("x"), DatabaseUnreachable, "stayed locked"),
        (apsw.CantOpenError("x"), DatabaseUnreachable, "rights of /home/x"),
        (apsw.IOError("disk on fire"), DatabaseUnreachable, "disk on fire"),
        (apsw.ConstraintError("UNIQUE"), StoreError, "refused: UNIQUE"),
    ],
)
def test_each_failure_has_its_name(error: apsw.Error, named: type[StoreError], says: str):
    found = explain(error, PATH)

    assert type(found) is named
    assert says in str(found)


def test_no_room_for_the_shared_memory_is_a_full_disk():
    error = apsw.IOError("x")
    error.extendedresult = apsw.SQLITE_IOERR_SHMSIZE

    assert type(explain(error, PATH)) is DiskFull
