"""Health of what a home keeps: its database, its logs, what could not be delivered, and the memory beside the notes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_agent.app.memory_provider import MemoryProvider
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.outbound import Slot
from hermes_agent.host.http import Http
from hermes_agent.memory.whose import Person
from hermes_agent.store.health import Health, examine

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.app.operations.access import Access, HomeSystem

WEEK = 7 * 86_400.0
ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseHealth:
    """What the database says of itself, the log entries that cannot be read, and the messages of the last week that
    were not delivered."""

    database: Health
    damaged: list[str]
    undelivered: list[Slot]


async def check_database(access: Access[HomeSystem]) -> DatabaseHealth:
    """Look through the database, down to each record of the logs where it is whole. Raises `StoreError`."""
    store = access.system.store
    health = await examine(store)
    if health.damage:
        return DatabaseHealth(database=health, damaged=[], undelivered=[])
    since = access.system.clock.now() - WEEK
    damaged, failed = await store.history.damaged(), await store.outbox.failed()
    return DatabaseHealth(database=health, damaged=damaged, undelivered=[slot for slot in failed if slot.at > since])


async def check_memory(access: Access[HomeSystem], secret: Callable[[str], str]) -> str:
    """What the memory beside the notes answers. Raises `HermesError`, `TimeoutError`."""
    http, system = Http(), access.system
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            provider = MemoryProvider(
                home=system.home,
                settings=system.settings.memory,
                http=http,
                secret=secret,
                clock=system.clock,
                is_owner=lambda _: True,
                store=system.store,
            )
            return await provider.backend(Person(key="", owner=True)).health()
    finally:
        await http.close()
