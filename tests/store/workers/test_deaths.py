"""Deaths of workers: what counts against the lanes that they had in hand, and what clears these."""

from dataclasses import replace

import pytest

from hermes_agent.host.process_table import this_boot
from hermes_agent.store.database import Store
from hermes_agent.store.leases import Lease
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother
from tests.store.made import QUEUE, QUEUES, SOON, add, answer, append, claimed, die, mail, reaped, registered, session


async def test_what_was_there_at_two_deaths_is_put_aside_and_at_the_third_it_waits(
    store: Store, open_another: OpenAnother
):
    clock = FakeClock(now=1000.0)
    aside = replace(SOON, crash_pause=30.0)
    peer = await open_another(clock=clock, timings=aside)
    await claimed(store)
    await store.lanes.release(await lease_of(store, "s1"))
    for pause in (0.0, 30.0):
        await died_of(peer, open_another, "s1", clock=clock, timings=aside)
        assert await peer.lanes.next_ready(QUEUES) == pytest.approx(pause)
    clock.set_now(1030.0)
    suspect = await lease_of(peer, "s1")
    assert (suspect.crashes, suspect.suspect, suspect.deadly) == (2, True, False)
    await peer.lanes.release(suspect)

    await died_of(peer, open_another, "s1", clock=clock, timings=aside)

    clock.set_now(1060.0)
    deadly = await lease_of(peer, "s1")
    assert (deadly.crashes, deadly.suspect, deadly.deadly, deadly.poison) == (3, True, True, "")
    assert not deadly.retried().deadly


async def lease_of(store: Store, lane: str) -> Lease:
    row = await store.read(lambda tx: tx.row("SELECT owner, epoch FROM lane WHERE id = $1", lane))
    if row == (store.workers.id, row[1]):
        return Lease(lane=lane, worker=row[0], epoch=row[1])
    lease = await store.lanes.claim(QUEUES, lane)
    assert lease is not None
    return lease


async def deaths_of(store: Store, *lanes: str) -> list[int]:
    """How many deaths count against each."""
    rows = await store.read(lambda tx: tx.rows("SELECT id, crashes FROM lane"))
    return [dict(rows)[lane] for lane in lanes]


async def some(store: Store, *names: str) -> None:
    for name in names:
        await add(store, session(name))
        await store.inbox.accept(mail(name), name, QUEUE)


async def test_a_death_without_what_was_put_aside_clears_it(store: Store, open_another: OpenAnother):
    """Deaths go on while it waits: they come from outside."""
    peer = await open_another(timings=SOON)
    await some(store, "s1", "s2", "new")
    for _ in range(2):
        await died_of(peer, open_another, "s1", "s2")
    assert await deaths_of(store, "s1", "s2") == [2, 2]

    await died_of(peer, open_another, "new")

    assert await deaths_of(store, "s1", "s2", "new") == [0, 0, 1]


async def test_a_death_with_nothing_in_hand_clears_too(store: Store, open_another: OpenAnother):
    peer = await open_another(timings=SOON)
    await some(store, "s1")
    for _ in range(2):
        await died_of(peer, open_another, "s1")
    idle = await open_another()
    await idle.workers.register()
    await die(idle)

    newcomer = await open_another(timings=SOON)
    await newcomer.workers.register()  # It looks also for those who had nothing.

    assert await deaths_of(store, "s1") == [0]


async def test_one_suspect_that_dies_does_not_clear_another(store: Store, open_another: OpenAnother):
    """Each kills the program: were one cleared by the other, it would never end."""
    peer = await open_another(timings=SOON)
    await some(store, "s1", "s2")
    for _ in range(2):
        await died_of(peer, open_another, "s1", "s2")

    await died_of(peer, open_another, "s1")
    await died_of(peer, open_another, "s2")

    assert await deaths_of(store, "s1", "s2") == [3, 3]


