"""Effect records: intent and end."""

from dataclasses import replace

import pytest

from hermes_agent.core.effects import EffectState
from hermes_agent.core.errors import LostLease
from hermes_agent.store.database import Store
from tests.store.made import claimed, intent


async def test_an_intent_is_open_until_its_result(store: Store):
    lease = await claimed(store)

    await store.write(lambda tx: store.effects.intend(tx, lease, intent()))
    (record,) = await store.effects.open("s1")
    await store.write(lambda tx: store.effects.finish(tx, lease, "c1"))

    assert record.intent == intent()
    assert record.state is EffectState.INTENT
    assert await store.effects.open("s1") == []


async def test_an_intent_made_again_keeps_its_record(store: Store):
    lease = await claimed(store)
    await store.write(lambda tx: store.effects.intend(tx, lease, intent(), at=1.0))

    await store.write(lambda tx: store.effects.intend(tx, lease, intent(), at=2.0))

    (record,) = await store.effects.open("s1")
    assert record.at == 1.0


async def test_an_effect_keeps_the_handle_under_which_it_goes_on_elsewhere(store: Store):
    lease = await claimed(store)
    await store.write(lambda tx: store.effects.intend(tx, lease, intent()))

    await store.write(lambda tx: store.effects.hold(tx, lease, "c1", "task 7"))

    (record,) = await store.effects.open("s1")
    assert record.intent.location.handle == "task 7"
    with pytest.raises(LostLease):
        await store.write(lambda tx: store.effects.hold(tx, replace(lease, epoch=0), "c1", "another"))


async def test_a_finished_effect_is_not_open_again(store: Store):
    lease = await claimed(store)
    await store.write(lambda tx: store.effects.intend(tx, lease, intent()))
    await store.write(lambda tx: store.effects.finish(tx, lease, "c1"))

    await store.write(lambda tx: store.effects.intend(tx, lease, intent()))

    assert await store.effects.open("s1") == []


async def test_a_lost_lease_intends_nothing(store: Store):
    lease = replace(await claimed(store), epoch=0)

    with pytest.raises(LostLease):
        await store.write(lambda tx: store.effects.intend(tx, lease, intent()))

    assert await store.effects.open("s1") == []


async def test_a_summary_with_odd_characters_is_kept(store: Store):
    lease = await claimed(store)

    await store.write(lambda tx: store.effects.intend(tx, lease, replace(intent(), summary="a\0b\ud800")))

    (record,) = await store.effects.open("s1")
    assert record.intent.summary == "a\ufffdb?"
