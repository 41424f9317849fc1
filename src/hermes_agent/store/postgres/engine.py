"""PostgreSQL engine: runs changes on pooled connections and determines the outcome of a commit whose answer was
lost."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, TypeVar

from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.store.postgres.driver import (
    AGAIN,
    POOLED,
    Link,
    Pool,
    Pooled,
    executing,
    explain,
    is_lost,
    link,
    sqlstate,
    unlink,
)
from hermes_agent.store.transaction import Change, Dialect, Row, Transaction, Value

T = TypeVar("T")
PAUSE, HURRY = 0.05, 0.3
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
# Only where the change wrote something, so that a look stays a look. It has an answer before COMMIT is sent: from then
# on the row is locked, and whoever asks for the mark on another connection waits for the transaction to end.
MARK = (
    "UPDATE commit_mark SET token = $2, at = now() WHERE client = $1 AND pg_current_xact_id_if_assigned() IS NOT NULL"
)
# The same for a change that begins by holding a row, which is a write already: all in one message, planned before.
MARK_HOLDING = "UPDATE commit_mark SET token = $2, at = now() WHERE client = $1"
# Waits for the lost connection's transaction to end, one way or the other.
MARKED = "SELECT token FROM commit_mark WHERE client = $1 FOR UPDATE"
NOTIFY = "SELECT pg_notify($1, $2)"


class PostgresTransaction:
    """A transaction on one connection, begun by its first statement; `token` marks it as committed."""

    dialect = Dialect.POSTGRES

    def __init__(self, pooled: Pooled, token: str, home: int) -> None:
        self._home = str(home)
        self._pooled = pooled
        self._connection = pooled.link
        self._client = pooled.client
        self.token = token
        self.begun = False
        self.marked = False
        self.fenced: set[object] = set()
        self.rings: set[str] = set()

    async def rows(self, sql: str, *params: Value) -> list[Row]:
        await self._begin()
        return [tuple(record) for record in await self._connection.fetch(sql.replace("$home", self._home), *params)]

    async def row(self, sql: str, *params: Value) -> Row | None:
        rows = await self.rows(sql, *params)
        return rows[0] if rows else None

    async def holds(self, sql: str, *params: Value) -> bool:
        if self.begun:
            return bool(await self._run(sql, *params))
        mark, lock = (
            await self._pooled.prepared(MARK_HOLDING),
            await self._pooled.prepared(sql.replace("$home", self._home)),
        )
        self.begun = self.marked = True
        marked = executing(mark, (self._client, self.token))
        return bool(await self._run(f"{BEGIN}; {marked}; {executing(lock, params)}"))

    async def run(self, sql: str, *params: Value) -> int:
        await self._begin()
        return await self._run(sql, *params)

    async def many(self, sql: str, seq_of_params: Sequence[Sequence[Value]]) -> None:
        await self._begin()
        await self._connection.executemany(sql.replace("$home", self._home), seq_of_params)

    async def mark(self) -> bool:
        """Write the token if the change wrote anything; whether it did."""
        if not self.marked:
            self.marked = bool(await self._run(MARK, self._client, self.token))
        return self.marked

    async def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            await self._connection.execute(BEGIN)

    async def _run(self, sql: str, *params: Value) -> int:
        status = await self._connection.execute(sql.replace("$home", self._home), *params)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0


class _Unknown(Exception):
    """Raised when the connection was lost during a commit, so that its outcome is unknown."""

    def __init__(self, client: str, token: str, result: Any) -> None:  # noqa: ANN401  what the change returned
        super().__init__("connection lost")
        self.client = client
        self.token = token
        self.result = result


async def commit(connection: Link) -> None:
    """Send COMMIT and wait for its answer."""
    await connection.execute("COMMIT")


class PostgresEngine:
    """Implements `Engine` on a PostgreSQL database.

    A commit whose answer was lost is looked up by its token on a new connection, and run again only if it was not
    committed. While the server is unreachable, changes and queries wait up to `patience` seconds.
    """

    dialect = Dialect.POSTGRES

    def __init__(
        self,
        url: str,
        channel: str,
        clock: Clock,
        *,
        home: int = 1,
        patience: float = 30.0,
        commit: Callable[[Link], Awaitable[None]] = commit,
    ) -> None:
        self.url = url
        self.channel = channel
        self._clock = clock
        self._own = home
        self._patience = patience
        self._commit = commit
        self._home = asyncio.get_running_loop()
        self._pool = Pool(url, clock)
        self._ids = RandomIds()
        self._closed = False
        self._until = float("inf")
        self.blocked = ""
        self.redact: Callable[[str], str] = str

    def hurry(self) -> None:
        self._until = min(self._until, self._clock.monotonic() + HURRY)

    async def write(self, change: Change[T], *, durable: bool = True) -> T:  # noqa: ARG002  more than was asked for
        # Always durable: workers outlive a crash of the server, which must not give a lane again under the same epoch.
        return await self._at_home(self._write(change))

    async def read(self, query: Change[T], *, brief: bool = False) -> T:  # noqa: ARG002  a server is never at hand
        return await self._at_home(self._read(query))

    async def close(self) -> None:
        if not self._closed and not self._home.is_closed():
            await self._at_home(self._pool.close())
        self._closed = True

    async def _at_home(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work in the event loop that opened the store, where the connections are."""
        if self._closed or self._home.is_closed():
            work.close()
            raise DatabaseUnreachable("The store is closed.")
        if asyncio.get_running_loop() is self._home:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._home))

    async def _write(self, change: Change[T]) -> T:
        deadline = self._clock.monotonic() + self._patience
        while True:
            try:
                return await self._attempt(change)
            except _Unknown as unknown:
                if await self._was_committed(unknown):
                    result: T = unknown.result
                    return result
            except Exception as error:
                if not (is_lost(error) or sqlstate(error) in AGAIN):
                    raise explain(error) from error
                await self._pause(error, deadline)

    async def _read(self, query: Change[T]) -> T:
        deadline = self._clock.monotonic() + self._patience
        while True:
            try:
                return await self._query(query)
            except Exception as error:
                if not is_lost(error):
                    raise explain(error) from error
                await self._pause(error, deadline)

    async def _query(self, query: Change[T]) -> T:
        async with self._pool.connection() as pooled:
            self.blocked = ""
            transaction = PostgresTransaction(pooled, "", self._own)
            transaction.begun = True  # each question of a query may stand alone
            return await query(transaction)

    async def _attempt(self, change: Change[T]) -> T:
        async with self._pool.connection() as pooled:
            self.blocked = ""
            transaction = PostgresTransaction(pooled, self._ids.short(), self._own)
            try:
                result = await change(transaction)
                for target in sorted(transaction.rings):
                    await transaction.rows(NOTIFY, self.channel, target)
                marked = transaction.begun and await transaction.mark()
            except Exception:
                await pooled.roll_back()
                raise
            try:
                if transaction.begun:
                    await self._commit(pooled.link)
            except Exception as error:
                if marked and is_lost(error):
                    raise _Unknown(pooled.client, transaction.token, result) from error
                raise
            return result

    async def _was_committed(self, unknown: _Unknown) -> bool:
        row = await self._read(lambda tx: tx.row(MARKED, unknown.client))
        return row is not None and row[0] == unknown.token

    async def _pause(self, error: Exception, deadline: float) -> None:
        away = f"The PostgreSQL database cannot be reached ({error})."
        if self._clock.monotonic() >= min(deadline, self._until):
            raise DatabaseUnreachable(away) from error
        if is_lost(error):
            self.blocked = away
        await asyncio.sleep(PAUSE)


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
