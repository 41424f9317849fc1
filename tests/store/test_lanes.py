"""Lanes: one owner each, in the order of their mail, with back-off, refusal and stop."""

import asyncio

import pytest

from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending
from hermes_agent.store.lanes import Lanes
from hermes_agent.store.transaction import Change, Dialect, Engine, Row, Transaction, Value
from hermes_agent.store.workers import Timings
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother
from tests.store.made import QUEUE, QUEUES, add, answer, claimed, mail, session

MANY_LANES = (
    "INSERT INTO lane (id, queue, pending, queued, ready_at, epoch, stop_epoch, attempts, crashes, error) "
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
    "SELECT 's' || i, CASE WHEN i % 2 = 0 THEN 'main' ELSE 'cli' END, 1, i, 0, 0, 0, 0, 0, '' FROM n"
)


async def accept(store: Store, name: str, number: int, ready_at: float | None = None, queue: str = QUEUE) -> None:
    await store.inbox.accept(mail(number), name, queue, ready_at)


async def test_a_lane_has_one_owner(store: Store, open_another: OpenAnother):
    await claimed(store)
    other = await open_another()

    assert await store.lanes.claim(QUEUES) is None
    assert await other.lanes.claim(QUEUES) is None


async def test_the_lane_that_waited_longest_comes_first(store: Store):
    for number, name in enumerate(("s1", "s2", "s3")):
        await accept(store, name, number)

    leases = [await store.lanes.claim(QUEUES) for _ in range(3)]

    assert [lease.lane for lease in leases if lease] == ["s1", "s2", "s3"]


async def test_many_claims_at_once_share_the_lanes(store: Store, open_another: OpenAnother):
    other = await open_another()
    for number in range(20):
        await accept(store, f"s{number}", number)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(who.lanes.claim(QUEUES)) for who in (store, other) for _ in range(15)]
    leases = [lease for task in tasks if (lease := task.result())]

    # A claim may miss a lane that another one is just taking; none takes the same.
    assert len({lease.lane for lease in leases}) == len(leases)
    assert len(leases) >= 15


async def test_a_worker_claims_from_its_queues_only(store: Store):
    await accept(store, "s1", 1, queue="cli")

    assert await store.lanes.claim(["main", "other"]) is None
    lease = await store.lanes.claim(["main", "cli"])

    assert lease is not None


async def test_queues_take_turns(store: Store):
    for number in range(6):
        await accept(store, f"s{number}", number, queue="main" if number < 4 else "cli")

    leases = [await store.lanes.claim(["main", "cli"]) for _ in range(6)]

    assert [lease.lane for lease in leases if lease] == ["s0", "s4", "s1", "s5", "s2", "s3"]


class Explaining:
    """An engine, or a transaction of it, that notes the plan of each statement that gives a row."""

    def __init__(self, inner: Engine | Transaction, plans: list[str]) -> None:
        self._inner, self._plans = inner, plans

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    async def write(self, change: Change[object], *, durable: bool = True) -> object:
        return await self._inner.write(lambda tx: change(Explaining(tx, self._plans)), durable=durable)

    async def row(self, sql: str, *params: Value) -> Row | None:
        explain = "EXPLAIN QUERY PLAN" if self.dialect is Dialect.SQLITE else "EXPLAIN"
        self._plans += [str(row[-1]) for row in await self._inner.rows(f"{explain} {sql}", *params)]
        return await self._inner.row(sql, *params)


async def test_no_claim_sorts_what_is_ready(store: Store):
    """The first of very many lanes is the first of an index."""
    plans: list[str] = []
    lanes = Lanes(Explaining(store.engine, plans), FakeClock(now=1.0), store.workers, Timings())
    await store.write(lambda tx: tx.run(MANY_LANES))

    assert await lanes.claim(["main", "cli"])

    assert [line for line in plans if "lane_ready" in line]
    assert not [line for line in plans if "sort" in line.lower() or "b-tree" in line.lower()]


async def test_one_lane_can_be_asked_for(store: Store):
    await accept(store, "s1", 1)
    await accept(store, "s2", 2)

    lease = await store.lanes.claim(QUEUES, "s2")

    assert lease is not None
    assert lease.lane == "s2"
    assert await store.lanes.claim(QUEUES, "s3") is None


async def test_a_lane_is_held_without_mail(store: Store, open_another: OpenAnother):
    await add(store, session())
    other = await open_another()

    lease = await store.lanes.hold("s1", QUEUE)

    assert lease is not None
    assert lease.pending == ()
    assert await other.lanes.hold("s1", QUEUE) is None
    await store.lanes.release(lease)
    assert await other.lanes.hold("s1", QUEUE) is not None


