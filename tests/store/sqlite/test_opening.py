"""The way into SQLite is quick, and brings nothing of PostgreSQL along."""

import asyncio
import stat
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import apsw
import pytest

from hermes_agent.core.errors import DatabaseDamaged, DatabaseTooNew, DatabaseUnreachable, StoreError
from hermes_agent.store.database import open_store
from hermes_agent.store.migrations import newest
from hermes_agent.store.sqlite.opening import APPLICATION, STEPS, open_writer, verified_copy
from tests.store.made import add, session

SOURCE = Path(__file__).parents[3] / "src"


async def test_opening_what_is_there_takes_a_few_milliseconds(tmp_path: Path):
    await (await open_store(tmp_path / "hermes.db")).close()
    taken = []
    for _ in range(9):
        began = time.perf_counter()
        store = await open_store(tmp_path / "hermes.db")
        taken.append(time.perf_counter() - began)
        await store.close()

    # 3 ms on a quiet machine; tests run beside others.
    assert statistics.median(taken) < 0.012


def test_the_writer_keeps_what_it_may_undo_in_memory(tmp_path: Path):
    file = open_writer(tmp_path / "hermes.db", 1.0)
    try:
        assert file.connection.pragma("temp_store") == 2
    finally:
        file.close()


async def test_the_driver_of_the_other_dialect_is_not_loaded(tmp_path: Path):
    code = (
        "import asyncio, sys; from hermes_agent.store.database import open_store\n"
        "async def main(): await (await open_store(sys.argv[1])).close()\n"
        "asyncio.run(main()); print('asyncpg' in sys.modules, 'apsw' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x.db")]

    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)}
    )

    assert done.stdout.split() == ["False", "True"]


# ruff: noqa: ASYNC240  (a test waits for its own files)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hermes.db"


async def made(path: Path) -> None:
    store = await open_store(path)
    await add(store, session("kept"))
    await store.close()


async def refusal(path: Path) -> StoreError:
    with pytest.raises(StoreError) as refused:
        await open_store(path)
    return refused.value


async def test_a_new_database_is_safe_and_private(path: Path):
    await made(path)

    file = open_writer(path, 1.0)
    connection = file.connection

    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2
    assert connection.pragma("foreign_keys") == 1
    assert connection.pragma("application_id") == APPLICATION
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.close()


async def test_an_empty_file_becomes_a_database(path: Path):
    path.touch()

    await made(path)

    assert path.stat().st_size > 0


def open_at_once(path: str) -> int:
    file = open_writer(Path(path), 10.0)
    version = int(file.connection.pragma("user_version"))
    file.close()
    return version


async def test_many_processes_make_it_once(path: Path):
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as processes:
        versions = list(processes.map(open_at_once, [str(path)] * 8))

    assert versions == [newest(STEPS)] * 8


async def test_something_else_is_not_a_database(path: Path):
    path.write_bytes(b"this is a text and no database at all" * 100)

    error = await refusal(path)

    assert isinstance(error, DatabaseDamaged)
    assert str(path) in str(error)
    assert path.read_bytes().startswith(b"this is a text")


async def test_another_programs_database_is_left_alone(path: Path):
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()

    error = await refusal(path)

    assert isinstance(error, DatabaseDamaged)
    assert "another program" in str(error)


async def test_a_later_databases_format_is_refused(path: Path):
    await made(path)
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    connection.close()

    error = await refusal(path)

    assert isinstance(error, DatabaseTooNew)
    assert "999" in str(error)
    assert "Update Hermes" in str(error)


async def test_a_damaged_page_is_named_when_it_is_met(path: Path):
    await made(path)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))

    with pytest.raises(DatabaseDamaged):
        store = await open_store(path)
        try:
            await store.sessions.list()
        finally:
            await store.close()


async def test_a_folder_where_the_file_should_be_is_refused(path: Path):
    path.mkdir()

    assert isinstance(await refusal(path), DatabaseUnreachable)


async def test_a_home_that_is_a_file_is_refused(tmp_path: Path):
    (tmp_path / "home").write_text("x", encoding="utf-8")

    error = await refusal(tmp_path / "home" / "hermes.db")

    assert isinstance(error, DatabaseUnreachable)
    assert "HERMES_HOME" in str(error)


