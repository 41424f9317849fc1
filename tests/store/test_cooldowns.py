"""Cool-downs: one row for each thing that rests, seen by every process on the store."""

from dataclasses import replace

from hermes_agent.store.cooldowns import CoolDown
from hermes_agent.store.database import Store

KEY = CoolDown(provider="openai", credential="K1", model="", mark="abc", until=100.0, reason="AuthRefused")
MODEL = CoolDown(provider="openai", credential="", model="gpt", mark="", until=60.0, reason="Overloaded")


async def test_what_rests_is_there_until_it_ends(store: Store):
    await store.cool_downs.put([KEY, MODEL], now=1.0)

    assert await store.cool_downs.resting(59.0) == [MODEL, KEY]
    assert await store.cool_downs.resting(60.0) == [KEY]
    assert await store.cool_downs.resting(100.0) == []


async def test_a_later_one_takes_the_place_of_an_earlier_one(store: Store):
    await store.cool_downs.put([KEY], now=1.0)
    later = replace(KEY, until=200.0, reason="OutOfCredit", mark="def")

    await store.cool_downs.put([later], now=2.0)

    assert await store.cool_downs.resting(2.0) == [later]


async def test_one_credential_one_provider_or_all_can_be_woken(store: Store):
    other = replace(KEY, provider="anthropic")
    await store.cool_downs.put([KEY, MODEL, other], now=1.0)

    assert await store.cool_downs.forget("openai", "K1") == 1
    assert await store.cool_downs.resting(1.0) == [other, MODEL]
    assert await store.cool_downs.forget("anthropic") == 1
    assert await store.cool_downs.forget() == 1
    assert await store.cool_downs.resting(1.0) == []
