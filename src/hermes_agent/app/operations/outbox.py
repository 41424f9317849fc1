"""The outbox: messages of the program to chats, each in a slot of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import StoreError
from hermes_agent.core.outbound import Letter, Slot, SlotState

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

GLANCE = 0.2
"""Seconds between two looks at a slot whose receipt is waited for."""
STORE_PAUSE, MOST_FAILURES = 1.0, 600
"""Seconds until something is tried again for which the store failed, and how often it may in all."""


async def post(system: HomeSystem, letter: Letter) -> None:
    """Put a message into the outbox; the same one twice counts once. Raises `StoreError`."""
    await system.store.write(lambda tx: system.store.outbox.put(tx, letter))


async def is_posted(system: HomeSystem, key: str) -> bool:
    """Whether the message of that key is, or was, in the outbox."""
    return await system.store.outbox.find(key) is not None


async def post_once(system: HomeSystem, letter: Letter) -> bool:
    """Put a message into the outbox; False where it is, or was, there already."""
    if await is_posted(system, letter.key):
        return False
    await post(system, letter)
    return True


async def send(access: Access[HomeSystem], letter: Letter, patience: float) -> Slot | None:
    """Put a message of the owner into the outbox; what became of it within so many seconds."""
    access.check_owner("Only the owner sends messages to any chat.")
    await post(access.system, letter)
    outbox = access.system.store.outbox
    slot = await outbox.find(letter.key)
    while patience > 0 and slot is not None and slot.state not in (SlotState.SENT, SlotState.FAILED):
        await asyncio.sleep(GLANCE)
        patience -= GLANCE
        slot = await outbox.find(letter.key)
    return slot


async def tally(access: Access[HomeSystem]) -> dict[str, int]:
    """How many messages are in which state."""
    found = await access.system.store.outbox.tally()
    return {**found.states, **({"perhaps twice": found.repeated} if found.repeated else {})}


async def retried(work: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Do what nobody waits for any more, from its beginning where the store fails meanwhile. Raises `StoreError` where
    that does not pass."""
    failures = 0
    while True:
        try:
            return await work()
        except StoreError:
            failures += 1
            if failures == MOST_FAILURES:
                raise
        await clock.sleep(STORE_PAUSE)
