"""Every table of claimed rows, on both databases: a killed holder, one that comes back, a lost answer."""

import asyncio

import pytest

from hermes_agent.core.errors import LostLease
from hermes_agent.store.claims import Claims
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Job, JobKind
from hermes_agent.store.transaction import Change, Engine
from hermes_agent.store.work.cron.records import Instant
from hermes_agent.store.work.goals import BEGIN
from hermes_agent.store.workers import CLAIMED
from tests.databases import OpenAnother
from tests.store.made import SOON, die


async def learning_job(store: Store, name: str) -> None:
    job = Job(id=name, kind=JobKind.PROBE, session="", principal="", what="", first=0, last=0, created=1.0)
    await store.write(lambda tx: store.learning.queue(tx, job))


async def goal_round(store: Store, name: str) -> None:
    await store.write(lambda tx: tx.run(BEGIN, name, "g_000001", 1, 1, "s1", "run", 0, "cli", 1.0))


async def cron_instant(store: Store, name: str) -> None:
    await store.cron_instants.ask_for(Instant(job=name, due=1))


QUEUED = {"learning_job": learning_job, "goal_round": goal_round, "cron_instant": cron_instant}
"""How a row comes into the line of each table."""
ORDER = {"cron_instant": "ready_at, id"}


@pytest.fixture(params=CLAIMED)
def table(request: pytest.FixtureRequest) -> str:
    return request.param


def claims(store: Store, table: str) -> Claims:
    return Claims(store.engine, store.workers, table, "attempts, state", ORDER.get(table, "created, id"))


async def ended(store: Store, table: str, lease) -> bool:
    end = claims(store, table).end
    return await store.write(lambda tx: end(tx, lease, "state = 'done', ended = $4", 2.0))


def test_every_table_is_in_this_suite():
    assert set(QUEUED) == set(CLAIMED)


async def test_each_row_has_one_holder(store: Store, table: str, open_another: OpenAnother):
    for number in range(6):
        await QUEUED[table](store, f"row{number}")
    both = [claims(store, table), claims(await open_another(), table)]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each.claim()) for each in both for _ in range(3)]
    found = [task.result() for task in tasks]

    assert len({lease.id for lease, _ in filter(None, found)}) == len([each for each in found if each])


async def test_what_a_killed_worker_held_is_claimed_by_the_next(table: str, open_another: OpenAnother):
    killed, peer = await open_another(timings=SOON), await open_another(timings=SOON)
    await QUEUED[table](killed, "row")
    held = await claims(killed, table).claim()
    assert held is not None
    await peer.workers.register()
    assert await claims(peer, table).claim() is None

    await die(killed)
    async with asyncio.timeout(10):
        while (found := await claims(peer, table).claim()) is None:
            await asyncio.sleep(0.01)

    lease, (attempts, state) = found
    assert (lease.id, lease.epoch > held[0].epoch, attempts, state) == (held[0].id, True, 2, "running")


async def test_a_holder_that_comes_back_writes_nothing(table: str, open_another: OpenAnother):
    gone, peer = await open_another(timings=SOON), await open_another(timings=SOON)
    await QUEUED[table](gone, "row")
    held = await claims(gone, table).claim()
    assert held is not None
    await gone.workers.leave()
    found = await claims(peer, table).claim()
    assert found is not None

    with pytest.raises(LostLease):
        await claims(gone, table).check(held[0])
    assert not await ended(gone, table, held[0])
    await claims(gone, table).release(held[0])

    await claims(peer, table).check(found[0])
    assert await ended(peer, table, found[0])
    assert not await ended(peer, table, found[0])


class Cancelling:
    """An engine whose next change is committed, and whose caller is cancelled before it hears of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.lost = engine, False

    async def write(self, change: Change[object], *, durable: bool = True) -> object:
        found = await self._engine.write(change, durable=durable)
        if self.lost:
            self.lost = False
            raise asyncio.CancelledError
        return found

    def __getattr__(self, name: str):
        return getattr(self._engine, name)


async def test_a_claim_whose_answer_was_lost_is_in_line_again(store: Store, table: str):
    for name in ("row1", "row2"):
        await QUEUED[table](store, name)
    engine = Cancelling(store.engine)
    mine = Claims(engine, store.workers, table, "attempts", ORDER.get(table, "created, id"))
    first = await mine.claim()
    assert first is not None
    engine.lost = True
    with pytest.raises(asyncio.CancelledError):
        await mine.claim()

    again = await mine.claim()

    assert again is not None
    assert again[0].id != first[0].id
    await mine.check(first[0])
