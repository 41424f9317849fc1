"""Sessions, mail, entries and leases as the tests need them."""

import asyncio

from hermes_agent.core.chat import Conversation, Inbound, Principal
from hermes_agent.core.effects import Effect
from hermes_agent.core.events import Entry, MessageTaken
from hermes_agent.core.messages import Text, said
from hermes_agent.store.database import Store
from hermes_agent.store.effects import Intent
from hermes_agent.store.inbox import Ending
from hermes_agent.store.leases import Lease
from hermes_agent.store.sessions import Session
from hermes_agent.store.workers import Timings

QUEUE = "main"
QUEUES = (QUEUE,)
SOON = Timings(look=0.0, blink=0.0, grace=0.0, crash_pause=0.0)
"""Every death is noticed at once, and nothing waits for it."""


def session(name: str = "s1", *, principal: str = "cli:ann", updated: float = 1.0, title: str = "") -> Session:
    return Session(
        id=name,
        principal=principal,
        conversation=f"cli:dm:{name}",
        surface="cli",
        created=1.0,
        updated=updated,
        title=title,
    )


def mail(number: int | str = 1, text: str = "hello") -> Inbound:
    return Inbound(
        source="test",
        source_id=str(number),
        principal=Principal(platform="cli", user="ann"),
        conversation=Conversation(platform="cli"),
        parts=(Text(text=text),),
        received=1.0,
    )


def entry(number: int, text: str = "hello") -> Entry:
    return Entry(number=number, run="r1", at=float(number), event=MessageTaken(message=said(text)))


def intent(call_id: str = "c1", effect: Effect = Effect.WRITES) -> Intent:
    return Intent(call_id=call_id, tool="write_file", effect=effect, key=f"s1/{call_id}", summary="write a")


async def add(store: Store, record: Session) -> Session:
    await store.write(lambda tx: store.sessions.create(tx, record))
    return record


async def claimed(store: Store, name: str = "s1", source_id: int | str = 1) -> Lease:
    """The lease of a new session with one message."""
    await add(store, session(name))
    await store.inbox.accept(mail(source_id), name, QUEUE)
    lease = await store.lanes.claim(QUEUES, name)
    assert lease is not None
    return lease


async def append(store: Store, lease: Lease, *numbers: int) -> None:
    await store.write(lambda tx: store.history.append(tx, lease, [entry(number) for number in numbers]))


async def answer(store: Store, lease: Lease, ids: tuple[int, ...] | None = None) -> bool:
    """End mail of the lease (all of it); whether the lane was given back."""
    chosen = lease.pending if ids is None else ids
    return await store.write(lambda tx: store.inbox.finish(tx, lease, chosen, Ending.ANSWERED))


async def registered(store: Store) -> list[str]:
    async def query(tx):
        return [row[0] for row in await tx.rows("SELECT id FROM worker ORDER BY id")]

    return await store.read(query)


async def die(store: Store) -> None:
    """What the kernel and the server do when a worker's process ends: its lock is free."""
    await store.workers._presence.leave()
    store.workers._present = False


async def reaped(store: Store) -> list[str]:
    async with asyncio.timeout(10):
        while not (freed := await store.workers.reap()):
            await asyncio.sleep(0.01)
    return freed
