"""Children: how many run at a time, who ends one, and where its report goes, on both databases."""

import asyncio
import random

import pytest

from hermes_agent.core.errors import UnknownSession
from hermes_agent.store.database import Store
from hermes_agent.store.work.children import HELD_BACK, Child, Delivery, State
from tests.databases import OpenAnother
from tests.store.made import QUEUE, QUEUES, add, answer, mail, session

MOST = 3


def child(name: str = "c1", n: int = 1, **more: object) -> Child:
    facts = {
        "session": name,
        "parent": "p",
        "run": "r1",
        "call": "k",
        "n": n,
        "goal": f"goal of {name}",
        "role": "leaf",
        "isolation": "task",
        "folder": "/work",
        "queue": QUEUE,
        "delivery": Delivery.CALL,
        "created": 1.0,
    }
    return Child(**(facts | more))


async def start(store: Store, row: Child, most: int = MOST) -> None:
    await add(store, session(row.session))

    async def change(tx):
        await store.inbox.accept(mail(row.session), row.session, HELD_BACK, tx=tx)
        await store.children.add(tx, row, most)

    await store.write(change)


async def end(store: Store, name: str, outcome: str = "answered") -> Child | None:
    """As the run's end does: its mail has ended by then."""
    lease = await store.lanes.claim(QUEUES, name)
    assert lease is not None
    await answer(store, lease)
    return await store.write(lambda tx: store.children.end(tx, name, outcome, "{}", 2.0))


async def states(store: Store) -> list[str]:
    return [each.state for each in await store.children.of("p")]


async def test_a_child_is_read_as_it_was_written(store: Store):
    row = child(branch="hermes/x", base="abc", folder="/w\N{SNOWMAN}", delivery=Delivery.MAIL)
    await start(store, row)

    found = await store.children.get("c1")

    assert found is not None
    assert found.is_open
    assert found == child(
        branch="hermes/x", base="abc", folder="/w\N{SNOWMAN}", delivery=Delivery.MAIL, state=State.RUNNING
    )
    assert await store.children.get("c2") is None


async def test_only_so_many_run_and_the_end_of_one_lets_the_next_run(store: Store):
    for n in range(1, 6):
        await start(store, child(f"c{n}", n))
    assert await states(store) == ["running"] * 3 + ["waiting"] * 2
    assert await store.lanes.claim(QUEUES, "c4") is None

    await end(store, "c2")

    assert await states(store) == ["running", "ended", "running", "running", "waiting"]
    assert await store.lanes.claim(QUEUES, "c4") is not None


async def test_a_child_ends_once(store: Store):
    await start(store, child())
    first = await end(store, "c1")
    second = await store.write(lambda tx: store.children.end(tx, "c1", "failed", "{}", 3.0))

    assert first is not None
    assert (first.outcome, second) == ("answered", None)


async def test_a_child_with_more_mail_has_not_ended(store: Store):
    await start(store, child())
    await store.inbox.accept(mail("more"), "c1", QUEUE)

    assert await store.write(lambda tx: store.children.end(tx, "c1", "answered", "{}", 2.0)) is None
    assert await states(store) == ["running"]


async def test_a_child_that_nobody_runs_is_stopped_with_its_mail(store: Store):
    for n in range(1, 5):
        await start(store, child(f"c{n}", n))

    async def stop(tx):
        free = await store.children.stop(tx, "c4", "Stopped.", 2.0)
        return free and await store.children.end(tx, "c4", "stopped", "{}", 2.0)

    assert await store.write(stop)
    found = await store.inbox.find("test", "c4")
    assert found is not None
    assert (found.state, found.reason) == ("refused", "Stopped.")
    assert await states(store) == ["running"] * 3 + ["ended"]


async def test_a_child_that_runs_is_told_to_stop(store: Store):
    await start(store, child())
    lease = await store.lanes.claim(QUEUES, "c1")
    assert lease is not None

    assert not await store.write(lambda tx: store.children.stop(tx, "c1", "Stopped.", 2.0))
    assert await store.lanes.stops() == [("c1", "")]


async def test_what_a_run_leaves_is_what_its_calls_wait_for(store: Store):
    await start(store, child("c1", 1))
    await start(store, child("c2", 2, delivery=Delivery.MAIL))
    await start(store, child("c3", 3, run="r0"))

    found = await store.write(lambda tx: store.children.awaited(tx, "p", "r1"))

    assert [each.session for each in found] == ["c1", "c3"]


async def test_a_child_that_goes_on_reports_by_mail(store: Store):
    await start(store, child())
    assert not await store.write(lambda tx: store.children.reopen(tx, "c1", QUEUE))
    await end(store, "c1")

    assert await store.write(lambda tx: store.children.reopen(tx, "c1", "other"))
    found = await store.children.get("c1")
    assert found is not None
    assert (found.state, found.delivery, found.queue, found.outcome) == ("running", "mail", "other", "")
    assert await store.children.has_open("p")


async def test_children_are_left_to_another_queue(store: Store):
    for n in range(1, 5):
        await start(store, child(f"c{n}", n))
    left = [each for each in await store.children.of("p") if each.session in ("c1", "c4")]
    await store.write(lambda tx: store.children.hand_over(tx, left, "other"))

    assert await store.lanes.claim(("other",), "c1") is not None
    assert await store.lanes.claim(("other",), "c4") is None
    await end(store, "c2")
    assert await store.lanes.claim(("other",), "c4") is not None


async def test_a_deleted_session_is_no_child_any_more(store: Store):
    await start(store, child())
    await store.sessions.delete("c1")

    assert await store.children.of("p") == []


async def test_a_deleted_session_starts_no_children_and_those_it_has_are_stopped_in_the_same_commit(store: Store):
    await add(store, session("p"))
    for n in range(1, 5):
        await start(store, child(f"c{n}", n))
    assert await store.lanes.claim(QUEUES, "c1") is not None

    await store.sessions.delete("p", lambda tx: store.children.abandon_all(tx, "p", "Gone.", 2.0))

    assert [(each.state, each.delivery) for each in await store.children.of("p")] == [
        ("running", "nobody"),
        *[("ended", "nobody")] * 3,
    ]
    with pytest.raises(UnknownSession, match="was deleted"):
        await start(store, child("c9", 9))


async def test_the_latest_are_those_of_the_principal_and_open_ones_come_first(store: Store):
    await start(store, child("c1", 1))
    await start(store, child("c2", 2))
    await end(store, "c2")

    assert [each.session for each in await store.children.latest("cli:ann")] == ["c1", "c2"]
    assert await store.children.latest("cli:bob") == []


@pytest.mark.parametrize("seed", range(3))
async def test_ends_and_starts_at_the_same_time_leave_nobody_waiting(store: Store, open_another: OpenAnother, seed):
    chance, other = random.Random(seed), await open_another()
    both = (store, other)
    for n in range(1, 3):
        await start(store, child(f"c{n}", n), most=1)

    for n in range(3, 12):
        running = [each.session for each in await store.children.of("p") if each.state == "running"]
        async with asyncio.TaskGroup() as group:
            for each in running:
                group.create_task(end(chance.choice(both), each))
            group.create_task(start(chance.choice(both), child(f"c{n}", n), most=1))
        assert (await states(store)).count("running") == 1
