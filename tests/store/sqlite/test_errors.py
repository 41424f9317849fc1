"""What SQLite raises, as a sentence."""

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from hermes_agent.core.errors import DatabaseDamaged, DatabaseUnreachable, DiskFull, StoreError
from hermes_agent.store.sqlite.errors import BusyWait, explain, file_system, refuse_network, writer_of
from tests.store.sqlite.test_engine_frozen import frozen

PATH = Path("/home/x/hermes.db")


@pytest.mark.parametrize(
    ("error", "named", "says"),
    [
        (apsw.FullError("x"), DiskFull, "No room left"),
        (apsw.NotADBError("x"), DatabaseDamaged, "is not a database"),
        (apsw.CorruptError("x"), DatabaseDamaged, "is damaged"),
        (apsw.BusyError("x"), DatabaseUnreachable, "stayed locked"),
        (apsw.CantOpenError("x"), DatabaseUnreachable, "/home/x: No such file or directory"),
        (apsw.IOError("disk on fire"), DatabaseUnreachable, "disk on fire"),
        (apsw.ConstraintError("UNIQUE"), StoreError, "refused: UNIQUE"),
    ],
)
def test_each_failure_has_its_name(error: apsw.Error, named: type[StoreError], says: str):
    found = explain(error, PATH)

    assert type(found) is named
    assert says in str(found)


@pytest.mark.parametrize(("place", "named"), [("/proc", DiskFull), ("", DatabaseUnreachable)])
def test_a_failure_at_the_shared_memory_is_a_full_disk_only_where_the_disk_is_full(
    tmp_path: Path, place: str, named: type[StoreError]
):
    error = apsw.IOError("disk I/O error")
    error.extendedresult = apsw.SQLITE_IOERR_SHMSIZE

    assert type(explain(error, Path(place or tmp_path) / "hermes.db")) is named


def test_rights_are_only_named_where_the_system_refuses_nothing_else(tmp_path: Path):
    assert f"Check the rights of {tmp_path}" in str(explain(apsw.CantOpenError("x"), tmp_path / "hermes.db"))


MANY_OPEN = """
import asyncio, os, resource, sys
from hermes_agent.core.errors import HermesError
from hermes_agent.store.database import open_store
async def main():
    store = await open_store(sys.argv[1])
    await store.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        for _ in range(int(sys.argv[2])):
            os.close(held.pop())
    try:
        store = await open_store(sys.argv[1])
        await store.read(lambda tx: tx.rows("SELECT 1"))
        print("opened")
    except HermesError as error:
        print(error)
    os._exit(0)
asyncio.run(main())
"""


def test_too_many_open_files_are_no_matter_of_rights(tmp_path: Path):
    """Whatever the last file is that can still be opened."""
    words = [sys.executable, "-c", MANY_OPEN, str(tmp_path / "hermes.db")]
    said = [subprocess.run([*words, str(left)], capture_output=True, text=True, check=True).stdout for left in range(7)]

    assert "Too many open files" in said[0]
    assert all("Too many open files" in each or each == "opened\n" for each in said), said


TABLE = """\
/dev/vda / ext4 rw 0 0
proc /proc proc rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local ext4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
tmpfs /home/local tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x.db", "ext4"),
        ("/home/ann/x.db", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/x.db", "ext4"),
        ("/home/local/x.db", "tmpfs"),
        ("/mnt/my share/x.db", "cifs"),
    ],
)
def test_the_nearest_and_latest_mount_counts(path: str, kind: str):
    assert file_system(Path(path), TABLE) == kind


def test_a_database_on_the_network_is_refused(tmp_path: Path):
    mounts = tmp_path / "mounts"
    mounts.write_text(TABLE, encoding="utf-8")

    with pytest.raises(DatabaseUnreachable, match=r"nfs4.*PostgreSQL"):
        refuse_network(Path("/home/ann/hermes.db"), mounts)
    refuse_network(Path("/var/hermes.db"), mounts)


def test_where_mounts_cannot_be_told_nothing_is_refused(tmp_path: Path):
    refuse_network(Path("/home/ann/hermes.db"), tmp_path / "nothing")
    assert file_system(Path("/x"), "") == ""


@pytest.fixture(params=["wal", "delete"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A database with a write-ahead log, or without."""
    made = sqlite3.connect(tmp_path / "a.db")
    made.execute(f"PRAGMA journal_mode = {request.param}")
    made.execute("CREATE TABLE t (a)")
    made.close()
    return tmp_path / "a.db"


def locking(path: Path, busy: BusyWait) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    busy.install(connection)
    return connection


def test_who_writes_is_named(path: Path) -> None:
    assert writer_of(path) == "another program"
    with frozen(path) as process:
        assert writer_of(path).startswith(f"process {process.pid} (python")
    assert writer_of(path.with_name("no.db")) == "another program"


def test_a_wait_ends_after_its_time_and_is_told_once(path: Path) -> None:
    told: list[str] = []
    busy = BusyWait(path, 2.4, lambda: True, told.append)
    connection = locking(path, busy)
    with frozen(path) as process:
        began = time.monotonic()
        with pytest.raises(apsw.BusyError):
            connection.execute("BEGIN IMMEDIATE")
        assert 2.4 <= time.monotonic() - began < 4
        assert f"is locked by process {process.pid} " in busy.blocked
    assert told == [f"Waiting: {busy.blocked}"]

    connection.execute("BEGIN IMMEDIATE")
    busy.done()
    connection.close()
    assert busy.blocked == ""


@pytest.mark.parametrize("why", ["hurry", "unwanted"])
def test_nothing_is_waited_for_that_nobody_wants_or_by_who_ends(path: Path, why: str) -> None:
    busy = BusyWait(path, 60, lambda: why == "hurry")
    if why == "hurry":
        busy.hurry()
    connection = locking(path, busy)
    with frozen(path):
        began = time.monotonic()
        with pytest.raises(apsw.BusyError):
            connection.execute("BEGIN IMMEDIATE")
        assert time.monotonic() - began < 1
    connection.close()
