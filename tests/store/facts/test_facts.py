"""Facts beside the notes and the ledger of their changes, on both databases."""

import asyncio
import json

import pytest

from hermes_agent.core.errors import HermesError
from hermes_agent.store.database import Store
from hermes_agent.store.facts.facts import Action, KnownFacts, NewFact, Source
from hermes_agent.store.versions import Author
from tests.databases import OpenAnother

AGENT = Source(author=Author.FOREGROUND, principal="cli:ann", session="s1", first=3, last=5)
OWNER = Source(author=Author.OWNER, principal="cli:ann")


def new(text: str = "Tea is at four.", trust: float = 0.5) -> NewFact:
    return NewFact(text=text, names=("Tea",), vector=b"v", trust=trust)


def called(key: str) -> Source:
    return Source(author=Author.FOREGROUND, key=key)


async def trusts(facts: KnownFacts) -> list[tuple[Action, float | None, float | None]]:
    return [(each.action, each.before, each.after) for each in await facts.log()]


async def test_a_fact_comes_back_with_who_told_it_and_from_which_messages(store: Store):
    number = await store.known_facts.add("ann", new(), AGENT, 7.0)

    (fact,) = await store.known_facts.in_force("ann")
    (change,) = await store.known_facts.log("ann")

    assert (fact.id, fact.text, fact.names, fact.trust) == (number, "Tea is at four.", ("Tea",), 0.5)
    assert (fact.source, fact.added, fact.checked, fact.retracted) == (AGENT, 7.0, 7.0, None)
    assert (change.fact, change.action, change.before, change.after) == (number, Action.ADDED, None, 0.5)
    assert (change.source, change.text, change.space, change.at) == (AGENT, "Tea is at four.", "ann", 7.0)


async def test_a_fact_is_kept_once_in_a_space_and_apart_from_other_spaces(store: Store):
    first = await store.known_facts.add("ann", new(), AGENT, 1.0)

    assert await store.known_facts.add("ann", new(), AGENT, 2.0) is None
    second = await store.known_facts.add("bob", new(), AGENT, 3.0)

    assert [fact.id for fact in await store.known_facts.in_force("ann")] == [first]
    assert [fact.id for fact in await store.known_facts.in_force()] == [second, first]
    assert await store.known_facts.count("ann") == 1
    with pytest.raises(HermesError, match=f"no fact {first}"):
        await store.known_facts.judge("bob", first, 0.1, AGENT, 4.0)
    with pytest.raises(HermesError, match="no change 1"):
        await store.known_facts.undo("bob", 1, OWNER, 4.0)


async def test_trust_stays_between_nothing_and_one_and_an_undo_takes_back_what_was_done(store: Store):
    number = await store.known_facts.add("ann", new(trust=0.9), AGENT, 1.0)

    assert await store.known_facts.judge("ann", number, 0.2, AGENT, 2.0) == 1.0
    assert await store.known_facts.judge("ann", number, -0.2, AGENT, 3.0) == 0.8
    await store.known_facts.undo("ann", (await store.known_facts.log())[1].id, OWNER, 4.0)

    (fact,) = await store.known_facts.in_force("ann")
    assert (fact.trust, fact.checked) == (0.7, 4.0)
    assert await trusts(store.known_facts) == [
        (Action.UNDO, 0.8, 0.7),
        (Action.WRONG, 1.0, 0.8),
        (Action.RIGHT, 0.9, 1.0),
        (Action.ADDED, None, 0.9),
    ]


async def test_what_is_retracted_is_kept_and_put_back_by_an_undo_which_can_be_taken_back_too(store: Store):
    number = await store.known_facts.add("ann", new(), AGENT, 1.0)

    assert (await store.known_facts.retract("ann", number, OWNER, 2.0)).text == "Tea is at four."
    assert await store.known_facts.in_force("ann") == []
    with pytest.raises(HermesError, match="is retracted"):
        await store.known_facts.judge("ann", number, 0.1, AGENT, 3.0)
    with pytest.raises(HermesError, match="is retracted"):
        await store.known_facts.retract("ann", number, OWNER, 3.0)
    retracted = (await store.known_facts.log())[0]

    undone = await store.known_facts.undo("ann", retracted.id, OWNER, 4.0)

    assert (undone.action, undone.before, undone.after) == (Action.RETRACTED, 0.5, None)
    assert [fact.id for fact in await store.known_facts.in_force("ann")] == [number]
    with pytest.raises(HermesError, match="undone already"):
        await store.known_facts.undo("ann", retracted.id, OWNER, 5.0)
    await store.known_facts.undo("ann", (await store.known_facts.log())[0].id, OWNER, 6.0)
    assert await store.known_facts.count("ann") == 0


