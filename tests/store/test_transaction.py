"""Changes: whole or not at all, many at once, from any thread and loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hermes_agent.core.errors import StoreError
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import marks
from tests.store.made import add, session

RENAME = "UPDATE session SET title = title || $1 WHERE id = 's1'"


async def title(store: Store) -> str:
    record = await store.sessions.get("s1")
    assert record is not None
    return record.title


async def test_a_change_that_raises_changes_nothing_and_spares_the_others(store: Store):
    await add(store, session())

    async def good(tx):
        return await tx.run(RENAME, "a")

    async def bad(tx):
        await tx.run(RENAME, "b")
        raise LookupError("mine")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(attempt(store, change)) for change in (good, bad, good, bad, good)]

    assert [task.result() for task in tasks] == [1, "mine", 1, "mine", 1]
    assert await title(store) == "aaa"


async def attempt(store: Store, change) -> object:
    try:
        return await store.write(change)
    except LookupError as error:
        return str(error)


async def test_a_statement_that_the_database_refuses_is_a_store_error(store: Store):
    async def change(tx):
        await tx.run("INSERT INTO nothing VALUES (1)")

    with pytest.raises(StoreError, match="refused"):
        await store.write(change)
    with pytest.raises(StoreError, match="refused"):
        await store.read(change)


async def test_a_query_gives_rows_and_a_change_their_number(store: Store):
    await add(store, session("s1"))
    await add(store, session("s2"))

    async def change(tx):
        found = await tx.rows("SELECT id FROM session ORDER BY id")
        none = await tx.row("SELECT id FROM session WHERE id = $1", "s3")
        one = await tx.row("SELECT id, created FROM session WHERE id = $1", "s2")
        renamed = await tx.run("UPDATE session SET title = $1", "x")
        read = await tx.run("SELECT 1")
        return found, none, one, renamed, read

    found, none, one, renamed, read = await store.write(change)

    assert (found, none, one, renamed) == ([("s1",), ("s2",)], None, ("s2", 1.0), 2)
    assert isinstance(read, int)


async def test_many_rows_go_in_at_once(store: Store):
    async def change(tx):
        await tx.many("INSERT INTO removal (session) VALUES ($1)", [(f"s{n}",) for n in range(100)])
        return await tx.row("SELECT count(*) FROM removal")

    assert await store.write(change) == (100,)


async def test_hundreds_of_changes_at_once_all_count(store: Store):
    await add(store, session())

    async with asyncio.TaskGroup() as group:
        for _ in range(300):
            group.create_task(store.write(lambda tx: tx.run(RENAME, "x")))

    assert len(await title(store)) == 300


async def test_other_threads_with_their_own_loops_use_the_same_store(store: Store):
    await add(store, session())

    def elsewhere() -> str:
        async def work() -> str:
            await store.write(lambda tx: tx.run(RENAME, "x"))
            return await title(store)

        return asyncio.run(work())

    with ThreadPoolExecutor(3) as threads:
        loop = asyncio.get_running_loop()
        for _ in range(3):
            await loop.run_in_executor(threads, elsewhere)

    assert await title(store) == "xxx"


async def test_a_loop_that_is_gone_keeps_nobody_from_working(store: Store):
    await add(store, session())
    started = threading.Event()

    def leave() -> None:
        async def begin() -> None:
            task = asyncio.create_task(store.write(lambda tx: tx.run(RENAME, "x")))
            await asyncio.sleep(0)
            task.cancel()
            started.set()

        asyncio.run(begin())

    await asyncio.to_thread(leave)

    assert started.is_set()
    await store.write(lambda tx: tx.run(RENAME, "y"))
    assert (await title(store)).endswith("y")


async def test_a_cancelled_change_is_whole_or_not_there(store: Store):
    await add(store, session())

    async def change(tx):
        await tx.run(RENAME, "a")
        await tx.run(RENAME, "b")

    task = asyncio.create_task(store.write(change))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert await title(store) in ("", "ab")
    await store.write(change)


def test_marks_are_numbered_parameters():
    assert marks(3, 2) == "$2, $3, $4"
