"""Calls are written down before and after, in a run and outside of one."""

import asyncio

import pytest

from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session
from hermes_agent.app.ledger import RunLedger, StoredLedger
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import LostLease
from hermes_agent.core.events import Notice
from hermes_agent.core.model import Usage
from hermes_agent.host.tasks import spawn
from hermes_agent.providers.broker import CallOpened, CallSettled
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
    reserved=None,
)
SETTLED = CallSettled(call_id="c1", outcome="ok", usage=Usage(input=3, output=4), cost=0.5, seconds=0.1)


@pytest.fixture
async def store(tmp_path):
    opened = await open_store(tmp_path / "hermes.db")
    record = SessionRecord(id="s", principal="p", conversation="c", surface="cli", created=0.0, updated=0.0)
    await opened.write(lambda tx: opened.sessions.create(tx, record))
    yield opened
    await opened.close()


async def journal_of(store):
    lease = await store.lanes.hold("s", "cli")
    return Journal(store, lease, Session(id="s"), clock=SystemClock(), show=lambda seen: None, spawn=spawn)


async def test_a_call_outside_any_run_has_its_row(store):
    ledger = StoredLedger(store, SystemClock(), "me")
    await ledger.open(OPENED)
    (before,) = await store.usage.rows("s")
    await ledger.settle(SETTLED)
    (after,) = await store.usage.rows("s")

    assert (before.outcome, before.usage.known, before.principal) == ("", False, "me")
    assert (after.outcome, after.usage.output, after.cost) == ("ok", 4, 0.5)


async def test_the_row_of_a_call_in_a_run_makes_what_was_posted_before_it_durable(store):
    journal = await journal_of(store)
    ledger = RunLedger(store, journal, SystemClock(), "me")
    journal.post(Notice(text="before"))
    await ledger.open(OPENED)

    assert [row.call_id for row in await store.usage.rows("s")] == ["c1"]
    assert [entry.event.text for entry in await store.history.entries("s")] == ["before"]


async def test_a_call_is_settled_although_the_lane_was_lost(store):
    journal = await journal_of(store)
    ledger = RunLedger(store, journal, SystemClock(), "me")
    await ledger.open(OPENED)
    await store.workers.leave()
    with pytest.raises(LostLease):
        await journal.commit(Notice(text="too late"))
    await ledger.settle(SETTLED)
    await asyncio.sleep(0)

    assert [row.outcome for row in await store.usage.rows("s")] == ["ok"]