async def test_who_died_together_with_the_suspect_does_not_clear_it(store: Store, open_another: OpenAnother):
    """One kill may end several processes: of those that were there before it was put aside none says anything."""
    idle, peer = await open_another(), await open_another(timings=SOON)
    await idle.workers.register()
    await some(store, "s1")
    for _ in range(2):
        await died_of(peer, open_another, "s1")

    await die(idle)
    newcomer = await open_another(timings=SOON)
    await newcomer.workers.register()

    assert await registered(store) == sorted((peer.workers.id, newcomer.workers.id))
    assert await deaths_of(store, "s1") == [2]


async def test_a_start_of_the_machine_counts_against_nobody(store: Store, open_another: OpenAnother):
    peer = await open_another(timings=SOON)
    await peer.workers.register()
    await some(store, "s1")
    here = this_boot()
    for boot, deaths in ((f"{here}-before", 0), ("elsewhere 1", 1), ("", 2)):
        dying = await open_another()
        await lease_of(dying, "s1")
        update = ("UPDATE worker SET name = $2 WHERE id = $1", dying.workers.id, boot)
        await dying.write(lambda tx, update=update: tx.run(*update))
        await die(dying)
        assert await reaped(peer) == ["s1"]
        assert await deaths_of(store, "s1") == [deaths]


async def died_of(peer: Store, open_another: OpenAnother, *lanes: str, **how: object) -> None:
    """A worker dies that had those lanes in hand."""
    dying = await open_another(**(how or {"timings": SOON}))
    await peer.workers.register()
    for lane in lanes:
        lease = await dying.lanes.claim(QUEUES, lane)
        assert lease is not None
    await die(dying)
    await reaped(peer)


async def test_the_suspect_waits_and_not_who_was_beside_it(store: Store, open_another: OpenAnother):
    peer = await open_another(timings=SOON)
    await some(store, "bad", "good", "new")
    for _ in range(2):
        await died_of(peer, open_another, "bad", "good")
    await died_of(peer, open_another, "bad", "new")

    leases = [await store.lanes.claim(QUEUES, name) for name in ("bad", "good", "new")]

    assert [(lease.crashes, lease.deadly) for lease in leases if lease] == [(3, True), (2, False), (1, False)]


async def test_a_run_that_waits_for_a_person_is_never_to_blame(store: Store, open_another: OpenAnother):
    peer = await open_another(timings=SOON)
    lease = await claimed(store)
    await store.write(lambda tx: store.lanes.waits(tx, lease, True))
    await store.lanes.release(lease)

    for _ in range(4):
        await died_of(peer, open_another, "s1")

    again = await store.lanes.claim(QUEUES)
    assert again is not None
    assert (again.crashes, again.deadly, again.waits) == (0, False, True)


async def test_a_run_that_does_something_again_is_to_blame_like_any_other(store: Store, open_another: OpenAnother):
    clock = FakeClock(now=1000.0)
    peer = await open_another(clock=clock, timings=SOON)
    lease = await claimed(store)
    for said in (True, False):
        await store.write(lambda tx, said=said: store.lanes.waits(tx, lease, said))
    await store.lanes.release(lease)

    for _ in range(3):
        await died_of(peer, open_another, "s1")
        clock.set_now(clock.now() + 100.0)

    again = await peer.lanes.claim(QUEUES)
    assert again is not None
    assert (again.crashes, again.deadly, again.waits) == (3, True, False)


@pytest.mark.parametrize("now", [1_900_000_000.0, 0.0])
async def test_a_clock_that_jumps_while_others_wait_frees_nobodys_claim(open_another: OpenAnother, now: float):
    clock = FakeClock(now=1_800_000_000.0)
    holder, waiter = await open_another(clock=clock), await open_another(clock=clock)
    lease = await claimed(holder)

    clock.set_now(now)
    await waiter.workers.reap()

    assert await waiter.lanes.claim(QUEUES) is None
    await append(holder, lease, 1)
    assert await answer(holder, lease)
