"""Lists, counts and events of cards, and when a dispatcher has something to do."""

from time import perf_counter

from hermes_agent.store.database import Store
from hermes_agent.store.work.board import CardReading
from hermes_agent.store.work.cards import Card, Status


async def create(store: Store, title: str = "x", **more) -> Card:
    return (await store.boards.create(Card(id="", board="main", title=title, **more), "me")).card


async def test_cards_are_found_by_what_they_are(store: Store):
    assert isinstance(store.boards, CardReading)
    await create(store, "a", assignee="ann", tenant="web", created_by="cli:me")
    await create(store, "b", status=Status.BLOCKED, priority=0, created_by="telegram:2")
    await create(store, "c", status=Status.ARCHIVED)

    async def titles(**asked) -> list[str]:
        return [row.title for row in await store.boards.list_cards(**asked)]

    assert await titles() == ["b", "a"]
    assert await titles(status="archived") == ["c"]
    assert await titles(assignee="ann") == await titles(tenant="web") == await titles(author="cli:me") == ["a"]
    assert await titles(board="other") == []
    assert await titles(limit=1) == ["b"]
    assert sorted(await store.boards.stats()) == [("main", "archived", 1), ("main", "blocked", 1), ("main", "ready", 1)]
    assert await store.boards.boards() == ["main"]


async def test_a_list_of_ten_thousand_cards_is_quick(store: Store, full: bool):
    count = 10_000 if full else 500
    for number in range(count):
        await create(store, f"Card {number}", status=Status.BLOCKED)
    spent = []
    for _ in range(5):
        begun = perf_counter()
        assert len(await store.boards.list_cards(limit=count)) == count
        spent.append(perf_counter() - begun)
    print(f"{count} cards: {1000 * min(spent):.1f} ms")
    assert min(spent) < 1.0


async def test_only_what_may_start_now_waits_for_a_dispatcher(store: Store):
    ready = await create(store)
    for more in ({"ready_at": 9e12}, {"status": Status.BLOCKED}, {"host": "elsewhere"}):
        await create(store, **more)
    triage = await create(store, status=Status.TRIAGE)
    assert {card for card, _ in await store.card_runs.waiting("here")} == {ready.id}
    assert {card for card, _ in await store.card_runs.waiting("here", triage=True)} == {ready.id, triage.id}
    assert await store.card_runs.open() == []
    assert await store.card_runs.last_session(ready.id, "") == ""