async def test_a_message_can_wait_for_more_to_come(open_another: OpenAnother):
    clock = FakeClock(now=100.0)
    store = await open_another(clock=clock)
    await accept(store, "s1", 1, ready_at=101.0)
    await accept(store, "s1", 2, ready_at=102.0)

    clock.set_now(101.5)
    assert await store.lanes.claim(QUEUES) is None
    assert await store.lanes.next_ready(QUEUES) == pytest.approx(0.5)

    clock.set_now(102.0)
    lease = await store.lanes.claim(QUEUES)
    assert lease is not None
    assert len(lease.waiting) == 2


async def test_a_clock_that_was_set_back_keeps_nobody_waiting(open_another: OpenAnother):
    clock = FakeClock(now=100_000.0)
    store = await open_another(clock=clock)
    await accept(store, "s1", 1, ready_at=100_001.0)
    clock.set_now(0.0)

    assert await store.lanes.next_ready(QUEUES) == 0.0
    assert await store.lanes.claim(QUEUES) is not None


async def test_where_nothing_waits_nothing_is_next(store: Store):
    assert await store.lanes.next_ready(QUEUES) is None
    await claimed(store)
    assert await store.lanes.next_ready(QUEUES) is None


async def test_what_is_next_may_be_asked_of_some_lanes_only(open_another: OpenAnother):
    store = await open_another(clock=FakeClock(now=100.0))
    await accept(store, "s1", 1, ready_at=101.0)
    await accept(store, "s2", 2, ready_at=105.0)

    assert await store.lanes.next_ready(QUEUES, ["s2", "s3"]) == pytest.approx(5.0)
    assert await store.lanes.next_ready(QUEUES, ["s3"]) is None
    assert await store.lanes.next_ready(QUEUES, []) is None


async def test_what_workers_may_have_died_of_can_be_left_for_later(store: Store):
    await accept(store, "s1", 1)
    await accept(store, "s2", 2)
    await store.write(lambda tx: tx.run("UPDATE lane SET crashes = 2 WHERE id = 's1'"))

    lease = await store.lanes.claim(QUEUES, suspects=False)
    assert lease is not None
    assert (lease.lane, lease.suspect) == ("s2", False)
    assert await store.lanes.claim(QUEUES, suspects=False) is None
    assert await store.lanes.next_ready(QUEUES, suspects=False) is None
    assert await store.lanes.next_ready(QUEUES, ["s1"], suspects=False) == 0.0

    suspect = await store.lanes.claim(QUEUES)
    assert suspect is not None
    assert (suspect.lane, suspect.suspect) == ("s1", True)


async def test_an_answer_clears_of_suspicion(store: Store):
    lease = await claimed(store)
    await store.write(lambda tx: tx.run("UPDATE lane SET crashes = 4"))
    await answer(store, lease)
    await accept(store, "s1", 2)

    again = await store.lanes.claim(QUEUES)

    assert again is not None
    assert (again.crashes, again.suspect) == (0, False)


async def test_a_failure_is_tried_again_later_each_time(open_another: OpenAnother):
    clock = FakeClock(now=100.0)
    store = await open_another(clock=clock)
    await claimed_by(store)
    pauses = []
    for _ in range(3):
        lease = await store.lanes.claim(QUEUES)
        assert lease is not None
        assert await store.lanes.release(lease, error="no model") is True
        pause = await store.lanes.next_ready(QUEUES)
        assert pause is not None
        pauses.append(pause)
        clock.set_now(clock.now() + pause)

    assert pauses == [1.0, 2.0, 4.0]


async def claimed_by(store: Store) -> None:
    await add(store, session())
    await accept(store, "s1", 1)


async def test_new_mail_does_not_shorten_a_back_off(open_another: OpenAnother):
    clock = FakeClock(now=100.0)
    store = await open_another(clock=clock)
    lease = await claimed(store)
    await store.lanes.release(lease, error="no model", delay=30.0)

    await accept(store, "s1", 2)

    assert await store.lanes.next_ready(QUEUES) == 30.0
    assert await store.lanes.claim(QUEUES) is None


async def test_giving_back_without_an_error_is_no_attempt(store: Store):
    lease = await claimed(store)

    assert await store.lanes.release(lease) is True

    again = await store.lanes.claim(QUEUES)
    assert again is not None
    assert again.attempts == 0


async def test_after_the_last_attempt_the_mail_is_to_be_refused(open_another: OpenAnother):
    store = await open_another(timings=Timings(attempts=2))
    lease = await claimed(store)
    assert await store.lanes.release(lease, error="bad\0 luck", delay=0.0) is True
    second = await store.lanes.claim(QUEUES)
    assert second is not None
    assert second.poison == ""

    assert await store.lanes.release(second, error="bad luck", delay=0.0) is False

    third = await store.lanes.claim(QUEUES)
    assert third is not None
    assert third.poison == "Given up after 2 failed attempts: bad luck"
    assert await answer(store, third) is True


