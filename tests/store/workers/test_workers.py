"""Workers: who is alive, whose lanes are freed, and who may still act."""

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.core.errors import DatabaseTooNew, LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Dialect
from hermes_agent.store.workers import Timings
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother
from tests.store.made import QUEUE, QUEUES, SOON, add, append, claimed, die, mail, reaped, registered, session

LATER = {
    Dialect.SQLITE: "PRAGMA user_version = 99",
    Dialect.POSTGRES: "UPDATE hermes_format SET version = 99",
}


async def test_a_worker_is_unknown_until_it_claims(store: Store):
    assert await registered(store) == []

    await store.lanes.claim(QUEUES)

    assert await registered(store) == [store.workers.id]


async def test_registering_at_once_from_two_tasks_is_once(store: Store):
    async with asyncio.TaskGroup() as group:
        group.create_task(store.workers.register())
        group.create_task(store.workers.register())

    assert await registered(store) == [store.workers.id]


async def test_a_registration_that_is_cancelled_leaves_nothing_and_can_be_made_again(store: Store):
    registering = asyncio.create_task(store.workers.register())
    await asyncio.sleep(0)
    registering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await registering

    await store.workers.register()

    assert await registered(store) == [store.workers.id]


async def test_a_worker_that_leaves_gives_its_lanes_back_without_a_crash(store: Store, open_another: OpenAnother):
    leaving = await open_another()
    await claimed(leaving)

    await leaving.close()

    lease = await store.lanes.claim(QUEUES)
    assert lease is not None
    assert lease.crashes == 0
    assert await registered(store) == [store.workers.id]


async def test_new_mail_rings_every_worker(store: Store, open_another: OpenAnother):
    other = await open_another()
    await other.workers.register()
    await store.workers.register()
    await quiet(other)
    await quiet(store)

    await add(store, session())
    await store.inbox.accept(mail(1), "s1", QUEUE)

    assert await other.workers.wait(5.0) is True
    assert await store.workers.wait(5.0) is True


async def test_mail_for_an_owned_lane_rings_its_owner_alone(store: Store, open_another: OpenAnother):
    other = await open_another()
    await other.workers.register()
    await claimed(store)
    await quiet(other)
    await quiet(store)

    await other.inbox.accept(mail(2), "s1", QUEUE)

    assert await store.workers.wait(5.0) is True
    assert await other.workers.wait(0.05) is False


async def test_a_ring_before_the_wait_is_not_lost(store: Store):
    await store.workers.register()
    await quiet(store)
    await add(store, session())
    await store.inbox.accept(mail(1), "s1", QUEUE)
    await asyncio.sleep(0.05)

    assert await store.workers.wait(0.05) is True


async def quiet(store: Store) -> None:
    while await store.workers.wait(0.02):
        pass


async def test_the_lanes_of_a_dead_worker_are_freed_and_count_a_crash(store: Store, open_another: OpenAnother):
    dying, peer = await open_another(), await open_another(timings=SOON)
    await peer.workers.register()
    lease = await claimed(dying)
    await die(dying)

    freed = await reaped(peer)

    assert freed == ["s1"]
    again = await peer.lanes.claim(QUEUES)
    assert again is not None
    assert (again.crashes, again.attempts) == (1, 0)
    assert again.epoch > lease.epoch


async def test_a_new_worker_takes_away_what_only_left_its_name(store: Store, open_another: OpenAnother):
    await store.workers.register()
    await die(store)
    peer = await open_another(timings=SOON)

    await peer.workers.register()

    assert await registered(peer) == [peer.workers.id]


async def test_the_living_are_not_reaped(store: Store, open_another: OpenAnother):
    peer = await open_another(timings=SOON)
    await claimed(store)

    for _ in range(3):
        assert await peer.workers.reap() == []


async def test_who_lost_the_lane_says_no_more_that_it_waits(store: Store):
    lease = await claimed(store)
    await store.lanes.release(lease)

    with pytest.raises(LostLease):
        await store.write(lambda tx: store.lanes.waits(tx, lease, True))


async def take_over(store: Store, other: Store) -> None:
    async def change(tx):
        await tx.run("UPDATE lane SET owner = NULL, ready_at = 0")

    await store.write(change)
    assert await other.lanes.claim(QUEUES) is not None


