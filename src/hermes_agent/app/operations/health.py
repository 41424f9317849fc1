"""Health checks of a home's data: its database, session logs, undelivered messages and memory provider."""

from __future__ import annotations

import asyncio

from hermes_agent.app.memory_provider import MemoryProvider
from hermes_agent.app.operations.access import Access, HomeSystem
from hermes_agent.app.toolkit import needs_without_store
from hermes_agent.core.chat import Slot
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.http import Http
from hermes_agent.host.secrets import Secrets
from hermes_agent.memory.settings import Person
from hermes_agent.store.database import Store
from hermes_agent.store.health import Health, examine

WEEK = 7 * 86_400.0
ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseHealth:
    """Result of the database check: integrity, unreadable log entries, and messages that failed to be delivered in the
    last week."""

    database: Health
    damaged: list[str]
    undelivered: list[Slot]


async def check_database(access: Access[HomeSystem]) -> DatabaseHealth:
    """Check the database, and if it is intact each log record. Raises `StoreError`."""
    store = access.system.store
    health = await examine(store)
    if health.damage:
        return DatabaseHealth(database=health, damaged=[], undelivered=[])
    since = access.system.clock.now() - WEEK
    damaged, failed = await store.history.damaged(), await store.outbox.failed()
    return DatabaseHealth(database=health, damaged=damaged, undelivered=[slot for slot in failed if slot.at > since])


async def check_memory(access: Access[HomeSystem], secrets: Secrets) -> str:
    """Query the memory provider once and return its answer. Raises `HermesError`, `TimeoutError`."""
    http, system = Http(), access.system
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            values = {Clock: system.clock, Http: http, Secrets: secrets, Store: system.store}
            provider = MemoryProvider(needs_without_store(system.home, system.settings, values))
            return await provider.backend(Person(key="", owner=True)).health()
    finally:
        await http.close()
