"""Operations for the gateway: outbox, facts about chats, locks, run limits, pairing, questions, events of all runs."""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hermes_agent.app.operations.access import HomeSystem
from hermes_agent.app.system import System
from hermes_agent.core.chat import TAKEN_BACK, Content, Conversation, Inbound, Letter, Slot
from hermes_agent.version import VERSION

if TYPE_CHECKING:
    from hermes_agent.app.chats.people import People
    from hermes_agent.core.events import Seen
    from hermes_agent.store.outbox import Outbox
    from hermes_agent.store.pairing import Facts

LARGEST = 2**63
"""What a database takes as a number: programs of people send what they like for a button."""
TOPIC = "topic"
"""The fact of a chat that names its topic."""


def store_notice(system: System) -> str:
    """The database's notice about how it was found; may be empty."""
    return system.store.notice


def outbox_of(system: System) -> Outbox:
    """The outbox that this process delivers."""
    return system.store.outbox


def facts_of(system: HomeSystem) -> Facts:
    """Key-value facts of chats."""
    return system.store.facts


def follow_events(system: System, overhear: Callable[[Seen], None], wake: Callable[[], None]) -> None:
    """Subscribe: `overhear` gets each event of all runs of this process; `wake` is called after a change by another
    process."""
    system.hermes.scheduler.bus.overhear(overhear)
    system.hermes.scheduler.subscribe(wake)


def limit_runs(system: System, most: int) -> None:
    """Set the maximum of parallel runs."""
    scheduler = system.hermes.scheduler
    scheduler.service = replace(scheduler.service, most=most)
    scheduler.wake()


async def rest(system: System) -> None:
    """Stop claiming lanes and wait until only runs that wait for a person are left."""
    await system.hermes.scheduler.rest()


@asynccontextmanager
async def lock(system: System, name: str) -> AsyncIterator[Callable[[], None] | None]:
    """Context manager: hold a named lock. Yields a check that raises `LostLease` once it is lost, or None if another
    process holds it."""
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
    """Raise `LostLease` if another process took over this session's run."""
    if (journal := system.hermes.scheduler.journal_of(session)) is not None:
        journal.alive()


async def meet(system: System, people: People) -> None:
    """Load the users admitted by pairing codes. Raises `StoreError`."""
    await people.meet(system.store)


async def ask_pairing(system: System, channel: str, user: str, name: str) -> str:
    """Create a pairing code for an unknown user; empty if too many are pending."""
    return await system.store.pairing.ask(channel, user, name)


async def was_withdrawn(system: System, source: str, source_id: str) -> bool:
    """Whether the sender deleted the message before it was answered."""
    mail = await system.store.inbox.find(source, source_id)
    return mail is not None and mail.reason == TAKEN_BACK


async def slot_at(system: System, slot: int) -> Slot | None:
    """The outbox slot of that number."""
    return await system.store.outbox.get(slot) if slot < LARGEST else None


async def topic_of(system: System, where: Conversation) -> str:
    """The current topic of a chat; empty if none."""
    return (await system.store.facts.of(where.key)).get(TOPIC, "")


async def has_spoken_in(system: System, where: Conversation) -> bool:
    """Whether a private chat has a session."""
    return await system.store.sessions.spoken_in(replace(where.place, chat_kind="dm", thread="").key)


def place_of(runtime: System) -> str:
    """The fact key for restart requests; each machine and home on a shared database has its own."""
    return f"restart {platform.node()} {runtime.home.root}"


async def note_asker(runtime: System, inbound: Inbound) -> None:
    """Remember the chat that asked for a restart."""
    await runtime.store.facts.set(place_of(runtime), inbound.conversation.key, f"{runtime.clock.now():.3f}")


async def report_back(runtime: System) -> None:
    """Tell the chats that asked for a restart that this process is up. Raises `StoreError`."""
    place, now = place_of(runtime), runtime.clock.now()
    for conversation, at in (await runtime.store.facts.of(place)).items():
        text = f"I am back: Hermes {VERSION}, after {max(0.0, now - float(at)):.0f} s."
        letter = Letter(
            key=f"back:{conversation}:{at}", to=Conversation.parse(conversation), content=Content(text=text)
        )
        await runtime.store.write(partial(runtime.store.outbox.put, letter=letter))
        await runtime.store.facts.set(place, conversation, "")
