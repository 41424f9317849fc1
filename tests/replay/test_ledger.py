"""Calls are written down before and after, in a run and outside of one."""

import asyncio
from dataclasses import replace

import pytest

from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import LimitReached, LostLease
from hermes_agent.core.events import MessageTaken, Notice
from hermes_agent.core.messages import Usage
from hermes_agent.core.spending import Bid, Limit, Rules, Scope, UnknownPrice, day_of, nanos
from hermes_agent.host.tasks import spawn
from hermes_agent.providers.broker import CallOpened, CallSettled
from hermes_agent.replay.seam import Book, RunLedger, StoredLedger
from hermes_agent.store.database import open_store
from hermes_agent.store.sessions import Session as SessionRecord

OPENED = CallOpened(
    call_id="c1",
    session="s",
    run="r",
    turn=1,
    purpose="chat",
    provider="p",
    model="m",
    credential="KEY",
    prefix="h",
    messages=2,
    bid=Bid(model="p/m", tokens=100, longest=900, question=nanos(0.1), rate=nanos(0.9) / 900),
)
SETTLED = CallSettled(call_id="c1", outcome="ok", usage=Usage(input=3, output=4), cost=0.5, seconds=0.1)


@pytest.fixture
async def store(tmp_path):
    opened = await open_store(tmp_path / "hermes.db")
    record = SessionRecord(id="s", principal="p", conversation="c", surface="cli", created=0.0, updated=0.0, job="j")
    await opened.write(lambda tx: opened.sessions.create(tx, record))
    yield opened
    await opened.close()


async def journal_of(store):
    lease = await store.lanes.hold("s", "cli")
    return Journal(store, lease, Session(id="s"), clock=SystemClock(), show=lambda seen: None, spawn=spawn)


def limited(money, **more):
    return Rules(limits=(Limit(scope=Scope.DAY, money=nanos(money)),), **more)


async def ledger_of(store, journal, rules=None):
    book = Book(store=store, clock=SystemClock(), rules=rules or Rules())
    return RunLedger(book, journal, await store.sessions.get("s"))


async def test_a_call_outside_any_run_has_its_row(store):
    ledger = StoredLedger(Book(store=store, clock=SystemClock()), "me")
    await ledger.open(OPENED)
    (before,) = await store.usage.rows("s")
    await ledger.complete(SETTLED)
    (after,) = await store.usage.rows("s")

    assert (before.outcome, before.usage.known, before.principal) == ("", False, "me")
    assert (before.reserved, before.reserved_tokens, before.day) == (1.0, 1_000, day_of(before.at))
    assert (after.outcome, after.usage.output, after.cost) == ("ok", 4, 0.5)


async def test_the_row_of_a_call_in_a_run_makes_what_was_posted_before_it_durable(store):
    journal = await journal_of(store)
    ledger = await ledger_of(store, journal)
    journal.post(Notice(text="before"))
    await ledger.open(OPENED)

    assert [row.call_id for row in await store.usage.rows("s")] == ["c1"]
    assert [entry.event.text for entry in await store.history.entries("s")] == ["before"]


async def test_a_call_is_settled_although_the_lane_was_lost(store):
    journal = await journal_of(store)
    ledger = await ledger_of(store, journal)
    await ledger.open(OPENED)
    await store.workers.leave()
    with pytest.raises(LostLease):
        await journal.commit(Notice(text="too late"))
    await ledger.complete(SETTLED)
    await asyncio.sleep(0)

    assert [row.outcome for row in await store.usage.rows("s")] == ["ok"]


async def test_a_call_that_no_limit_pays_for_has_no_row_and_the_run_may_write_on(store):
    journal = await journal_of(store)
    ledger = await ledger_of(store, journal, limited(0.01))
    journal.post(Notice(text="before"))
    with pytest.raises(LimitReached, match=r"budget\.day\.money"):
        await ledger.open(OPENED)
    await journal.commit(Notice(text="after"))

    assert await store.usage.rows("s") == []
    assert [entry.event.text for entry in await store.history.entries("s")] == ["before", "after"]


async def test_a_call_outside_any_run_is_held_to_the_limits_too(store):
    ledger = StoredLedger(Book(store=store, clock=SystemClock(), rules=limited(0.01)), "me")

    with pytest.raises(LimitReached):
        await ledger.open(OPENED)
    assert await store.usage.rows("s") == []


async def test_a_row_names_the_sessions_person_and_job(store):
    ledger = await ledger_of(store, await journal_of(store))
    await ledger.open(OPENED)

    (row,) = await store.usage.rows("s")
    assert (row.principal, row.job) == ("p", "j")


async def test_the_person_and_the_agent_are_told_once_of_a_limit_that_is_nearly_used_up(store):
    journal = await journal_of(store)
    ledger = await ledger_of(store, journal, limited(10.0))
    await ledger.open(OPENED)
    await ledger.complete(replace(SETTLED, cost=8.5))
    for number in (2, 3):
        await ledger.open(replace(OPENED, call_id=f"c{number}"))
        await ledger.complete(replace(SETTLED, call_id=f"c{number}"))
    await journal.settled()

    notice, message = [entry.event for entry in await store.history.entries("s")]
    assert isinstance(notice, Notice)
    assert notice.text == "85 % of the money limit of today is used: $8.50 of $10.00 (`budget.day.money`)."
    assert isinstance(message, MessageTaken)
    assert message.message.text.startswith(notice.text)


async def test_money_that_no_limit_counts_is_said_once(store):
    journal = await journal_of(store)
    ledger = await ledger_of(store, journal, limited(1.0, unknown_price=UnknownPrice.ALLOW))
    for number in range(2):
        await ledger.open(replace(OPENED, call_id=f"c{number}", bid=Bid(model="p/m", tokens=1, longest=9)))
    await journal.settled()

    (entry,) = await store.history.entries("s")
    assert entry.event.text == (
        "The price of p/m is unknown: what it costs is not counted against `budget.day.money` (`budget.unknown_price`)."
    )


async def test_the_lower_of_two_limits_holds_for_a_piece_of_work(store):
    own, day = Limit(scope=Scope.RUN, tokens=100), Limit(scope=Scope.DAY, money=5)

    def within(limit: Limit, *limits: Limit) -> tuple[Limit, ...]:
        return tuple(Book(store=store, clock=SystemClock(), rules=Rules(limits=limits)).within(limit).rules.limits)

    assert within(Limit(scope=Scope.RUN)) == ()
    assert within(own, day) == (day, own)
    assert within(own, Limit(scope=Scope.RUN, money=3, tokens=50)) == (Limit(scope=Scope.RUN, money=3, tokens=50),)
