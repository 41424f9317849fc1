"""The tables of the board on both databases: claims, leases, links, keys and letters."""

import asyncio
import random
from dataclasses import replace

import pytest

from hermes_agent.core.errors import HermesError, LostLease, UnknownCard
from hermes_agent.store.database import Store
from hermes_agent.store.work.board import Created
from hermes_agent.store.work.card_runs import Caps
from hermes_agent.store.work.cards import Card, Change, Ending, RunKind, Status, Workspace
from tests.databases import OpenAnother
from tests.store.made import SOON, die

MANY = Caps(most=100_000)


def claimed(store: Store):
    def decide(card: Card) -> tuple[Change, RunKind, str]:
        new = replace(card, status=Status.RUNNING, owner=store.workers.id, epoch=card.epoch + 1)
        return Change(card=new, kind="claimed", by="dispatcher"), RunKind.WORK, card.assignee

    return decide


def promote(card: Card) -> Change | None:
    waits = card.status is Status.TODO and not card.parents_left
    return Change(card=replace(card, status=Status.READY), kind="ready", by="board") if waits else None


def done(card: Card) -> Change:
    return Change(card=replace(card, status=Status.DONE, done=True, owner="", ended=9.0), kind="complete", by="me")


def same(card: Card) -> Change:
    return Change(card=card, kind="linked", by="me")


async def create(store: Store, title: str = "x", *, parents: tuple[str, ...] = (), **more) -> Card:
    return (await store.boards.create(Card(id="", board="main", title=title, **more), "me", parents)).card


async def claim(store: Store, host: str = "", caps: Caps = MANY, most: int = 50):
    return await store.card_runs.claim(host, caps, claimed(store), most)


async def test_a_card_is_ready_when_its_parents_are_done(store: Store):
    first, second = await create(store), await create(store)
    child = await create(store, parents=(first.id, second.id))
    assert (child.status, child.parents_left) == (Status.TODO, 2)

    await store.boards.change(first.id, done, promote)
    assert (await store.boards.get(child.id)).parents_left == 1
    await store.boards.change(second.id, done, promote)

    found = await store.boards.get(child.id)
    assert (found.status, found.parents_left) == (Status.READY, 0)
    assert await store.boards.parents(child.id) == sorted([first.id, second.id])
    assert await store.boards.children(first.id) == [child.id]


async def test_the_same_key_gives_the_first_card(store: Store):
    one = await store.boards.create(Card(id="", board="main", title="a", key="k"), "me")
    two = await store.boards.create(Card(id="", board="main", title="b", key="k"), "me")
    assert (one.is_new, two) == (True, Created(card=one.card, is_new=False))
    both = await asyncio.gather(
        *(store.boards.create(Card(id="", board="main", title="c", key="q"), "me") for _ in "12")
    )
    assert len({each.card.id for each in both}) == 1


async def test_circles_other_boards_and_closed_cards_take_no_links(store: Store):
    first = await create(store)
    child = await create(store, parents=(first.id,))
    grandchild = await create(store, parents=(child.id,))
    for parent, below in ((grandchild.id, first.id), (first.id, first.id)):
        with pytest.raises(HermesError, match="circle"):
            await store.boards.link(parent, below, same)
    other = (await store.boards.create(Card(id="", board="other", title="x"), "me")).card
    with pytest.raises(HermesError, match="one board"):
        await store.boards.link(other.id, first.id, same)
    gone = await create(store, status=Status.CANCELLED)
    with pytest.raises(HermesError, match="takes no links"):
        await store.boards.link(gone.id, first.id, same)
    with pytest.raises(UnknownCard):
        await store.boards.get("t_zzzzzz")


async def test_links_count_open_parents_however_often_they_are_made(store: Store):
    first, child = await create(store), await create(store)
    for _ in range(2):
        assert (await store.boards.link(first.id, child.id, same)).parents_left == 1
    for _ in range(2):
        assert (await store.boards.link(first.id, child.id, same, remove=True)).parents_left == 0


async def test_random_graphs_never_get_a_circle(store: Store, full: bool):
    chance = random.Random(7)
    for _ in range(150 if full else 4):
        cards = [(await create(store)).id for _ in range(8)]
        edges: set[tuple[str, str]] = set()
        for _ in range(20):
            parent, child = chance.choice(cards), chance.choice(cards)
            circle = parent == child or _reaches(edges, child, parent)
            try:
                await store.boards.link(parent, child, same)
                assert not circle
                edges.add((parent, child))
            except HermesError:
                assert circle


def _reaches(edges: set[tuple[str, str]], start: str, end: str) -> bool:
    found, todo = set(), [start]
    while todo:
        here = todo.pop()
        found.add(here)
        todo += [child for parent, child in edges if parent == here and child not in found]
    return end in found


async def test_a_deep_chain_goes_on_card_by_card(store: Store, full: bool):
    last, chain = "", []
    for _ in range(5000 if full else 60):
        last = (await create(store, parents=(last,) if last else ())).id
        chain.append(last)
    for card in chain:
        assert (await store.boards.get(card)).status is Status.READY
        await store.boards.change(card, done, promote)


