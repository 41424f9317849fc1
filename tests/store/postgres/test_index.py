"""The index on PostgreSQL: in the order of commits, so that nothing is skipped."""

import asyncio

import pytest

from hermes_agent.store.database import Store, open_store
from hermes_agent.store.postgres.text import vector_of
from hermes_agent.testing.postgres import PostgresCluster
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


def test_terms_are_stored_as_they_are():
    assert vector_of(["ab", "中", "ab"]) == "'ab':1 '中':2 'ab':3"
