"""Pairing: codes are kept as hashes, hold an hour, and are few."""

import pytest

from hermes_agent.core.clock import Clock
from hermes_agent.store.database import Store
from hermes_agent.store.pairing import AGAIN, ALPHABET, FAILURES, LENGTH, LOCKED, PENDING, VALID, PairingLocked
from hermes_agent.testing.clock import FakeClock
from tests.databases import OpenAnother


async def at(open_another: OpenAnother, clock: Clock) -> Store:
    return await open_another(clock=clock)


async def test_a_code_lets_in_whoever_was_given_it(store: Store):
    code = await store.pairing.ask("telegram", "7", "Ann")
    assert len(code) == LENGTH
    assert set(code) <= set(ALPHABET)
    assert [(known.user, known.name) for known in await store.pairing.waiting()] == [("7", "Ann")]

    known = await store.pairing.approve(f" {code[:4].lower()}-{code[4:]} ")

    assert known is not None
    assert (known.channel, known.user, known.name) == ("telegram", "7", "Ann")
    assert [each.user for each in await store.pairing.paired()] == ["7"]
    assert await store.pairing.waiting() == []
    assert await store.pairing.approve(code) is None


async def test_the_code_itself_is_not_kept(store: Store):
    code = await store.pairing.ask("telegram", "7", "Ann")

    rows = await store.read(lambda tx: tx.rows("SELECT * FROM pairing"))

    assert code not in str(rows)


async def test_a_code_holds_an_hour(open_another: OpenAnother):
    clock = FakeClock()
    store = await at(open_another, clock)
    code = await store.pairing.ask("telegram", "7", "Ann")

    clock.set_now(clock.now() + VALID + 1)

    assert await store.pairing.waiting() == []
    assert await store.pairing.approve(code) is None


async def test_the_same_person_is_not_given_codes_without_end(open_another: OpenAnother):
    clock = FakeClock()
    store = await at(open_another, clock)
    first = await store.pairing.ask("telegram", "7", "Ann")
    assert await store.pairing.ask("telegram", "7", "Ann") == ""

    clock.set_now(clock.now() + AGAIN)
    second = await store.pairing.ask("telegram", "7", "Ann")

    assert await store.pairing.approve(first) is None
    assert await store.pairing.approve(second) is not None


async def test_few_codes_wait_at_a_time(store: Store):
    for number in range(PENDING):
        assert await store.pairing.ask("telegram", str(number), "")

    assert await store.pairing.ask("telegram", "one more", "") == ""
    assert await store.pairing.ask("slack", "one more", "")


async def test_wrong_codes_lock_for_an_hour(open_another: OpenAnother):
    clock = FakeClock()
    store = await at(open_another, clock)
    code = await store.pairing.ask("telegram", "7", "Ann")
    for _ in range(FAILURES):
        assert await store.pairing.approve("WRONGONE") is None

    with pytest.raises(PairingLocked, match="hour"):
        await store.pairing.approve(code)

    clock.set_now(clock.now() + LOCKED + 1)
    assert await store.pairing.approve("WRONGONE") is None


async def test_who_was_let_in_is_let_in_no_more(store: Store):
    code = await store.pairing.ask("telegram", "7", "Ann")
    await store.pairing.approve(code)

    assert await store.pairing.revoke("telegram", "7")
    assert not await store.pairing.revoke("telegram", "7")
    assert await store.pairing.paired() == []


async def test_all_codes_are_forgotten(store: Store):
    code = await store.pairing.ask("telegram", "7", "Ann")

    assert await store.pairing.clear() == 1
    assert await store.pairing.approve(code) is None


async def test_what_is_set_for_a_chat_is_its_own(store: Store):
    await store.facts.set("telegram:dm:1", "topic", "work")
    await store.facts.set("telegram:dm:1", "topic", "play")
    await store.facts.set("telegram:dm:2", "topic", "other")

    assert await store.facts.of("telegram:dm:1") == {"topic": "play"}
    await store.facts.set("telegram:dm:1", "topic", "")
    assert await store.facts.of("telegram:dm:1") == {}


async def test_what_is_set_first_stays(store: Store):
    await store.facts.set("telegram:dm:1", "topic", "work", first=True)
    await store.facts.set("telegram:dm:1", "topic", "play", first=True)

    assert await store.facts.of("telegram:dm:1") == {"topic": "work"}
