"""The SQLite engine: a full disk, a lock that stays, changes that misbehave."""

import asyncio
import threading
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

import apsw
import pytest

from hermes_agent.core.errors import DatabaseUnreachable, DiskFull, StoreError
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.history import BRIEF
from hermes_agent.store.sqlite.engine import GROUP, SqliteEngine, _Job, _Writing
from hermes_agent.store.sqlite.opening import open_writer
from hermes_agent.store.workers import Timings
from tests.store.made import add, append, claimed, session


@pytest.fixture
async def store(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db", timings=Timings(busy=0.2))
    yield store
    await store.close()


async def limit_pages(store: Store, more: int) -> None:
    """A disk with room for that many more pages."""

    async def change(tx):
        (pages,) = await tx.row("PRAGMA page_count")
        await tx.run(f"PRAGMA max_page_count = {pages + more}")

    await store.write(change)


async def test_a_full_disk_loses_nothing_that_was_committed(store: Store):
    lease = await claimed(store)
    await append(store, lease, 1)
    await limit_pages(store, 0)

    with pytest.raises(DiskFull, match="make room"):
        await store.write(lambda tx: tx.run("INSERT INTO prefix VALUES ('h', $1)", "x" * 100_000))

    await limit_pages(store, 1000)
    await append(store, lease, 2)
    assert [entry.number for entry in await store.history.entries("s1")] == [1, 2]


async def test_in_a_group_only_who_needs_room_fails(store: Store):
    await add(store, session())
    await limit_pages(store, 2)

    async def big(tx):
        await tx.run("INSERT INTO prefix VALUES ('h', $1)", "x" * 100_000)

    async def small(tx):
        return await tx.run("UPDATE session SET title = 'x'")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(outcome(store, change)) for change in (small, big, small)]

    results = [task.result() for task in tasks]
    assert results[0] == results[2] == 1
    assert isinstance(results[1], DiskFull)


async def outcome(store: Store, change) -> object:
    try:
        return await store.write(change)
    except (StoreError, RuntimeError, ValueError) as error:
        return error


async def test_a_database_that_stays_locked_is_a_sentence(store: Store, tmp_path: Path):
    other = apsw.Connection(str(tmp_path / "hermes.db"))
    other.execute("BEGIN IMMEDIATE")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(outcome(store, nothing)) for _ in range(3)]

    assert all(isinstance(task.result(), DatabaseUnreachable) for task in tasks)
    assert "locked" in str(tasks[0].result())
    other.execute("ROLLBACK")
    other.close()
    await store.write(nothing)


async def nothing(tx) -> None:
    await tx.run("UPDATE session SET title = title")


async def test_a_commit_that_fails_is_the_errors_of_all(store: Store):
    """A foreign key that is only checked at the commit; the innocent are then committed alone."""
    await add(store, session())

    async def dangling(tx):
        await tx.run("PRAGMA defer_foreign_keys = ON")
        await tx.run("INSERT INTO current_session VALUES ('c', 'nobody')")

    async def good(tx):
        return await tx.run("UPDATE session SET title = title || 'x'")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(outcome(store, change)) for change in (good, dangling, good)]

    assert [type(task.result()) for task in tasks] == [int, StoreError, int]
    record = await store.sessions.get("s1")
    assert record is not None
    assert record.title == "xx"


async def test_a_change_may_await_only_its_transaction(store: Store):
    async def waits(tx):
        await asyncio.sleep(0.01)

    assert isinstance(await outcome(store, waits), RuntimeError)
    await store.write(nothing)


async def test_more_changes_than_a_group_holds_all_count(store: Store):
    await add(store, session())

    async with asyncio.TaskGroup() as group:
        for _ in range(GROUP * 2 + 5):
            group.create_task(store.write(lambda tx: tx.run("UPDATE session SET title = title || 'x'")))

    record = await store.sessions.get("s1")
    assert record is not None
    assert len(record.title) == GROUP * 2 + 5


async def test_what_was_asked_before_the_end_is_done(tmp_path: Path):
    store = await open_store(tmp_path / "other.db")
    await add(store, session())
    changes = [
        asyncio.create_task(store.write(lambda tx: tx.run("UPDATE session SET title = title || 'x'")))
        for _ in range(GROUP + 3)
    ]
    await asyncio.sleep(0)

    await store.close()

    async with asyncio.TaskGroup() as group:
        assert [await group.create_task(wait(change)) for change in changes] == [1] * (GROUP + 3)


async def wait(task: asyncio.Task[int]) -> int:
    return await task


async def test_each_question_of_a_reader_stands_alone(store: Store):
    await add(store, session())

    async def twice(tx):
        first = await tx.row("SELECT title FROM session")
        asyncio.run_coroutine_threadsafe(rename(), loop).result()
        return first, await tx.row("SELECT title FROM session")

    async def rename():
        await store.write(lambda tx: tx.run("UPDATE session SET title = 'new'"))

    loop = asyncio.get_running_loop()

    assert await store.read(twice) == (("",), ("new",))


async def test_a_reader_cannot_write(store: Store):
    with pytest.raises(DatabaseUnreachable):
        await store.read(nothing)


async def test_a_brief_query_that_finds_the_database_busy_waits_in_a_thread(store: Store):
    asked: list[str] = []

    async def query(tx):
        asked.append(threading.current_thread().name)
        if len(asked) == 1:
            raise apsw.BusyError("database is locked")
        return await tx.row("SELECT 1")

    assert await store.engine.read(query, brief=True) == (1,)
    assert asked[0] == threading.main_thread().name
    assert asked[1].startswith("store-reader")


