"""The usage ledger: every call has a row before it is made; what is unknown is not zero."""

from contextlib import suppress
from dataclasses import replace

from hermes_agent.core.model import Usage
from hermes_agent.store.database import Store
from hermes_agent.store.usage import GroupBy, Total, UsageRow
from tests.store.made import add, session

DAY = 86_400.0
ROW = UsageRow(
    call_id="c1",
    session="s1",
    run="r1",
    turn=1,
    purpose="chat",
    provider="openai",
    model="gpt",
    prefix="abc",
    messages=3,
    at=10.0,
    principal="cli:ann",
    reserved=0.5,
)
USED = Usage(input=100, output=20, cached=80, cache_write=5, reasoning=7)


async def test_a_row_is_there_before_the_call_is_answered(store: Store):
    await store.usage.open(ROW)

    assert await store.usage.rows("s1") == [ROW]


async def test_a_settled_row_holds_what_was_used(store: Store):
    await store.usage.open(ROW)

    await store.usage.settle("c1", USED, 0.25, "ok", 1.5)

    assert await store.usage.rows("s1") == [replace(ROW, usage=USED, cost=0.25, outcome="ok", seconds=1.5)]


async def test_a_row_can_be_part_of_a_larger_commit(store: Store):
    async def change(tx):
        await store.usage.open(ROW, tx)
        raise RuntimeError

    with suppress(RuntimeError):
        await store.write(change)

    assert await store.usage.rows("s1") == []


async def test_opening_a_call_twice_makes_one_row(store: Store):
    await store.usage.open(ROW)
    await store.usage.open(ROW)

    assert len(await store.usage.rows("s1")) == 1


async def test_totals_add_up_and_tell_what_is_not_known(store: Store):
    for call in ("c1", "c2", "c3", "c4"):
        await store.usage.open(replace(ROW, call_id=call))
    await store.usage.settle("c1", USED, 0.25, "ok", 1.0)
    await store.usage.settle("c2", USED, None, "ok", 1.0)
    await store.usage.settle("c3", Usage(known=False), None, "Stalled", 1.0)

    (total,) = await store.usage.totals(GroupBy.MODEL)

    assert total == Total(
        key="gpt",
        calls=4,
        usage=Usage(input=200, output=40, cached=160, cache_write=10, reasoning=14, known=False),
        cost=0.25,
        reserved=0.5,
        open=1,
        uncounted=1,
        unpriced=2,
    )


async def test_totals_are_made_over_each_property(store: Store):
    other = replace(
        ROW,
        call_id="c2",
        session="s2",
        purpose="title",
        model="claude",
        provider="anthropic",
        principal="cli:bob",
        at=10.0 + DAY,
    )
    await store.usage.open(ROW)
    await store.usage.open(other)

    keys = {by: [total.key for total in await store.usage.totals(by)] for by in GroupBy}

    assert keys == {
        GroupBy.DAY: ["1970-01-01", "1970-01-02"],
        GroupBy.SESSION: ["s1", "s2"],
        GroupBy.PURPOSE: ["chat", "title"],
        GroupBy.MODEL: ["claude", "gpt"],
        GroupBy.PROVIDER: ["anthropic", "openai"],
        GroupBy.PRINCIPAL: ["cli:ann", "cli:bob"],
    }


async def test_totals_begin_at_a_time_and_may_be_of_one_session(store: Store):
    await store.usage.open(ROW)
    await store.usage.open(replace(ROW, call_id="c2", at=20.0))
    await store.usage.open(replace(ROW, call_id="c3", at=20.0, session="s2"))

    assert [total.calls for total in await store.usage.totals(GroupBy.MODEL, since=20.0)] == [2]
    assert [total.calls for total in await store.usage.totals(GroupBy.MODEL, session="s1")] == [2]


async def test_usage_outlives_its_session(store: Store):
    await add(store, session("s1"))
    await store.usage.open(ROW)

    await store.sessions.delete("s1")

    assert len(await store.usage.rows("s1")) == 1


async def test_the_uses_of_a_credential_are_counted_by_name(store: Store):
    for number, (credential, provider, at) in enumerate(
        [("A", "openai", 5.0), ("A", "openai", 10.0), ("A", "openai", 20.0), ("B", "openai", 15.0), ("A", "x", 30.0)]
    ):
        await store.usage.open(replace(ROW, call_id=f"c{number}", credential=credential, provider=provider, at=at))
    await store.usage.open(replace(ROW, call_id="none"))

    assert await store.usage.uses("openai", 10.0) == {"A": (2, 20.0), "B": (1, 15.0)}
