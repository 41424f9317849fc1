"""The end of a child and the end of its parent's run, in every order: a report arrives exactly once."""

import asyncio
import random
import re
from contextlib import AsyncExitStack

import pytest

from hermes_agent.core.chat import Standing, Standings
from hermes_agent.core.clock import RandomIds, SystemClock
from hermes_agent.core.events import MessageTaken
from hermes_agent.core.messages import Origin
from hermes_agent.providers.demo.script import Call, Heard, Say
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.front import Hermes
from hermes_agent.store.database import Store
from hermes_agent.store.leases import Lease
from hermes_agent.store.sessions import Session
from hermes_agent.store.work.children import HELD_BACK, Child, Delivery
from hermes_agent.testing.scripted import ScriptedModel
from hermes_agent.work.delegation.delegation import Delegation
from hermes_agent.work.delegation.report import Report
from hermes_agent.work.delegation.settings import DelegationSettings
from tests.agent.harness import Harness, Piece
from tests.databases import OpenAnother
from tests.store.made import QUEUE, QUEUES, add, answer, claimed, mail, session


def nobody(_record, _journal):
    raise AssertionError("no run begins here")


def delegation_of(store: Store, hermes: Hermes | None = None) -> Delegation:
    return Delegation(
        hermes=hermes or Hermes(store=store, build=nobody, seam=Seam(SystemClock(), RandomIds()), queue=QUEUE),
        store=store,
        clock=SystemClock(),
        standings=Standings(lambda _: Standing.OWNER),
        settings=DelegationSettings(),
    )


async def born(store: Store, parent: str, name: str, n: int = 1, delivery: Delivery = Delivery.CALL) -> Session:
    """A child with its mail in the queue."""
    child = Child(
        session=name,
        parent=parent,
        run="r1",
        call="k",
        n=n,
        goal=name,
        role="leaf",
        isolation="task",
        folder="/w",
        queue=QUEUE,
        delivery=delivery,
        created=float(n),
    )

    async def change(tx):
        await store.inbox.accept(mail(name), name, HELD_BACK, tx=tx)
        await store.children.add(tx, child, 1000)

    record = await add(store, session(name))
    await store.write(change)
    return record


async def end(delegation: Delegation, store: Store, name: str) -> None:
    """As the commit of the child's run does it."""
    lease = await store.lanes.claim(QUEUES, name)
    assert lease is not None
    await answer(store, lease)
    report = Report(summary=f"Report of {name}.", label=Origin.WEB)
    await store.write(await delegation.ending(name, "r9", "answered", report))


async def reports(store: Store, parent: str) -> list[str]:
    """The unread reports of a parent."""

    async def query(tx):
        rows = await tx.rows("SELECT source_id FROM inbox WHERE lane = $1 AND source = 'child' ORDER BY id", parent)
        return [row[0] for row in rows]

    return await store.read(query)


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("seed", range(4))
async def test_ends_of_child_and_parent_at_once_deliver_a_report_once_or_stop_it(
    store: Store, open_another: OpenAnother, stopped: bool, seed: int
):
    chance, other = random.Random(seed), await open_another()
    for turn in range(5):
        parent, name = f"p{turn}", f"c{turn}"
        await claimed(store, parent, source_id=parent)
        record = await store.sessions.get(parent)
        assert record is not None
        await born(store, parent, name)
        there = other if chance.random() < 0.5 else store

        async def child_ends(name=name, there=there):
            await asyncio.sleep(chance.random() / 500)
            await end(delegation_of(there), there, name)

        async def parent_ends(record=record):
            await asyncio.sleep(chance.random() / 500)
            await store.write(delegation_of(store).leaving(record, "r1", {"k"}, stopped=stopped))

        async with asyncio.TaskGroup() as group:
            group.create_task(child_ends() if not stopped else asyncio.sleep(0))
            group.create_task(parent_ends())
        found = await store.children.get(name)
        assert found is not None
        assert not found.is_open
        assert found.outcome == ("stopped" if stopped else "answered")
        assert await reports(store, parent) == ([] if stopped else [f"{name}:r{9 if found.delivery == 'mail' else 1}"])


async def test_a_report_that_the_call_has_logged_does_not_come_again(store: Store):
    await claimed(store, "p")
    record = await store.sessions.get("p")
    assert record is not None
    await born(store, "p", "c1")
    await end(delegation_of(store), store, "c1")
    await store.write(delegation_of(store).leaving(record, "r1", set(), stopped=False))

    assert await reports(store, "p") == []


async def test_reports_go_where_the_parent_is_worked_on_with_the_label_and_the_principal_of_the_child(store: Store):
    await claimed(store, "p")
    await born(store, "p", "c1", delivery=Delivery.MAIL)
    await end(delegation_of(store), store, "c1")
    lease = await store.lanes.claim(QUEUES, "p")
    assert lease is None  # It is in hand; its run reads the report at its next turn.

    waiting = [each for _, each in (await store.inbox.waiting(await held(store, "p"))) if each.source == "child"]
    assert [(each.parts[0].origin, each.principal.key) for each in waiting] == [(Origin.WEB, "cli:ann")]
    assert waiting[0].notice == "An agent has ended (answered): c1"


async def held(store: Store, name: str) -> Lease:
    """The lease of the lane as its owner has it."""
    return Lease(lane=name, worker=store.workers.id, epoch=1)


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_every_report_that_comes_while_its_parent_is_busy_is_read_once(tmp_path, full):
    most, chance = 1000 if full else 60, random.Random(7)

    async def think(_arguments, _context):
        await asyncio.sleep(chance.random() / 200)
        return "thought"

    def script(heard: Heard):
        spoken = sum(message.role == "assistant" for message in heard.messages)
        return Call("think", {}) if spoken % 5 else Say("Enough.") if spoken else Call("think", {})

    harness = Harness(tmp_path, ScriptedModel(script), (Piece("think", think),))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(harness.open())
        store, delegation = harness.store, delegation_of(harness.store, harness.hermes)
        for n in range(1, most + 1):
            record = await add(store, session(f"c{n}"))
            child = Child(
                session=record.id,
                parent=harness.session,
                run="r",
                call="k",
                n=n,
                goal="g",
                role="leaf",
                isolation="task",
                folder="/w",
                queue="elsewhere",
                delivery=Delivery.MAIL,
                created=float(n),
            )
            await store.write(lambda tx, child=child: store.children.add(tx, child, 10_000))
        harness.hermes.scheduler.expect(harness.session)
        await harness.tell("Go")

        async def ends(n: int) -> None:
            await asyncio.sleep(chance.random() * most / 200)
            report = Report(summary=f"<{n}>")
            await store.write(await delegation.ending(f"c{n}", "r", "answered", report))

        async with asyncio.TaskGroup() as group:
            for n in range(1, most + 1):
                group.create_task(ends(n))
        async with asyncio.timeout(120):
            while await store.inbox.has_other(harness.session, 0):
                await asyncio.sleep(0.02)
        log = [entry.event for entry in await harness.log()]

    read = [re.search(r"<(\d+)>", event.message.text) for event in log if isinstance(event, MessageTaken)]
    assert sorted(int(found[1]) for found in read if found) == list(range(1, most + 1))
