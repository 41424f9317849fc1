"""Liveness of a worker on PostgreSQL: one connection listens for wake-ups and holds an advisory lock."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.store.postgres.driver import POOLED, Link, explain, is_lost, link, unlink
from hermes_agent.store.postgres.engine import PostgresEngine
from hermes_agent.store.transaction import Transaction

NOW = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
# How long the server is what it is, by its start and by its timeline: a promoted standby was started long before.
AGE = (
    "SELECT CAST(extract(epoch FROM clock_timestamp() - greatest(pg_postmaster_start_time(), since)) AS "
    "double precision), number = current_timeline() FROM timeline"
)
PROMOTED = (
    "UPDATE timeline SET number = current_timeline(), since = clock_timestamp() WHERE number <> current_timeline()"
)
LOCK = "SELECT pg_backend_pid(), pg_advisory_lock($1)"
BACKEND = "SELECT pg_backend_pid()"
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
    """Implements `Presence` on PostgreSQL.

    The advisory lock belongs to the connection: it is released when the process dies, and re-acquired after a
    reconnect. `grace` and `blink` are those of `Timings`.
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
        self._returned = -math.inf

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
        return float((await self._engine.read(lambda tx: tx.rows(NOW)))[0][0])

    async def check(self) -> bool:
        # Where the server has just started or been promoted, or the way to it was cut for this one, the others too may
        # not have had the time to take their locks again.
        if self._clock.monotonic() - self._returned < self._grace:
            return False
        age, is_known = (await self._engine.read(lambda tx: tx.rows(AGE)))[0]
        if not is_known:
            await self._engine.write(lambda tx: tx.run(PROMOTED))
        return bool(is_known and age >= self._grace)

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

    async def _connect(self) -> None:
        connection = await link(self._engine.url)
        try:
            connection.add_termination_listener(self._lost)
            await connection.fetch(END_EARLIER, self._key)
            backend = (await connection.fetch(LOCK, self._key))[0][0]
            if (backend,) in await self._engine.read(lambda tx: tx.rows(BACKEND)):
                raise DatabaseUnreachable(
                    POOLED
                )  # Another connection has the same one behind it: the lock is nobody's.
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
        self._returned = self._clock.monotonic()
        self._rung.set()  # Rings may have been missed.

    def _heard(self, _connection: object, _pid: int, _channel: str, target: str) -> None:
        if target in ("", self._me):
            self._rung.set()

    def _lost(self, _connection: object) -> None:
        self._rung.set()