async def test_an_undo_of_the_adding_retracts_and_cannot_be_done_to_what_is_out_of_force(store: Store):
    number = await store.known_facts.add("ann", new(), AGENT, 1.0)
    (added,) = await store.known_facts.log()
    await store.known_facts.judge("ann", number, 0.1, AGENT, 2.0)
    judged = (await store.known_facts.log())[0]

    await store.known_facts.undo("", added.id, OWNER, 3.0)

    assert await store.known_facts.in_force("ann") == []
    with pytest.raises(HermesError, match="is retracted"):
        await store.known_facts.undo("", judged.id, OWNER, 4.0)


async def test_what_was_said_again_is_not_put_back_beside_itself(store: Store):
    number = await store.known_facts.add("ann", new(), AGENT, 1.0)
    await store.known_facts.retract("ann", number, OWNER, 2.0)
    retracted = (await store.known_facts.log())[0]
    again = await store.known_facts.add("ann", new(), AGENT, 3.0)

    with pytest.raises(HermesError, match="in force already: Tea"):
        await store.known_facts.undo("ann", retracted.id, OWNER, 4.0)

    assert [fact.id for fact in await store.known_facts.in_force("ann")] == [again]


async def test_the_call_of_a_key_changes_a_fact_once(store: Store):
    facts = store.known_facts
    number = await facts.add("ann", new(), called("1"), 1.0)
    assert await facts.add("ann", new(), called("1"), 2.0) == number

    assert await facts.judge("ann", number, 0.1, called("2"), 3.0) == 0.6
    assert await facts.judge("ann", number, 0.1, called("2"), 4.0) == 0.6
    for _ in range(2):
        assert (await facts.retract("ann", number, called("3"), 5.0)).id == number

    assert [each.source.key for each in await facts.log()] == ["3", "2", "1"]


async def test_two_stores_at_once_keep_each_fact_and_each_judgement_once(open_another: OpenAnother):
    stores = [await open_another(), await open_another()]
    number = await stores[0].known_facts.add("ann", new(trust=0.0), AGENT, 1.0)

    async def work(store: Store) -> None:
        for each in range(10):
            await store.known_facts.add("ann", new(f"Number {each}."), AGENT, 2.0)
            await store.known_facts.judge("ann", number, 0.01, AGENT, 3.0)

    async with asyncio.TaskGroup() as group:
        for store in stores:
            group.create_task(work(store))

    facts = await stores[0].known_facts.in_force("ann")
    assert len(facts) == 11
    assert next(fact.trust for fact in facts if fact.id == number) == 0.2
    assert len(await stores[1].known_facts.log()) == 1 + 10 + 20


async def test_odd_characters_numbers_and_names_of_another_writer_are_no_failure(store: Store):
    odd = NewFact(text="nul \0 and \ud83d half", names=("\ud83d",), vector=b"", trust=0.5)
    number = await store.known_facts.add("ann", odd, called("k\0"), 1.0)
    names = json.dumps({"a": 1})
    await store.write(lambda tx: tx.run("UPDATE known_fact SET names = $1", names))

    (fact,) = await store.known_facts.in_force("ann")

    assert (fact.id, fact.names) == (number, ())
    assert "half" in fact.text
    for wrong in (-1, 0, 2**70):
        with pytest.raises(HermesError, match="no fact"):
            await store.known_facts.retract("ann", wrong, OWNER, 2.0)
        with pytest.raises(HermesError, match="no change"):
            await store.known_facts.undo("ann", wrong, OWNER, 2.0)
