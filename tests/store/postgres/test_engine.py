"""The PostgreSQL engine: lost connections, lost answers, conflicts, a server that is away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import DatabaseUnreachable, StoreError
from hermes_agent.store.database import Store, open_store
from hermes_agent.store.inbox import Ending
from hermes_agent.store.postgres.driver import Link
from hermes_agent.store.postgres.engine import PostgresEngine, PostgresPresence
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.workers import Timings
from tests.doubles.postgres import PostgresCluster
from tests.store.made import add, append, claimed, mail, session

APPEND = "UPDATE session SET title = title || 'x'"


@pytest.fixture
async def store(cluster: PostgresCluster) -> AsyncIterator[Store]:
    store = await open_store(cluster.fresh_url(), timings=Timings(busy=5.0))
    await add(store, session("t"))
    yield store
    await store.close()


async def title(store: Store) -> str:
    record = await store.sessions.get("t")
    assert record is not None
    return record.title


def cut(store: Store, *, times: int, after: bool) -> None:
    """Lose the connection at the next commits: before the server hears of it, or after it has committed."""
    left = times
    commit: Callable[[Link], Awaitable[None]] = store.engine._commit

    async def lossy(link: Link) -> None:
        nonlocal left
        left -= 1
        if left >= 0 and not after:
            link.terminate()
        await commit(link)
        if left >= 0:
            link.terminate()
            raise ConnectionResetError("lost on the way back")

    store.engine._commit = lossy


@pytest.mark.parametrize("after", [True, False])
async def test_a_commit_whose_answer_is_lost_counts_once(store: Store, after: bool):
    cut(store, times=2, after=after)

    assert await store.write(lambda tx: tx.run(APPEND)) == 1
    assert await store.write(lambda tx: tx.run(APPEND)) == 1

    assert await title(store) == "xx"


@pytest.mark.parametrize("after", [True, False])
async def test_a_finish_whose_answer_is_lost_gives_the_lane_back_once(store: Store, after: bool):
    lease = await claimed(store)
    await append(store, lease, 1)
    cut(store, times=1, after=after)

    async def finish(tx):
        await store.history.append(tx, lease, [])
        return await store.inbox.finish(tx, lease, lease.pending, Ending.ANSWERED)

    assert await store.write(finish) is True

    async def query(tx):
        return await tx.row("SELECT pending, owner FROM lane WHERE id = 's1'")

    assert await store.read(query) == (0, None)


async def test_a_look_whose_commit_is_lost_is_looked_again(store: Store):
    cut(store, times=1, after=True)

    assert await store.write(lambda tx: tx.row("SELECT 1")) == (1,)


async def test_a_connection_that_the_server_ends_is_replaced(store: Store, cluster: PostgresCluster):
    assert await title(store) == ""
    await asyncio.to_thread(cluster.hang_up)

    assert await title(store) == ""
    await store.write(lambda tx: tx.run(APPEND))
    assert await title(store) == "x"


async def test_a_deadlock_is_run_again(store: Store):
    await add(store, session("u"))
    met = asyncio.Barrier(2)
    tries = 0

    def change(first: str, second: str):
        waited = False

        async def rename(tx):
            nonlocal waited, tries
            tries += 1
            await tx.run("UPDATE session SET title = title || 'd' WHERE id = $1", first)
            if not waited:
                waited = True
                await met.wait()
            await tx.run("UPDATE session SET title = title || 'd' WHERE id = $1", second)

        return rename

    async with asyncio.TaskGroup() as group:
        group.create_task(store.write(change("t", "u")))
        group.create_task(store.write(change("u", "t")))

    assert await title(store) == "dd"
    assert tries == 3


async def test_a_server_that_stays_away_is_an_error(cluster: PostgresCluster):
    store = await open_store(cluster.fresh_url(), timings=Timings(busy=0.2))
    cluster.stop()
    try:
        with pytest.raises(DatabaseUnreachable, match="cannot be reached"):
            await store.sessions.list()
        with pytest.raises(DatabaseUnreachable, match="cannot be reached"):
            await store.write(lambda tx: tx.run(APPEND))
    finally:
        cluster.start()
    assert await store.sessions.list() == []
    await store.close()


async def test_who_ends_does_not_wait_for_a_server_that_is_away(cluster: PostgresCluster):
    store = await open_store(cluster.fresh_url())
    cluster.stop()
    try:
        waiting = asyncio.create_task(store.write(lambda tx: tx.run(APPEND)))
        while not store.engine.blocked:
            await asyncio.sleep(0.01)
        store.engine.hurry()
        async with asyncio.timeout(2):
            with pytest.raises(DatabaseUnreachable, match="cannot be reached"):
                await waiting
    finally:
        cluster.start()
    await store.close()


async def test_a_change_that_is_cancelled_leaves_no_open_transaction(store: Store, cluster: PostgresCluster):
    async def slow(tx):
        await tx.run(APPEND)
        await tx.rows("SELECT pg_sleep(30)")

    task = asyncio.create_task(store.write(slow))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    async with asyncio.timeout(5):
        await store.write(lambda tx: tx.run(APPEND))
    assert await title(store) == "x"


async def test_many_at_once_share_a_few_connections(store: Store, cluster: PostgresCluster):
    async with asyncio.TaskGroup() as group:
        for _ in range(40):
            group.create_task(store.read(lambda tx: tx.rows("SELECT pg_sleep(0.005)")))

    assert len(store.engine._pool._idle) <= 8


async def test_a_connection_that_was_idle_for_long_is_not_used_again(store: Store):
    await title(store)
    old = store.engine._pool._idle[-1]
    old.used -= 10_000.0

    await title(store)

    assert old.link.is_closed()


async def test_a_loop_that_ended_takes_its_store_along(cluster: PostgresCluster):
    url = cluster.fresh_url()

    def elsewhere() -> Store:
        async def leave() -> Store:
            store = await open_store(url)
            await store.engine._pool.close()
            return store

        return asyncio.run(leave())

    store = await asyncio.to_thread(elsewhere)

    with pytest.raises(DatabaseUnreachable, match="closed"):
        await store.sessions.list()
    await store.close()


async def test_a_refusal_names_the_database(store: Store):
    with pytest.raises(StoreError, match="PostgreSQL refused"):
        await store.write(lambda tx: tx.run("INSERT INTO session (id) VALUES ('x')"))


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
