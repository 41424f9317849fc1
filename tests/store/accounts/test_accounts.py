"""Accounts: every process shares one limit, and what was reserved by the dead stays reserved."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hermes_agent.core.errors import LimitReached
from hermes_agent.core.messages import Usage
from hermes_agent.core.spending import Bid, Grant, Limit, Rules, Scope, Spent, UnknownPrice, nanos
from hermes_agent.store.accounts import KEPT_SECONDS, READ, Owner
from hermes_agent.store.database import Store
from hermes_agent.store.usage import OpenCall, UsageRow
from tests.databases import OpenAnother

BID = Bid(model="v/m", tokens=100, longest=900, question=nanos(0.1), rate=nanos(0.9) / 900)  # a dollar at most
OWNER = Owner(session="s", run="r", job="j", principal="cli:ann", day="2026-11-21", purpose="chat")
ACCOUNTS = ("run s r", "job j", "principal 2026-11-21 cli:ann", "day 2026-11-21", "purpose 2026-11-21 chat")
ROW = UsageRow(
    call_id="c0",
    session="s",
    run="r",
    turn=1,
    purpose="chat",
    provider="v",
    model="m",
    prefix="p",
    messages=1,
    at=10.0,
    principal="cli:ann",
    job="j",
    day="2026-11-21",
)
DAY = Rules(limits=(Limit(scope=Scope.DAY, money=nanos(2.5)),))
EACH = Rules(
    limits=tuple(
        Limit(scope=scope, money=nanos(2.5), tokens=10_000, purpose="chat" if scope is Scope.PURPOSE else "")
        for scope in Scope
    )
)


async def reserve(store: Store, call: str, rules: Rules = DAY, bid: Bid = BID, **changes: object) -> OpenCall:
    row = replace(ROW, call_id=call, **changes)
    return await store.write(lambda tx: store.usage.reserve(tx, row, bid, rules))


async def settle(store: Store, call: str, cost: float | None, usage: Usage | None = None) -> None:
    used = usage or Usage(input=50, output=50)
    await store.write(lambda tx: store.usage.complete(tx, call, used, cost, "ok", 1.0))


async def kept(store: Store, ids: Sequence[str] = ACCOUNTS) -> dict[str, Spent]:
    """What the accounts say."""
    marks = ", ".join(f"${number}" for number in range(1, len(ids) + 1))
    rows = await store.read(lambda tx: tx.rows(READ.replace("FOR NO KEY UPDATE", "").format(ids=marks), *ids))
    return {row[0]: Spent(money=row[1], tokens=row[2], held_money=row[3], held_tokens=row[4]) for row in rows}


def test_a_call_is_entered_in_the_accounts_that_it_has():
    assert OWNER.accounts == ACCOUNTS
    assert replace(OWNER, run="", job="").accounts == ("", "", *ACCOUNTS[2:])
    assert replace(OWNER, purpose="").accounts == (*ACCOUNTS[:4], "")
    assert OWNER.account(Scope.CALL) == ""


async def test_what_is_reserved_counts_until_it_is_settled(store: Store):
    first = await reserve(store, "c1")
    second = await reserve(store, "c2")
    third = await reserve(store, "c3")
    refused = await reserve(store, "c4")
    await settle(store, "c1", 0.2)
    again = await reserve(store, "c5")

    assert first.granted == Grant(max_output=None, money=nanos(1.0), tokens=1_000)
    assert second.granted == first.granted
    assert third.granted == Grant(max_output=400, money=nanos(0.5), tokens=500)
    assert isinstance(refused.granted, LimitReached)
    assert again.granted == Grant(max_output=700, money=nanos(0.8), tokens=800)
    assert [row.call_id for row in await store.usage.rows("s")] == ["c1", "c2", "c3", "c5"]


async def test_a_purpose_has_its_own_limit_and_runs_into_it_without_a_warning(store: Store):
    rules = Rules(limits=(Limit(scope=Scope.PURPOSE, money=nanos(2.0), purpose="title"),))
    titles = [await reserve(store, f"t{number}", rules, purpose="title") for number in range(2)]
    await settle(store, "t0", 1.0)
    await settle(store, "t1", 1.0)
    refused = await reserve(store, "t3", rules, purpose="title")
    chat = await reserve(store, "c1", rules)
    tomorrow = await reserve(store, "t4", rules, purpose="title", day="2026-11-22")

    assert isinstance(refused.granted, LimitReached)
    assert "of today's calls for `title` ($2.00, `auxiliary.title.money`) was reached" in str(refused.granted)
    assert not any(opened.warnings for opened in (*titles, refused))
    assert not any(isinstance(opened.granted, LimitReached) for opened in (chat, tomorrow))


async def test_each_limit_holds_by_itself(store: Store):
    for number in range(3):
        await reserve(store, f"c{number}", EACH)

    other_run = await reserve(store, "c3", EACH, run="r2")
    other_day = await reserve(store, "c4", EACH, run="r3", day="2026-11-22")
    nobodys = await reserve(store, "c5", EACH, run="", job="", day="2026-11-23")

    assert "`budget.job.money`" in str(other_run.granted)
    assert "`budget.job.money`" in str(other_day.granted)
    assert isinstance(nobodys.granted, Grant)


async def test_a_limit_of_one_call_counts_that_call_alone(store: Store):
    rules = Rules(limits=(Limit(scope=Scope.CALL, money=nanos(0.55)),))

    granted = [(await reserve(store, f"c{number}", rules)).granted for number in range(3)]

    assert granted == [Grant(max_output=450, money=nanos(0.55), tokens=550)] * 3
    assert await kept(store) == {}


async def test_a_limit_that_is_set_later_knows_what_was_used_before(store: Store):
    for call, cost in (("c1", 0.5), ("c2", None), ("c3", 0.25)):
        await reserve(store, call, Rules())
        await settle(store, call, cost, Usage(known=False) if cost is None else None)
    await reserve(store, "c4", Rules())

    await reserve(store, "c5", EACH)

    # Spent: 0.50, a whole dollar of which nothing is known, 0.25. Held: of c4, whose price alone leaves nothing for c5.
    assert (await kept(store))["day 2026-11-21"] == Spent(
        money=nanos(1.75), tokens=1_200, held_money=nanos(1.0), held_tokens=1_000
    )
    assert [row.call_id for row in await store.usage.rows("s")] == ["c1", "c2", "c3", "c4"]


async def test_what_a_process_without_limits_uses_is_entered_too(store: Store):
    await reserve(store, "c1")
    await reserve(store, "c2", Rules())
    await settle(store, "c2", 0.3)

    assert (await kept(store))["day 2026-11-21"] == Spent(
        money=nanos(0.3), tokens=100, held_money=nanos(1.0), held_tokens=1_000
    )


async def test_accounts_are_the_sums_of_their_rows(store: Store):
    for number in range(6):
        await reserve(store, f"c{number}", EACH if number % 2 else Rules(), run=f"r{number % 2}")
        if number % 3:
            await settle(store, f"c{number}", [None, 0.1, 0.000_000_000_1][number % 3])

    for id_, spent in (await kept(store)).items():
        scope, *keys = id_.split(" ")
        assert await store.usage.spent(Scope(scope), keys) == spent
    assert len(await kept(store)) == 4  # one call of six was in run r alone


async def test_an_account_that_was_forgotten_is_made_anew(store: Store):
    await reserve(store, "c1")
    await settle(store, "c1", 0.5)
    later = ROW.at + KEPT_SECONDS + 1

    await reserve(store, "c2", EACH, at=later)

    assert (await kept(store))["day 2026-11-21"].money == nanos(0.5)


async def test_a_row_that_is_opened_twice_is_reserved_once(store: Store):
    await reserve(store, "c1")
    await reserve(store, "c1")

    assert (await kept(store))["day 2026-11-21"].held_money == nanos(1.0)


async def test_a_limit_that_is_nearly_used_up_is_told_once(store: Store):
    rules = Rules(limits=(Limit(scope=Scope.DAY, money=nanos(10.0), tokens=100_000),))
    for call, cost in (("c1", 7.9), ("c2", 0.2)):
        assert (await reserve(store, call, rules)).warnings == ()
        await settle(store, call, cost)

    told = []
    for number in range(2):
        told.append((await reserve(store, f"d{number}", rules)).warnings)
        await settle(store, f"d{number}", 0.0)
    raised = await reserve(store, "e", Rules(limits=(Limit(scope=Scope.DAY, money=nanos(10.1)),)))

    assert told == [("81 % of the money limit of today is used: $8.10 of $10.00 (`budget.day.money`).",), ()]
    assert raised.warnings == ("80 % of the money limit of today is used: $8.10 of $10.10 (`budget.day.money`).",)


async def test_an_unknown_price_is_refused_or_not_counted(store: Store):
    strange = Bid(model="v/strange", tokens=100, longest=900)

    refused = await reserve(store, "c1", bid=strange)
    allowed = await reserve(store, "c2", replace(DAY, unknown_price=UnknownPrice.ALLOW), bid=strange)
    await settle(store, "c2", None)

    assert "price of v/strange is unknown" in str(refused.granted)
    assert allowed.granted == Grant(max_output=None, money=None, tokens=1_000)
    assert (await kept(store))["day 2026-11-21"] == Spent(tokens=100)
    assert (await store.usage.rows("s"))[0].reserved is None


@pytest.mark.timeout(60)
async def test_processes_at_the_same_moment_never_reserve_more_than_there_is(open_another: OpenAnother):
    stores = [await open_another() for _ in range(3)]

    async with asyncio.TaskGroup() as group:
        for number in range(30):
            group.create_task(reserve(stores[number % 3], f"c{number}", EACH if number % 4 else DAY, run=f"r{number}"))

    spent = await stores[0].usage.spent(Scope.DAY, ["2026-11-21"])
    assert spent.held_money == nanos(2.5)
    assert (await kept(stores[1], ["day 2026-11-21"]))["day 2026-11-21"] == spent


@pytest.mark.timeout(60)
async def test_a_limit_is_asked_about_while_others_write_without_one(open_another: OpenAnother):
    stores = [await open_another() for _ in range(2)]

    async with asyncio.TaskGroup() as group:
        for number in range(40):
            rules = EACH if number == 20 else Rules()
            group.create_task(reserve(stores[number % 2], f"c{number}", rules, run=f"r{number}"))

    for id_, spent in (await kept(stores[0])).items():
        scope, *keys = id_.split(" ")
        assert await stores[0].usage.spent(Scope(scope), keys) == spent