async def test_each_card_is_claimed_once_the_most_urgent_first(store: Store, open_another: OpenAnother):
    for number in range(30):
        await create(store, f"{number}", priority=number % 3)
    stores = [store, *[await open_another() for _ in range(3)]]

    async def take(one: Store) -> list[str]:
        found = []
        while got := await claim(one, most=2):
            found += [card.id for card, _ in got]
        return found

    taken = await asyncio.gather(*map(take, stores))

    ids = [card for cards in taken for card in cards]
    assert len(ids) == len(set(ids)) == 30
    rows = {row.id: row.priority for row in await store.boards.list_cards()}
    assert all([rows[card] for card in cards] == sorted(rows[card] for card in cards) for cards in taken)


async def test_of_many_claimers_of_one_card_one_wins(store: Store, open_another: OpenAnother, full: bool):
    stores = [store, *[await open_another() for _ in range(3)]]
    for _ in range(100 if full else 3):
        await create(store)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(claim(each)) for each in stores * 10]
        assert sum(len(task.result()) for task in tasks) == 1


async def test_caps_hold_on_a_machine_and_for_a_profile(store: Store):
    for number in range(6):
        await create(store, assignee="ann" if number % 2 else "bob")
    found = await claim(store, caps=Caps(most=3, per_profile=1))
    assert sorted(card.assignee for card, _ in found) == ["ann", "bob"]
    assert await claim(store, caps=Caps(most=2)) == []
    assert len(await claim(store, caps=Caps(most=10, paused=frozenset({"ann"})))) == 2


async def test_a_folder_has_one_card_at_a_time(store: Store):
    for _ in range(2):
        await create(store, workspace=Workspace.DIR, folder="/work/site")
    (first, run), *none = await claim(store)
    assert not none
    assert await claim(store) == []

    await store.card_runs.end(run, 0, Ending.COMPLETED, done, promote)

    assert [card.id for card, _ in await claim(store)] != [first.id]


async def test_a_card_is_not_claimed_while_a_process_of_it_may_be_alive(store: Store):
    await create(store)
    ((card, run),) = await claim(store)
    await store.boards.change(
        card.id, lambda found: Change(card=replace(found, status=Status.READY, owner=""), kind="move", by="me"), promote
    )
    assert await claim(store) == []
    await store.card_runs.end(run, 137, Ending.CANCELLED, lambda _: None, promote)
    assert len(await claim(store)) == 1


async def test_adopting_fences_whoever_claimed(store: Store, open_another: OpenAnother):
    await create(store)
    ((card, _),) = await claim(store)
    worker = await open_another()

    def mine(found: Card) -> Change:
        return Change(card=replace(found, owner=worker.workers.id, epoch=found.epoch + 1), kind="adopted", by="t")

    held = await worker.card_runs.adopt(card.id, card.epoch, mine)

    await worker.card_runs.progress(card.id, held.epoch, "half")
    assert [run.note for run in await store.card_runs.of(card.id)] == ["half"]
    with pytest.raises(LostLease):
        await store.card_runs.progress(card.id, card.epoch)
    with pytest.raises(LostLease, match="claimed anew"):
        await store.card_runs.adopt(card.id, card.epoch, mine)


async def test_a_dead_holder_is_noticed_though_it_holds_nothing_else(open_another: OpenAnother):
    killed, peer = await open_another(timings=SOON), await open_another(timings=SOON)
    await create(killed)
    await peer.workers.register()
    await claim(killed)
    owner = killed.workers.id
    assert owner in await peer.card_runs.alive()

    await die(killed)
    async with asyncio.timeout(10):
        while owner in await peer.card_runs.alive():
            await peer.workers.reap()
            await asyncio.sleep(0.01)


async def test_the_end_of_a_process_counts_once(store: Store):
    await create(store)
    ((card, run),) = await claim(store)

    def crashed(found: Card) -> Change:
        return Change(
            card=replace(found, status=Status.READY, owner="", crashes=found.crashes + 1), kind="crashed", by="d"
        )

    ends = [await store.card_runs.end(run, 137, Ending.CRASHED, crashed, promote) for _ in range(2)]

    assert ends == [True, False]
    assert (await store.boards.get(card.id)).crashes == 1


async def test_watchers_of_a_card_and_of_its_board_get_one_letter(store: Store):
    card = await create(store)
    for what in (card.id, "board:main"):
        await store.boards.watch(what, "telegram:dm:1")
    await store.boards.watch("board:main", "telegram:dm:2")
    await store.boards.watch("board:main", "telegram:dm:3")
    await store.boards.watch("board:main", "telegram:dm:3", stop=True)

    await store.boards.change(card.id, lambda found: replace(done(found), letter="Done: x"), promote)

    slots = await store.outbox.claim(["telegram"])
    assert sorted(slot.to.key for slot in slots) == ["telegram:dm:1", "telegram:dm:2"]
    assert {slot.content.text for slot in slots} == {"Done: x"}


async def test_a_card_that_never_ran_can_be_removed(store: Store):
    card, ran = await create(store), await create(store, priority=0)
    await claim(store, most=1)
    assert await store.boards.remove(card.id)
    assert not await store.boards.remove(ran.id)
    assert [row.id for row in await store.boards.list_cards()] == [ran.id]


async def test_time_brings_the_next_look(store: Store):
    assert await store.card_runs.next_due("", 60.0, 60.0) is None
    await create(store, status=Status.BLOCKED, ready_at=5.0)
    assert await store.card_runs.next_due("", 60.0, 60.0) == 5.0
    assert len(await store.card_runs.overdue(store.clock.now())) == 1