@pytest.fixture
def next_steps(tmp_path: Path) -> Path:
    """Migrations of a later version: one more."""
    folder = tmp_path / "steps"
    folder.mkdir()
    for step in STEPS.iterdir():
        (folder / step.name).write_text(step.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "0900_more.sql").write_text("CREATE TABLE more (a); INSERT INTO more VALUES (1);", encoding="utf-8")
    return folder


async def test_an_old_database_is_migrated_after_a_verified_copy(path: Path, next_steps: Path):
    await made(path)

    file = open_writer(path, 1.0, next_steps)

    assert file.connection.execute("SELECT a FROM more").get == 1
    assert file.connection.pragma("user_version") == 900
    file.close()
    copy = apsw.Connection(str(path.with_name("hermes.db.before-900")))
    assert copy.pragma("user_version") == newest(STEPS)
    assert copy.execute("SELECT id FROM session").get == "kept"
    copy.close()


async def test_a_migration_that_fails_changes_nothing(path: Path, next_steps: Path):
    await made(path)
    (next_steps / "0901_bad.sql").write_text("CREATE TABLE less (a); INSERT INTO nowhere VALUES (1);", encoding="utf-8")

    with pytest.raises(DatabaseDamaged, match="Nothing was changed"):
        open_writer(path, 1.0, next_steps)

    store = await open_store(path)
    assert await store.sessions.get("kept") is not None
    await store.close()


@pytest.mark.parametrize("forged", [-1, 0, 1, newest(STEPS) - 1])
async def test_a_format_that_is_not_so_is_a_sentence_and_changes_nothing(path: Path, forged: int):
    await made(path)
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", forged)
    connection.close()

    error = await refusal(path)

    assert isinstance(error, DatabaseDamaged)
    assert f"says that its format is {forged}, but" in str(error)
    assert "already exists" not in str(error).partition("(")[0]
    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == forged
    assert connection.execute("SELECT id FROM session").get == "kept"
    connection.close()


async def test_who_comes_second_to_a_migration_finds_it_done(path: Path, next_steps: Path):
    await made(path)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asyncio.to_thread(open_writer, path, 5.0, next_steps)) for _ in range(3)]

    for task in tasks:
        assert task.result().connection.pragma("user_version") == 900
        task.result().close()


async def test_a_copy_of_a_damaged_database_does_not_count(path: Path, tmp_path: Path):
    await made(path)
    connection = apsw.Connection(str(path))
    connection.pragma("writable_schema", "on")
    connection.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'entry'")
    connection.close()
    connection = apsw.Connection(str(path))

    with pytest.raises((DatabaseDamaged, apsw.CorruptError)):
        verified_copy(connection, tmp_path / "copy.db")

    assert not (tmp_path / "copy.db").exists()
    connection.close()


async def test_a_copy_that_fails_its_own_check_does_not_count(tmp_path: Path):
    connection = apsw.Connection(str(tmp_path / "odd.db"))
    connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (NULL)")
    connection.pragma("writable_schema", "on")
    connection.execute("UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a NOT NULL)' WHERE name = 't'")
    connection.close()
    connection = apsw.Connection(str(tmp_path / "odd.db"))

    with pytest.raises(DatabaseDamaged, match="fails its own check"):
        verified_copy(connection, tmp_path / "copy.db")

    assert not (tmp_path / "copy.db").exists()
    connection.close()


async def test_a_compact_copy_is_whole_and_leaves_out_what_was_freed(path: Path, tmp_path: Path):
    store = await open_store(path)
    await store.write(lambda tx: tx.run("INSERT INTO prefix (hash, body) VALUES ('a', $1)", "x" * 1_000_000))
    await store.write(lambda tx: tx.run("DELETE FROM prefix"))
    await add(store, session("kept"))
    reading = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)

    verified_copy(reading, tmp_path / "copy.db", compact=True)
    await add(store, session("later"))
    await store.close()

    copy = apsw.Connection(str(tmp_path / "copy.db"))
    assert (reading.pragma("freelist_count") > 200, copy.pragma("freelist_count")) == (True, 0)
    copy.close()
    again = await open_store(tmp_path / "copy.db")
    assert [each.id for each in await again.sessions.list()] == ["kept"]
    await again.close()