async def test_a_brief_query_that_fails_is_a_sentence(store: Store):
    with pytest.raises(StoreError, match="refused"):
        await store.engine.read(lambda tx: tx.rows("SELECT nothing"), brief=True)


async def test_a_long_log_is_read_whole(store: Store):
    lease = await claimed(store)
    for number in range(1, 2 * BRIEF + 2):
        await append(store, lease, number)

    assert [entry.number for entry in await store.history.entries("s1")] == list(range(1, 2 * BRIEF + 2))
    assert [entry.number for entry in await store.history.entries("s1", 3, BRIEF + 1)] == list(range(4, BRIEF + 5))


class Failing:
    """A real connection that fails at the first commit, and at those of its statements."""

    def __init__(self, connection: apsw.Connection, at: set[int]) -> None:
        self._connection = connection
        self._at = at
        self.count = 0
        self.commits = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, sql: str, params: object = ()) -> object:
        self.count += 1
        self.commits += sql == "COMMIT"
        if self.count in self._at or (sql == "COMMIT" and self.commits == 1):
            raise apsw.BusyError(sql)
        return self._connection.execute(sql, params)


async def told_and_there(path: Path, at: set[int]) -> tuple[list[int], list[int], int]:
    """Which of three changes that are tried alone after their group fell apart are told as done, which are there, and
    how many statements it took."""

    def change(number: int):
        return lambda tx: tx.run("INSERT INTO prefix VALUES ($1, '')", str(number))

    file = open_writer(path, 0.0)
    failing = Failing(file.connection, at)
    jobs = [_Job(change(number), durable=False) for number in range(3)]
    _Writing(failing, path).commit(jobs)
    file.close()
    with closing(apsw.Connection(str(path))) as another:
        there = [int(row[0]) for row in another.execute("SELECT hash FROM prefix ORDER BY hash")]
        another.execute("DELETE FROM prefix")
    return [number for number, job in enumerate(jobs) if job.error is None], there, failing.count


async def test_a_change_is_told_as_done_if_and_only_if_it_is_there_whatever_fails(tmp_path: Path):
    told, there, statements = await told_and_there(tmp_path / "hermes.db", set())
    assert told == there == [0, 1, 2]

    for first in range(1, statements + 1):
        for second in range(first, statements + 1):
            told, there, _ = await told_and_there(tmp_path / "hermes.db", {first, second})
            assert told == there, (first, second)


class Broken:
    """A connection on a disk that fails at everything."""

    in_transaction = True

    def execute(self, sql: str) -> None:
        raise apsw.IOError(sql)


async def test_a_disk_that_fails_at_taking_back_too_is_told_and_does_not_end_the_writer():
    async def change(_: object) -> None:
        """No change."""

    jobs = [_Job(change, durable=True) for _ in range(2)]

    _Writing(Broken(), Path("hermes.db")).commit(jobs)

    assert all(isinstance(job.error, StoreError) for job in jobs)


async def one(tx):
    return await tx.row("SELECT 1")


async def test_a_writer_that_ends_by_a_defect_fails_everybody_who_waits_for_it(tmp_path: Path):
    store = await open_store(tmp_path / "hermes.db")

    def broken(_: object) -> None:
        raise MemoryError("no more")

    store.engine.bell.ring = broken

    async def ringing(tx):
        tx.rings.add("")

    async with asyncio.timeout(5):
        await store.write(one)
        first = asyncio.create_task(outcome(store, ringing))
        later = [asyncio.create_task(outcome(store, one)) for _ in range(GROUP + 5)]
        outcomes = [await task for task in (first, *later)]
        with pytest.raises(DatabaseUnreachable, match=r"Nothing more can be written here \(MemoryError: no more\)"):
            await store.write(one)
        with pytest.raises(DatabaseUnreachable, match="start Hermes again"):
            await store.engine.read(one)
        await store.close()
    assert {type(each) for each in outcomes[1:]} <= {tuple, DatabaseUnreachable}


class Late(SimpleQueue):
    """A queue whose reader ends in the moment in which something is put into it."""

    engine: SqliteEngine

    def put(self, item: object) -> None:
        super().put(item)
        self.engine._failure = DatabaseUnreachable("It ended.")


@pytest.mark.parametrize("what", ["write", "close"])
async def test_what_comes_in_the_moment_in_which_the_writer_ends_is_answered(tmp_path: Path, what: str):
    engine = SqliteEngine(tmp_path / "hermes.db")
    engine._queue = Late()
    engine._queue.engine = engine
    async with asyncio.timeout(5):
        if what == "write":
            with pytest.raises(DatabaseUnreachable, match="It ended"):
                await engine.write(one)
        else:
            await engine.close()


async def test_a_commit_that_fails_by_a_defect_fails_its_changes_alone():
    class Broken:
        in_transaction = False

        def execute(self, _: str) -> None:
            raise MemoryError("no more")

    jobs = [_Job(nothing, durable=True), _Job(nothing, durable=True)]
    _Writing(Broken(), Path("hermes.db")).commit(jobs)

    assert [str(job.error) for job in jobs] == ["The database hermes.db cannot be written: MemoryError: no more"] * 2
