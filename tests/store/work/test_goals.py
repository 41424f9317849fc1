"""Goals, their checks and their receipts, on both databases."""

from dataclasses import replace

import pytest

from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.work.goals import MOST_ATTEMPTS, Check, Criterion, Goal, Kind, State
from hermes_agent.work.goals.desk import criterion_of
from tests.databases import OpenAnother
from tests.store.made import SOON, add, die, mail, session

GOAL = Goal(
    id="g_000001",
    principal="owner",
    text="Tests pass.",
    created=1.0,
    criteria=(Criterion(kind=Kind.COMMAND, text="pytest -q"), criterion_of("file", "a.txt contains b c")),
    constraints=("No new dependency.",),
    session="s1",
    money=5,
)

CHECK = Check(criterion="`x`", kind=Kind.COMMAND, at=1.0, seconds=0.5, verdict="unmet", exit_code=3, evidence="no\0")


async def kept(store: Store, *goals: Goal) -> None:
    for each in goals:
        await store.write(lambda tx, each=each: store.goals.put(tx, each))


async def due(store: Store, goal: Goal = GOAL, queue: str = "cli") -> None:
    await store.write(lambda tx: store.goal_rounds.queue(tx, goal, queue, "run", 7))


async def test_a_goal_comes_back_as_it_was_written(store: Store):
    await kept(store, GOAL)

    found = await store.goals.get(GOAL.id)

    assert found is not None
    assert replace(found, changed=0.0) == GOAL
    assert await store.sessions.has_goals("owner")
    assert not await store.sessions.has_goals("telegram:1")


async def test_a_session_pursues_the_goal_that_goes_on_there(store: Store):
    paused, active = replace(GOAL, state=State.PAUSED), replace(GOAL, id="g_000002")
    await kept(store, paused, active, replace(GOAL, id="g_000003", session="s2"))

    found = await store.goals.pursued("s1")

    assert found is not None
    assert found.id == "g_000002"
    assert await store.goals.pursued("s3") is None


async def test_a_list_has_one_persons_open_goals_or_all(store: Store):
    done = replace(GOAL, id="g_000002", state=State.DONE, ended=2.0)
    await kept(store, GOAL, done, replace(GOAL, id="g_000003", principal="telegram:1"))

    assert [each.id for each in await store.goals.list("owner")] == ["g_000001"]
    assert [each.id for each in await store.goals.list("owner", ended=True)] == ["g_000001", "g_000002"]
    assert {each.id for each in await store.goals.list()} == {"g_000001", "g_000003"}


async def test_a_change_reads_the_goal_in_its_own_transaction(store: Store, open_another: OpenAnother):
    await kept(store, GOAL)
    other = await open_another()

    for each in (store, other, store):
        await each.goals.change(GOAL.id, lambda goal: replace(goal, turns=goal.turns + 1))

    found = await store.goals.get(GOAL.id)
    assert found is not None
    assert found.turns == 3
    assert await store.goals.change("g_ffffff", lambda goal: goal) is None
    assert await store.goals.change(GOAL.id, lambda _: None) is None


async def test_waiting_goals_and_news_are_due(store: Store):
    waiting = replace(GOAL, state=State.WAITING, wait_until=9.0)
    told = replace(GOAL, id="g_000002", state=State.DONE, ended=2.0, untold="It is done.")
    await kept(store, waiting, told, replace(GOAL, id="g_000003"))

    assert [(each.id, each.wait_until, each.untold) for each in await store.goals.due()] == [
        ("g_000001", 9.0, ""),
        ("g_000002", None, "It is done."),
    ]
    assert await store.goals.due("another queue") == []


async def test_a_check_is_claimed_once_by_its_queue_or_session(store: Store, open_another: OpenAnother):
    await due(store)
    await due(store)
    rounds, other = store.goal_rounds, (await open_another()).goal_rounds

    assert not await rounds.ready("gateway", None)
    assert not await rounds.ready("cli", ["s2"])
    assert await rounds.ready("cli", ["s1"])
    claimed = await other.claim("cli", None)

    assert claimed is not None
    assert (claimed.lease.id, claimed.goal, claimed.round, claimed.after) == ("g_000001:1:0", GOAL.id, 0, 7)
    assert await rounds.claim("cli", ["s1"]) is None
    assert await rounds.peers_check("cli")
    assert not await other.peers_check("cli")


async def test_a_check_of_a_dead_worker_is_claimed_by_the_next_and_its_late_commit_is_none(open_another: OpenAnother):
    killed, peer = await open_another(timings=SOON), await open_another(timings=SOON)
    await due(killed)
    held = await killed.goal_rounds.claim("cli", None)
    assert held is not None
    await die(killed)

    claimed = await peer.goal_rounds.claim("cli", None)

    assert claimed is not None
    assert claimed.attempts == 2
    assert not await killed.write(lambda tx: killed.goal_rounds.end(tx, held, "late"))
    with pytest.raises(LostLease):
        await killed.goal_rounds.claims.check(held.lease)
    assert await peer.write(lambda tx: peer.goal_rounds.end(tx, claimed, "active"))
    assert await peer.goal_rounds.claim("cli", None) is None


async def test_a_check_that_is_put_back_can_be_claimed_again(store: Store):
    await due(store)
    claimed = await store.goal_rounds.claim("cli", None)
    assert claimed is not None

    await store.goal_rounds.claims.release(claimed.lease, counts=True)

    again = await store.goal_rounds.claim("cli", None)
    assert again is not None
    assert again.attempts == 2 <= MOST_ATTEMPTS


async def test_receipts_are_written_once_and_read_the_newest_first(store: Store):
    async def keep(tx: Transaction) -> None:
        for name, at in (("r1", 1.0), ("r2", 2.0), ("r1", 1.0)):
            await store.goals.keep(
                tx, GOAL, name, "run", [replace(CHECK, at=at), replace(CHECK, at=at, exit_code=None)]
            )

    await store.write(keep)

    found = await store.goals.receipts(GOAL.id)
    assert [(each.round, each.exit_code) for each in found] == [("r2", 3), ("r2", None), ("r1", 3), ("r1", None)]
    assert found[0].evidence == "no\N{REPLACEMENT CHARACTER}"


async def test_a_goal_outlives_its_session_and_waits_for_another(store: Store):
    await add(store, session("s1"))
    await kept(store, GOAL)
    await due(store)

    await store.sessions.delete("s1")

    found = await store.goals.get(GOAL.id)
    assert found is not None
    assert (found.state, found.session) == (State.PAUSED, "")
    assert await store.goal_rounds.claim("cli", None) is None


async def test_a_lane_says_how_much_mail_waits_and_whose_it_is(store: Store):
    await store.inbox.accept(mail(), "s2", "cli")

    assert await store.read(lambda tx: store.goal_rounds.lane(tx, "s1")) == (0, "")
    assert await store.write(lambda tx: store.goal_rounds.lane(tx, "s2")) == (1, "cli")
