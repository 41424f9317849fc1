"""Where limits stand, in figures and words."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.costs import Total, cached_share, dollars, list_limits, together
from hermes_agent.app.operations.sessions import run_cost
from hermes_agent.core.chat import Principal, Standing
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Usage
from hermes_agent.core.spending import Limit, Rules, Scope, day_of, nanos
from hermes_agent.store.database import open_store
from hermes_agent.store.sessions import Session
from hermes_agent.store.usage import UsageRow
from hermes_agent.testing.clock import FakeClock

NOON = 1_700_049_600.0
RULES = Rules(
    limits=tuple(
        Limit(scope=scope, money=nanos(2.0), purpose="chat" if scope is Scope.PURPOSE else "") for scope in Scope
    )
)
ROW = UsageRow(
    call_id="c0",
    session="s",
    run="r0",
    turn=1,
    purpose="chat",
    provider="p",
    model="m",
    prefix="",
    messages=1,
    at=NOON,
    day=day_of(NOON),
    principal="cli:ann",
    job="j",
    reserved=0.5,
)
TOTAL = Total(
    key="a", calls=2, usage=Usage(input=10, cached=4), cost=0.5, reserved=0.0, open=0, uncounted=0, unpriced=0
)


async def filled(folder):
    """A dollar is used, half a dollar reserved, one call is of unknown price."""
    store = await open_store(folder / "hermes.db")
    rows = [
        ROW,
        replace(ROW, call_id="c1", run="r1", at=NOON + 1),
        replace(ROW, call_id="c2", run="r1", at=NOON + 2, principal="cli:bob", reserved=None),
    ]
    for row in rows:
        await store.write(lambda tx, row=row: store.usage.open(tx, row))
    await store.write(lambda tx: store.usage.complete(tx, "c0", Usage(input=1), 1.0, "ok", 1.0))
    return store


def asked(store, rules, standing=Standing.OWNER, at=NOON):
    system = SimpleNamespace(store=store, settings=SimpleNamespace(rules=rules), clock=FakeClock(now=at))
    return Access(system=system, who=Principal(platform="cli", user="ann", standing=standing))


async def test_a_member_sees_no_limit_of_others_and_a_run_costs_what_its_calls_did(tmp_path):
    store = await filled(tmp_path)
    with pytest.raises(HermesError, match="Only the owner"):
        await list_limits(asked(store, RULES, Standing.MEMBER))
    costs = [await run_cost(asked(store, RULES).system, "s", run) for run in ("r0", "r1", "none")]
    await store.close()

    assert costs == [1.0, None, 0]


async def test_every_limit_is_shown_with_what_it_counts(tmp_path):
    store = await filled(tmp_path)
    lines = await list_limits(asked(store, RULES))
    await store.close()

    assert [(line.setting, line.of, *line.text) for line in lines] == [
        ("budget.call.money", "each call", "$2.00", "-", "-", "-"),
        ("budget.run.money", "r1", "$2.00", "$0.00 (price unknown for 1)", "$0.50", "$1.50"),
        ("budget.run.money", "r0", "$2.00", "$1.00", "$0.00", "$1.00"),
        ("budget.job.money", "j", "$2.00", "$1.00 (price unknown for 1)", "$0.50", "$0.50"),
        ("budget.principal.money", "cli:ann", "$2.00", "$1.00", "$0.50", "$0.50"),
        ("budget.principal.money", "cli:bob", "$2.00", "$0.00 (price unknown for 1)", "$0.00", "$2.00"),
        ("budget.day.money", day_of(NOON), "$2.00", "$1.00 (price unknown for 1)", "$0.50", "$0.50"),
        ("auxiliary.chat.money", "chat", "$2.00", "$1.00 (price unknown for 1)", "$0.50", "$0.50"),
    ]
    assert (lines[-1].most, lines[-1].used, lines[-1].reserved, lines[-1].left) == (2.0, 1.0, 0.5, 0.5)
    assert (lines[0].used, lines[0].left) == (None, None)


async def test_one_owner_sees_what_holds_for_it(tmp_path):
    store = await filled(tmp_path)
    bob = Session(id="new", principal="cli:bob", conversation="", surface="cli", created=NOON, updated=NOON)
    lines = await list_limits(asked(store, RULES, Standing.MEMBER), bob)
    await store.close()

    assert [line.of for line in lines] == ["each call", "cli:bob", day_of(NOON), "chat"]


async def test_tomorrow_begins_anew(tmp_path):
    store = await filled(tmp_path)
    (line,) = await list_limits(asked(store, Rules(limits=(Limit(scope=Scope.DAY, tokens=5),)), at=NOON + 86_400))
    await store.close()

    assert line.text == ("5 tokens", "0 tokens", "0 tokens", "5 tokens")


def test_totals_add_up():
    assert together([TOTAL, replace(TOTAL, usage=Usage(input=2, known=False), open=1, reserved=0.25)]) == Total(
        key="all",
        calls=4,
        usage=Usage(input=12, cached=4, known=False),
        cost=1.0,
        reserved=0.25,
        open=1,
        uncounted=0,
        unpriced=0,
    )


def test_money_and_shares_in_words():
    assert dollars(TOTAL) == "0.5000"
    assert dollars(replace(TOTAL, unpriced=2)) == "price unknown for 2"
    assert dollars(replace(TOTAL, open=1)) == "0.5000, 1 unfinished"
    assert (cached_share(TOTAL.usage), cached_share(Usage())) == ("40 %", "-")