async def test_a_worker_that_was_silent_for_longer_than_the_ttl_is_given_up(open_another: OpenAnother):
    silent = await open_another(timings=Timings(ttl=0.05))
    peer = await open_another(timings=replace(SOON, ttl=0.05))
    await peer.workers.register()
    lease = await claimed(silent)

    assert await reaped(peer) == ["s1"]

    with pytest.raises(LostLease):
        await append(silent, lease, 1)


async def test_a_worker_that_was_heard_of_meanwhile_is_not_given_up(open_another: OpenAnother):
    store, peer = await open_another(), await open_another()
    await claimed(store)

    assert await peer.workers._bury(store.workers.id, seen=-1.0) == []


async def test_a_heartbeat_keeps_a_worker(open_another: OpenAnother):
    clock = FakeClock()
    store = await open_another(clock=clock)
    lease = await claimed(store)

    for _ in range(10):
        await clock.advance(10.0)
        await store.workers.tend(("s1",))

    store.workers.alive(lease)
    await append(store, lease, 1)


async def test_a_zombie_knows_before_its_next_effect(open_another: OpenAnother):
    clock = FakeClock()
    store = await open_another(clock=clock)
    lease = await claimed(store)
    store.workers.alive(lease)

    await clock.advance(15.1)

    with pytest.raises(LostLease):
        store.workers.alive(lease)


async def test_a_heartbeat_that_wakes_first_does_not_hide_the_gap(open_another: OpenAnother):
    """The zombie's heartbeat may run before the turn does; what it held before is void all the same."""
    clock = FakeClock()
    store = await open_another(clock=clock)
    lease = await claimed(store)
    await clock.advance(15.1)

    await store.workers.beat()

    with pytest.raises(LostLease):
        store.workers.alive(lease)
    fresh = await again(store, lease)
    store.workers.alive(fresh)


async def again(store: Store, lease):
    await store.lanes.release(lease)
    fresh = await store.lanes.claim(QUEUES)
    assert fresh is not None
    return fresh


async def test_a_worker_that_was_given_up_starts_over(store: Store, open_another: OpenAnother):
    peer = await open_another()
    lease = await claimed(store)
    await peer.workers._bury(store.workers.id, None)

    await store.workers.beat()

    with pytest.raises(LostLease):
        store.workers.alive(lease)
    assert store.workers.id in await registered(store)


async def test_lanes_owned_but_not_running_are_let_go_at_the_second_look(store: Store):
    await claimed(store)

    assert await store.workers.sweep(()) == []
    assert await store.workers.sweep(()) == ["s1"]

    lease = await store.lanes.claim(QUEUES)
    assert lease is not None
    assert lease.crashes == 0


async def test_lanes_that_run_are_kept(store: Store):
    await claimed(store)

    for _ in range(3):
        assert await store.workers.sweep(("s1",)) == []


async def test_tending_tells_when_it_wants_to_be_called_again(open_another: OpenAnother):
    clock = FakeClock()
    store = await open_another(clock=clock, timings=Timings(look=20.0))
    assert await store.workers.tend(()) == pytest.approx(20.0)

    await clock.advance(5.0)
    assert await store.workers.tend(()) == pytest.approx(15.0)
    assert await store.workers.tend(("s1",)) <= 5.0


async def test_tending_reaps_when_it_is_due(store: Store, open_another: OpenAnother):
    peer = await open_another(timings=SOON)
    await claimed(store)
    await die(store)

    async with asyncio.timeout(10):
        while await peer.lanes.claim(QUEUES) is None:
            await peer.workers.tend(())


async def test_a_worker_stops_at_a_database_that_a_later_version_has_changed(open_another: OpenAnother):
    clock = FakeClock()
    store = await open_another(clock=clock, timings=Timings(look=20.0))
    await store.workers.tend(())
    await store.write(lambda tx: tx.run(LATER[tx.dialect]))

    await store.workers.tend(())  # It was looked for a moment ago.
    await clock.advance(6.0)
    with pytest.raises(DatabaseTooNew, match=r"its format is 99, this process knows \d+\): it works no more"):
        await store.workers.tend(())
