"""Waiting for another program that has the database locked: for whom, how long, and until when."""

import sqlite3
import time
from pathlib import Path

import apsw
import pytest

from hermes_agent.store.sqlite.busy import BusyWait, writer_of
from tests.store.sqlite.test_engine_frozen import frozen


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
