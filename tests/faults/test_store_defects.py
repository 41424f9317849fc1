"""Defects that stores of this kind have had: each must stay impossible."""

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.leases import fence
from hermes_agent.store.workers import Timings
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother
from tests.doubles.postgres import PostgresCluster
from tests.store.made import QUEUE, QUEUES, add, answer, append, claimed, mail, session


async def test_a_zombie_whose_heartbeat_wakes_first_runs_no_effect(open_another: OpenAnother):
    clock = FakeClock()
    zombie, peer = await open_another(clock=clock), await open_another()
    lease = await claimed(zombie)
    await clock.advance(60.0)
    await peer.workers._bury(zombie.workers.id, None)
    taken = await peer.lanes.claim(QUEUES)
    assert taken is not None

    await zombie.workers.beat()

    with pytest.raises(LostLease):
        zombie.workers.alive(lease)
    with pytest.raises(LostLease):
        await append(zombie, lease, 1)
    await append(peer, taken, 1)


async def test_a_finish_that_is_tried_again_ends_no_other_mail(store: Store):
    lease = await claimed(store)
    await store.inbox.accept(mail(2), "s1", QUEUE)
    await store.inbox.accept(mail(3), "s1", QUEUE)

    for _ in range(3):
        assert await answer(store, lease) is False

    assert await pending(store) == 2


async def pending(store: Store) -> int:
    async def query(tx):
        return (await tx.row("SELECT pending FROM lane WHERE id = 's1'"))[0]

    return await store.read(query)


async def test_a_claim_whose_answer_was_lost_does_not_strand_its_lane(store: Store):
    """The lane is owned by a live worker and runs nowhere."""
    await claimed(store)

    await store.workers.sweep(())
    await store.workers.sweep(())

    assert await store.lanes.claim(QUEUES) is not None


async def test_a_claim_never_sees_mail_that_was_just_ended(store: Store, open_another: OpenAnother):
    await add(store, session())
    for number in range(60):
        await store.inbox.accept(mail(number), "s1", QUEUE)
    seen: list[int] = []

    async def work(worker: Store) -> None:
        while await pending(worker):
            lease = await worker.lanes.claim(QUEUES)
            if lease is None:
                continue
            seen.append(lease.waiting[0])
            if not await answer(worker, lease, lease.waiting[:1]):
                await worker.lanes.release(lease)

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(work(await open_another()))

    assert seen == sorted(set(seen))
    assert len(seen) == 60


async def test_a_servers_restart_frees_no_lane_of_the_living(cluster: PostgresCluster, open_postgres: OpenAnother):
    """All locks of life are gone with the server, and nobody has had the time to take theirs again."""
    patient = Timings(look=0.0, blink=0.0, grace=30.0)
    store, peer = await open_postgres(timings=patient), await open_postgres(timings=patient)
    lease = await claimed(store)
    await peer.workers.register()

    await asyncio.to_thread(cluster.stop)
    await asyncio.to_thread(cluster.start)

    assert await peer.workers.reap() == []
    await store.write(lambda tx: fence(tx, lease))
    await store.workers.wait(1.0)
    hasty = await open_postgres(timings=replace(patient, grace=0.0))
    assert await hasty.workers.reap() == []


async def test_deaths_of_the_machine_use_up_no_attempts_of_the_task(open_another: OpenAnother):
    clock = FakeClock(now=1000.0)
    store, peer = await open_another(clock=clock), await open_another(clock=clock)
    await claimed(store)
    await peer.workers.register()

    for _ in range(20):
        await peer.workers._bury(store.workers.id, None)
        clock.set_now(clock.now() + 100.0)
        await store.workers.beat()
        lease = await store.lanes.claim(QUEUES)
        assert lease is not None
        assert lease.attempts == 0

    assert lease.crashes == 20