async def test_an_answer_forgets_the_failures(open_another: OpenAnother):
    store = await open_another(timings=Timings(attempts=2))
    lease = await claimed(store)
    await store.lanes.release(lease, error="x", delay=0.0)
    again = await store.lanes.claim(QUEUES)
    assert again is not None
    await answer(store, again)

    await accept(store, "s1", 2)

    fresh = await store.lanes.claim(QUEUES)
    assert fresh is not None
    assert fresh.attempts == 0


async def test_a_lost_lane_cannot_be_given_back(store: Store):
    lease = await claimed(store)
    await store.lanes.release(lease)

    with pytest.raises(LostLease):
        await store.lanes.release(lease)


async def test_a_stop_reaches_the_owner_and_only_this_time(store: Store, open_another: OpenAnother):
    lease = await claimed(store)
    other = await open_another()

    assert await other.lanes.stop("s1") is True
    assert await store.workers.wait(5.0) is True

    assert await store.lanes.stops() == [("s1", "")]
    assert await other.lanes.stops() == []
    await store.lanes.release(lease)
    assert await store.lanes.claim(QUEUES) is not None
    assert await store.lanes.stops() == []


async def test_a_stop_for_one_mail_reaches_only_who_has_it_in_hand(store: Store):
    lease = await claimed(store)
    (row,) = lease.waiting

    before = await store.lanes.stop("s1", row)
    await store.write(lambda tx: store.inbox.take(tx, lease, [row]))
    now = await store.lanes.stop("s1", row)
    await store.lanes.release(lease)
    again = await store.lanes.claim(QUEUES)
    assert again is not None
    await accept(store, "s1", 2)
    await store.write(lambda tx: store.inbox.finish(tx, again, [row], Ending.ANSWERED))
    after = await store.lanes.stop("s1", row)

    assert (before, now, after) == (False, True, False)


async def test_a_stop_that_comes_as_a_run_ends_is_not_one_of_the_next_run_of_the_same_lease(store: Store):
    lease = await claimed(store)
    (row,) = lease.waiting
    await accept(store, "s1", 2)
    assert await store.lanes.stop("s1") is True

    await store.write(lambda tx: store.inbox.finish(tx, lease, [row], Ending.ANSWERED))

    assert await store.lanes.stops() == []
    assert await store.lanes.stop("s1") is True
    assert await store.lanes.stops() == [("s1", "")]


async def test_a_stop_where_nobody_works_says_so(store: Store):
    await accept(store, "s1", 1)

    assert await store.lanes.stop("s1") is False
    assert await store.lanes.stop("nobody") is False


class AnswersNobody:
    """An engine whose caller is cancelled when the commit is already made."""

    def __init__(self, store: Store) -> None:
        self._engine = store.engine
        self.dialect = self._engine.dialect
        self.read = self._engine.read

    async def write(self, change, *, durable=True):
        await self._engine.write(change, durable=durable)
        raise asyncio.CancelledError

    async def close(self):
        await self._engine.close()


async def test_a_claim_that_was_cancelled_too_late_leaves_no_lane_behind(open_another: OpenAnother):
    store = await open_another(timings=Timings(sweep=0.0))
    await accept(store, "s1", 1)
    engine = store.engine
    store.lanes._engine = AnswersNobody(store)
    with pytest.raises(asyncio.CancelledError):
        await store.lanes.claim(QUEUES)
    store.lanes._engine = engine

    await store.workers.tend(())
    assert await store.lanes.claim(QUEUES) is None
    await store.workers.tend(())

    assert await store.lanes.claim(QUEUES) is not None


async def test_who_holds_a_lane_for_something_else_changes_nothing_of_its_back_off(store: Store):
    lease = await claimed(store)
    await store.lanes.release(lease, error="The disk is full.", delay=60.0)

    held = await store.lanes.hold("s1", QUEUE)
    assert held is not None
    await store.lanes.release(held)

    assert await store.lanes.claim(QUEUES) is None
    waits = await store.lanes.next_ready(QUEUES)
    assert waits is not None
    assert waits > 50


async def test_a_back_off_is_kept_to_the_fraction_of_a_second(open_another: OpenAnother):
    store = await open_another(clock=FakeClock())
    lease = await claimed(store)

    await store.lanes.release(lease, error="broken", delay=0.5)

    assert await store.lanes.claim(QUEUES) is None
    assert await store.lanes.next_ready(QUEUES) == pytest.approx(0.5)
