"""Cool-downs of the providers, in the store."""

from hermes_agent.app.models.cooldowns import StoredCoolDowns
from hermes_agent.core.clock import SystemClock
from hermes_agent.providers.routing.cooldowns import Rest, Use
from hermes_agent.store.database import open_store
from hermes_agent.store.usage import UsageRow

REST = Rest(provider="openai", credential="K1", mark="abc", until=4e9, reason="AuthRefused")


async def test_what_one_process_lets_rest_another_one_knows(tmp_path):
    first, second = await open_store(tmp_path / "hermes.db"), await open_store(tmp_path / "hermes.db")
    await StoredCoolDowns(first, SystemClock()).rest([REST])

    assert await StoredCoolDowns(second, SystemClock()).resting(3e9) == [REST]

    await first.close()
    await second.close()


async def test_the_uses_of_a_key_are_those_of_the_ledger(tmp_path):
    store = await open_store(tmp_path / "hermes.db")
    row = UsageRow(
        call_id="c",
        session="",
        run="",
        turn=1,
        purpose="chat",
        provider="openai",
        model="m",
        prefix="",
        messages=1,
        at=5.0,
        principal="me",
        credential="K1",
    )
    await store.write(lambda tx: store.usage.open(tx, row))

    assert await StoredCoolDowns(store, SystemClock()).uses("openai", 0.0) == {"K1": Use(calls=1, last=5.0)}

    await store.close()
