"""Connections: kept while they serve, thrown away where they were left in the middle."""

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.store.database import open_store
from hermes_agent.store.postgres.pool import Pool
from tests.doubles.postgres import PostgresCluster


@pytest.fixture
async def url(cluster: PostgresCluster) -> str:
    url = cluster.fresh_url()
    await (await open_store(url)).close()
    return url


async def test_a_connection_serves_again(url: str):
    pool = Pool(url, SystemClock())
    async with pool.connection() as first:
        await first.link.execute("SELECT 1")
    async with pool.connection() as second:
        assert second is first

    await pool.close()


async def test_one_that_was_left_in_the_middle_does_not(url: str):
    pool = Pool(url, SystemClock())
    with pytest.raises(LookupError):
        async with pool.connection() as first:
            raise LookupError

    assert first.link.is_closed()
    async with pool.connection() as second:
        assert second is not first
        second.link.terminate()
        await second.roll_back()
    await pool.close()


async def test_a_pool_leaves_no_marks_behind(url: str):
    pool = Pool(url, SystemClock())
    async with pool.connection() as pooled:
        assert len(await pooled.link.fetch("SELECT client FROM commit_mark")) == 1
    await pool.close()

    async with pool.connection() as pooled:
        assert len(await pooled.link.fetch("SELECT client FROM commit_mark")) == 1
        pool._idle.append(pooled)
        pooled.link.terminate()
    await pool.close()


async def test_a_connection_that_cannot_be_entered_is_not_kept(cluster: PostgresCluster):
    pool = Pool(cluster.fresh_url(), SystemClock())

    with pytest.raises(Exception, match="commit_mark"):
        async with pool.connection():
            pass
