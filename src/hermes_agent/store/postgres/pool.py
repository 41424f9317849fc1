"""The connections to one PostgreSQL database, kept open between changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.ids import RandomIds
from hermes_agent.store.postgres.driver import Link, link, unlink

CONNECTIONS = 8
IDLE_SECONDS = 600.0  # Far below the age at which a mark is taken for forgotten.
ENTER = "INSERT INTO commit_mark (client, token, at) VALUES ($1, '', now())"
LEAVE = "DELETE FROM commit_mark WHERE client = $1 OR at < now() - interval '30 days'"
ROLLBACK = "ROLLBACK"


@dataclass(slots=True, kw_only=True)
class Pooled:
    """A connection and the name under which it marks its commits. `usable` is set where it may serve again."""

    link: Link
    client: str
    used: float
    usable: bool = False
    plans: dict[str, str] = field(default_factory=dict)

    async def prepared(self, sql: str) -> str:
        """The name under which the server keeps the plan of this statement; made once, outside a transaction."""
        name = self.plans.get(sql)
        if name is None:
            name = f"plan{len(self.plans)}"
            await self.link.execute(f"PREPARE {name} AS {sql}")
            self.plans[sql] = name
        return name

    async def roll_back(self) -> None:
        """Undo the open transaction, so that the connection can serve again."""
        if not self.link.is_closed():
            await self.link.execute(ROLLBACK)
            self.usable = True


class Pool:
    """At most `CONNECTIONS`, the last used first; one that was left in the middle of something is thrown away."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._ids = RandomIds()
        self._idle: list[Pooled] = []
        self._free = asyncio.Semaphore(CONNECTIONS)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Pooled]:
        """A connection of one's own for a while. Raises `OSError` or what asyncpg raises."""
        async with self._free:
            pooled = self._kept() or await self._made()
            pooled.usable = False
            try:
                yield pooled
                pooled.usable = True
            finally:
                if pooled.usable and not pooled.link.is_closed():
                    pooled.used = self._clock.monotonic()
                    self._idle.append(pooled)
                else:
                    pooled.link.terminate()

    async def close(self) -> None:
        """Say good-bye on every idle connection."""
        while self._idle:
            pooled = self._idle.pop()
            if not pooled.link.is_closed():
                await pooled.link.execute(LEAVE, pooled.client)
            await unlink(pooled.link)

    def _kept(self) -> Pooled | None:
        while self._idle:
            pooled = self._idle.pop()
            if not pooled.link.is_closed() and self._clock.monotonic() - pooled.used < IDLE_SECONDS:
                return pooled
            pooled.link.terminate()
        return None

    async def _made(self) -> Pooled:
        connection = await link(self._url)
        try:
            client = self._ids.short()
            await connection.execute(ENTER, client)
        except BaseException:
            connection.terminate()
            raise
        return Pooled(link=connection, client=client, used=self._clock.monotonic())
