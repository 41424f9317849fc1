"""The index on PostgreSQL: in the order of commits, so that nothing is skipped."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hermes_agent.store.database import Store, open_store
from hermes_agent.store.postgres.driver import vector_of
from tests.databases import NOT_INSTALLED
from tests.doubles.postgres import PostgresCluster, binaries
from tests.store.made import QUEUE, add, entry, session
from tests.store.test_search import found, tell


@pytest.fixture
async def store(cluster: PostgresCluster):
    store = await open_store(cluster.fresh_url())
    yield store
    await store.close()


async def test_what_commits_late_under_a_low_number_is_found_too(store: Store):
    await add(store, session("slow"))
    lease = await store.lanes.hold("slow", QUEUE)
    assert lease is not None
    begun, end = asyncio.Event(), asyncio.Event()

    async def slow(tx):
        await store.history.append(tx, lease, [entry(1, "a late word")])
        begun.set()
        await end.wait()

    late = asyncio.create_task(store.write(slow))
    await begun.wait()
    await tell(store, "quick", "an early word")
    await store.search.catch_up()
    end.set()
    await late

    assert sorted(await found(store, "word")) == [("quick", 1), ("slow", 1)]


MANY = "DO 'BEGIN FOR i IN 1..2000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END'"


@pytest.mark.slow
@pytest.mark.parametrize("searched", [True, False], ids=["searched before", "never searched"])
async def test_search_goes_on_after_a_dump_and_restore(searched: bool):
    with servers() as (old, new):
        await asyncio.to_thread(old.execute, MANY)  # Its transaction ids are far ahead of those of the new server.
        store = await open_store(old.url)
        await tell(store, "first", "an early word")
        if searched:
            assert await found(store, "word") == [("first", 1)]
        await store.close()

        await asyncio.to_thread(new.restore, await asyncio.to_thread(old.dump))
        store = await open_store(new.url)
        await tell(store, "second", "a later word")

        assert sorted(await found(store, "word")) == [("first", 1), ("second", 1)]
        assert await store.search.catch_up() == 0
        await store.close()


@contextmanager
def servers() -> Iterator[tuple[PostgresCluster, PostgresCluster]]:
    """Two servers that know nothing of each other."""
    programs = binaries()
    if programs is None:
        pytest.skip(NOT_INSTALLED)
    old, new = PostgresCluster(programs), PostgresCluster(programs)
    with closing(old), closing(new):
        yield old, new


@contextmanager
def closing(server: PostgresCluster) -> Iterator[None]:
    try:
        server.start()
        yield
    finally:
        server.remove()


def test_terms_are_stored_as_they_are():
    assert vector_of(["ab", "中", "ab"]) == "'ab':1 '中':2 'ab':3"
