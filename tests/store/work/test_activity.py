"""What people are told of workers and sessions is what the rows say."""

import asyncio

from hermes_agent.core.chat import Conversation, Inbound, Principal
from hermes_agent.core.messages import Text
from hermes_agent.store.sessions import Session
from tests.databases import OpenAnother
from tests.store.made import SOON, die


def mail(name: str) -> Inbound:
    return Inbound(
        source="test",
        source_id=name,
        principal=Principal(platform="cli", user="me"),
        conversation=Conversation(platform="cli"),
        parts=(Text(text="Hi"),),
        received=0.0,
    )


async def queued(store, name: str, queue: str = "gateway") -> None:
    record = Session(id=name, principal="cli:me", conversation=name, surface="cli", title="T", created=0.0, updated=0.0)
    await store.write(lambda tx: store.sessions.create(tx, record))
    await store.inbox.accept(mail(name), name, queue, at=5.0)


async def test_sessions_with_mail_are_named_and_those_without_are_not(store):
    await queued(store, "one")
    await queued(store, "two")
    lease = await store.lanes.claim(["gateway"])
    await store.write(lambda tx: store.lanes.waits(tx, lease, True))
    idle = Session(id="idle", principal="p", conversation="c", surface="cli", created=0.0, updated=0.0)
    await store.write(lambda tx: store.sessions.create(tx, idle))

    found = {each.session: each for each in await store.activity.active()}

    assert found.keys() == {"one", "two"}
    assert (found["one"].held, found["one"].waits, found["one"].since) == (True, True, 5.0)
    assert (found["two"].held, found["two"].queue, found["two"].title) == (False, "gateway", "T")


async def test_only_live_processes_that_serve_everybody_are_named(store, open_another: OpenAnother):
    served, dead = await open_another(timings=SOON), await open_another(timings=SOON)
    for each in (served, dead):
        each.workers.serves = "gateway"
        await each.workers.register()
    await store.workers.register()
    await die(dead)

    async with asyncio.timeout(10):
        while [each.id for each in await store.activity.serving()] != [served.workers.id]:
            await asyncio.sleep(0.01)
