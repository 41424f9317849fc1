"""Presence on a server: the lock of life comes back, and its absence proves nothing right after a start."""

import asyncio

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.store.database import open_store
from hermes_agent.store.postgres.engine import PostgresEngine
from hermes_agent.store.postgres.presence import PostgresPresence
from hermes_agent.store.transaction import Transaction
from tests.doubles.postgres import PostgresCluster
from tests.store.made import add, mail, session

ME = [("aaaaaaaaaaaa", 1)]


@pytest.fixture
async def engine(cluster: PostgresCluster):
    url = cluster.fresh_url()
    await (await open_store(url)).close()
    engine = PostgresEngine(url, "bell", SystemClock(), patience=5.0)
    yield engine
    await engine.close()


def presence(engine: PostgresEngine, *, grace: float = 0.0, blink: float = 0.0) -> PostgresPresence:
    return PostgresPresence(engine, SystemClock(), grace=grace, blink=blink)


async def test_a_worker_lives_as_long_as_its_connection(engine: PostgresEngine):
    here, there = presence(engine), presence(engine)
    await here.arrive("aaaaaaaaaaaa", 1)
    assert await there.dead(ME) == []

    await here.leave()

    async with asyncio.timeout(5):
        while await there.dead(ME) != ["aaaaaaaaaaaa"]:
            await asyncio.sleep(0.01)
    await there.buried("aaaaaaaaaaaa")
    await here.leave()


async def test_a_lock_that_is_missing_for_a_blink_proves_nothing(engine: PostgresEngine):
    there = presence(engine, blink=60.0)

    assert await there.dead(ME) == []
    assert await there.dead(ME) == []
    assert there.suspicious() is False


async def test_after_a_servers_start_nobody_is_judged(engine: PostgresEngine):
    assert await presence(engine, grace=1e9).check() is False
    assert await presence(engine, grace=0.0).check() is True


async def test_a_lost_connection_comes_back_with_its_lock(engine: PostgresEngine, cluster: PostgresCluster):
    here, there = presence(engine), presence(engine)
    await here.arrive("aaaaaaaaaaaa", 1)

    await asyncio.to_thread(cluster.hang_up)

    async with asyncio.timeout(5):
        assert await here.wait(5.0) is True  # It may have missed a ring.
        while await there.dead(ME):
            await here.wait(0.05)
    await here.leave()


async def test_whoever_lost_its_own_connection_judges_nobody_for_a_while(
    engine: PostgresEngine, cluster: PostgresCluster
):
    here = presence(engine, grace=1.0)
    await here.arrive("aaaaaaaaaaaa", 1)
    async with asyncio.timeout(5):
        while not await here.check():  # The server may be younger than that.
            await here.wait(0.05)

    await asyncio.to_thread(cluster.hang_up)
    async with asyncio.timeout(5):
        while await here.check():
            await here.wait(0.05)
        while not await here.check():
            await here.wait(0.05)
    await here.leave()


async def test_a_server_that_is_away_is_waited_for(cluster: PostgresCluster):
    store = await open_store(cluster.fresh_url())
    await store.workers.register()
    while await store.workers.wait(0.05):
        pass
    cluster.stop()
    assert await store.workers.wait(1.0) is True
    assert await store.workers.wait(1.0) is True

    cluster.start()

    await add(store, session())
    await store.inbox.accept(mail(), "s1", "main")
    assert await store.workers.wait(5.0) is True
    await store.close()


async def test_a_connection_that_is_refused_for_another_reason_is_an_error(engine: PostgresEngine):
    here = presence(engine)
    await here.arrive("aaaaaaaaaaaa", 1)
    await here.leave()
    engine.url = engine.url.replace("/postgres?", "/nowhere?")

    with pytest.raises(Exception, match="nowhere"):
        await here.wait(1.0)


async def test_whoever_is_cancelled_on_the_way_back_leaves_no_connection_that_holds_the_lock(
    engine: PostgresEngine, cluster: PostgresCluster
):
    here = presence(engine)
    await here.arrive("aaaaaaaaaaaa", 1)
    await asyncio.to_thread(cluster.hang_up)
    for steps in range(12):  # As a look that is wanted in here cancels the wait for a ring.
        waiting = asyncio.create_task(here.wait(5.0))
        for _ in range(steps):
            await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.wait((waiting,))

    async with asyncio.timeout(10):
        while here._connection is None or here._connection.is_closed():
            await here.wait(1.0)
    assert await engine.read(listening) == 1
    await here.leave()


async def listening(tx: Transaction) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
    row = await tx.row(query)
    return 0 if row is None else int(row[0])


async def test_a_lost_connection_that_the_server_still_takes_for_alive_keeps_nobody_out(engine: PostgresEngine):
    here = presence(engine)
    await here.arrive("aaaaaaaaaaaa", 1)
    lost, here._connection = here._connection, None

    async with asyncio.timeout(5):
        assert await here.wait(1.0) is True

    assert here._connection is not None
    assert lost is not None
    lost.terminate()
    await here.leave()


async def test_a_server_that_forgets_its_notifications_is_asked_again_within_a_second(cluster: PostgresCluster):
    url = cluster.fresh_url()
    here, there = await open_store(url), await open_store(url)
    await there.workers.register()
    while await there.workers.wait(0.05):
        pass
    here.engine.channel = "nobody"
    await add(here, session())
    await here.inbox.accept(mail(), "s1", "main")

    async with asyncio.timeout(3):
        assert await there.workers.wait(60.0) is False
    assert await there.lanes.claim(("main",)) is not None
    await there.close()
    await here.close()
