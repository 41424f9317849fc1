"""A worker's presence on a PostgreSQL server: one connection that listens for rings and holds the lock of life."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from hermes_agent.core.clock import Clock
from hermes_agent.store.postgres.driver import Link, explain, is_lost, link, unlink
from hermes_agent.store.postgres.engine import PostgresEngine
from hermes_agent.store.transaction import Transaction

NOW = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
UPTIME = "SELECT CAST(extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) AS double precision)"
LOCK = "SELECT pg_advisory_lock($1)"
# A connection of this worker's own that is lost, which the server has not noticed: it would keep the lock for hours.
END_EARLIER = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted "
    "AND (CAST(classid AS bigint) << 32 | CAST(objid AS bigint)) = $1"
)
# Free again when the statement ends.
IS_FREE = "SELECT pg_try_advisory_xact_lock_shared($1)"
POLL = 1.0
PATIENCE = 5.0
"""Seconds for a connection: whoever waits for a ring has a heart to beat."""


class PostgresPresence:
    """`Presence` for the workers of one database.

    The lock belongs to the connection: it goes when the process dies, and is taken again when the connection was lost
    and came back. `grace` and `blink` are those of `Timings`.
    """

    look_seconds = 0.2

    def __init__(self, engine: PostgresEngine, clock: Clock, *, grace: float, blink: float) -> None:
        self._engine = engine
        self._clock = clock
        self._grace = grace
        self._blink = blink
        self._me = ""
        self._key = 0
        self._connection: Link | None = None
        self._rung = asyncio.Event()
        self._missing: dict[str, float] = {}

    async def arrive(self, worker: str, key: int) -> None:
        self._me, self._key = worker, key
        await self._connect()

    async def leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await unlink(connection)

    async def wait(self, seconds: float) -> bool:
        if self._connection is None or self._connection.is_closed():
            await self._reconnect()
        try:
            async with asyncio.timeout(min(seconds, POLL)):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def now(self) -> float:
        return await self._number(NOW)

    async def look(self) -> bool:
        # A server that has just started holds no locks: nobody has had the time to take theirs again.
        return await self._number(UPTIME) >= self._grace

    def suspicious(self) -> bool:
        return False

    async def dead(self, workers: Collection[tuple[str, int]]) -> list[str]:
        async def query(tx: Transaction) -> list[str]:
            found = [(worker, await tx.row(IS_FREE, key)) for worker, key in workers]
            return [worker for worker, row in found if row is not None and row[0]]

        missing, now = await self._engine.read(query), self._clock.monotonic()
        self._missing = {worker: self._missing.get(worker, now) for worker in missing}
        return [worker for worker, since in self._missing.items() if now - since >= self._blink]

    async def buried(self, worker: str) -> None:
        self._missing.pop(worker, None)

    async def _number(self, sql: str) -> float:
        row = await self._engine.read(lambda tx: tx.row(sql))
        return 0.0 if row is None else float(row[0])

    async def _connect(self) -> None:
        connection = await link(self._engine.url)
        try:
            connection.add_termination_listener(self._lost)
            await connection.fetch(END_EARLIER, self._key)
            await connection.fetch(LOCK, self._key)
            await connection.add_listener(self._engine.channel, self._heard)
        except BaseException:  # cancelled as well: it would hold the lock against its successor
            connection.terminate()
            raise
        self._connection = connection

    async def _reconnect(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._connect()
        except Exception as error:
            if not is_lost(error):
                raise explain(error) from error
            await asyncio.sleep(POLL / 10)
        self._rung.set()  # Rings may have been missed.

    def _heard(self, _connection: object, _pid: int, _channel: str, target: str) -> None:
        if target in ("", self._me):
            self._rung.set()

    def _lost(self, _connection: object) -> None:
        self._rung.set()
