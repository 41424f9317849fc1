"""What a gateway uses of a running system beside operations: the outbox that it delivers, the facts of chats, locks,
and the events of all runs."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hermes_agent.app.system import System
from hermes_agent.core.inbound import TAKEN_BACK, Conversation, Inbound
from hermes_agent.core.outbound import Content, Letter
from hermes_agent.version import VERSION

if TYPE_CHECKING:
    from hermes_agent.app.chats.people import People
    from hermes_agent.core.events import Seen
    from hermes_agent.core.outbound import Slot
    from hermes_agent.store.outbox import Outbox
    from hermes_agent.store.pairing import Facts

LARGEST = 2**63
"""What a database takes as a number: programs of people send what they like for a button."""
TOPIC = "topic"
"""The fact of a chat that names its topic."""


def store_notice(system: System) -> str:
    """How the database was found; empty where there is nothing to say."""
    return system.store.notice


def outbox_of(system: System) -> Outbox:
    """The slots that this process claims and delivers."""
    return system.store.outbox


def facts_of(system: System) -> Facts:
    """What a channel keeps of its chats."""
    return system.store.facts


def follow_events(system: System, overhear: Callable[[Seen], None], wake: Callable[[], None]) -> None:
    """Call `overhear` with each event of all runs of this process, and `wake` when another process has changed
    something."""
    system.hermes.scheduler.bus.overhear(overhear)
    system.hermes.scheduler.subscribe(wake)


def limit_runs(system: System, most: int) -> None:
    """Have at most so many runs at a time from now on."""
    scheduler = system.hermes.scheduler
    scheduler.service = replace(scheduler.service, most=most)
    scheduler.wake()


async def rest(system: System) -> None:
    """Claim nothing more, and return when no run is under way but those that wait for a person."""
    await system.hermes.scheduler.rest()


@asynccontextmanager
async def lock(system: System, name: str) -> AsyncIterator[Callable[[], None] | None]:
    """Hold a named lock for a block, and give what raises `LostLease` once it is lost; None where another process has
    it."""
    locks = system.hermes.scheduler.locks
    lease = await locks.acquire(name)
    if lease is None:
        yield None
        return
    try:
        yield lambda: system.store.workers.alive(lease)
    finally:
        await locks.release(lease)


def check_run(system: System, session: str) -> None:
    """Raise `LostLease` where another process took over the run of a session that was under way here."""
    if (journal := system.hermes.scheduler.journal_of(session)) is not None:
        journal.alive()


async def question_in(system: System, session: str) -> str:
    """The id of the question that words answer, of the session's run in whichever process; empty: there is none."""
    return await system.hermes.scheduler.question(session)


async def meet(system: System, people: People) -> None:
    """Read who was let in. Raises `StoreError`."""
    await people.meet(system.store)


async def ask_pairing(system: System, channel: str, user: str, name: str) -> str:
    """A code for somebody who is not known; empty where too many wait."""
    return await system.store.pairing.ask(channel, user, name)


async def was_withdrawn(system: System, source: str, source_id: str) -> bool:
    """Whether the message of that identity was deleted where it was written, before it was answered."""
    mail = await system.store.inbox.find(source, source_id)
    return mail is not None and mail.reason == TAKEN_BACK


async def slot_at(system: System, slot: int) -> Slot | None:
    """The message of that number."""
    return await system.store.outbox.get(slot) if slot < LARGEST else None


async def topic_of(system: System, where: Conversation) -> str:
    """The topic of a chat; empty where it has none."""
    return (await system.store.facts.of(where.key)).get(TOPIC, "")


async def has_spoken_in(system: System, where: Conversation) -> bool:
    """Whether a chat with one person has a session."""
    return await system.store.sessions.spoken_in(replace(where.place, chat_kind="dm", thread="").key)


def place_of(runtime: System) -> str:
    """Under which name the processes of this home keep it; another machine on the same database has its own."""
    return f"restart {platform.node()} {runtime.home.root}"


async def note_asker(runtime: System, inbound: Inbound) -> None:
    """Keep in which chat a restart was asked for."""
    await runtime.store.facts.set(place_of(runtime), inbound.conversation.key, f"{runtime.clock.now():.3f}")


async def report_back(runtime: System) -> None:
    """Say in the chats that asked for it that this process has begun. Raises `StoreError`."""
    place, now = place_of(runtime), runtime.clock.now()
    for conversation, at in (await runtime.store.facts.of(place)).items():
        text = f"I am back: Hermes {VERSION}, after {max(0.0, now - float(at)):.0f} s."
        letter = Letter(
            key=f"back:{conversation}:{at}", to=Conversation.parse(conversation), content=Content(text=text)
        )
        await runtime.store.write(partial(runtime.store.outbox.put, letter=letter))
        await runtime.store.facts.set(place, conversation, "")
