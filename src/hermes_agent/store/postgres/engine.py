"""The PostgreSQL engine: changes on pooled connections, run to a known end even where a commit's answer is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.store.postgres.driver import AGAIN, Link, explain, is_lost, link, sqlstate, unlink
from hermes_agent.store.transaction import Change, Dialect, Row, Value

T = TypeVar("T")
CONNECTIONS = 8
PAUSE = 0.05
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
# One round trip: a simple query may hold several statements.
BEGIN_LAZY = f"{BEGIN}; SET LOCAL synchronous_commit TO off"
XID = "SELECT CAST(pg_current_xact_id_if_assigned() AS TEXT)"
XID_STATUS = "SELECT pg_xact_status(CAST(CAST($1 AS TEXT) AS xid8))"
NOTIFY = "SELECT pg_notify($1, $2)"


class PostgresTransaction:
    """A transaction on one connection."""

    dialect = Dialect.POSTGRES

    def __init__(self, connection: Link) -> None:
        self._connection = connection
        self.fenced: set[object] = set()
        self.rings: set[str] = set()

    async def rows(self, sql: str, *params: Value) -> list[Row]:
        return [tuple(record) for record in await self._connection.fetch(sql, *params)]

    async def row(self, sql: str, *params: Value) -> Row | None:
        rows = await self._connection.fetch(sql, *params)
        return tuple(rows[0]) if rows else None

    async def run(self, sql: str, *params: Value) -> int:
        status = await self._connection.execute(sql, *params)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def many(self, sql: str, seq_of_params: Sequence[Sequence[Value]]) -> None:
        await self._connection.executemany(sql, seq_of_params)


class _Unknown(Exception):
    """The connection was lost while a commit was under way."""

    def __init__(self, xid: str | None, result: Any) -> None:  # noqa: ANN401  what the change returned
        super().__init__(xid)
        self.xid = xid
        self.result = result


class _Pool:
    """The idle connections, the last used first."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Link] = []
        self._free = asyncio.Semaphore(CONNECTIONS)

    async def take(self) -> Link:
        await self._free.acquire()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        try:
            return await link(self._url)
        except BaseException:
            self._free.release()
            raise

    def give(self, connection: Link, *, usable: bool) -> None:
        if usable and not connection.is_closed():
            self._idle.append(connection)
        else:
            connection.terminate()
        self._free.release()

    async def close(self) -> None:
        while self._idle:
            await unlink(self._idle.pop())


async def commit(connection: Link) -> None:
    """Send COMMIT and wait for its answer."""
    await connection.execute("COMMIT")


class PostgresEngine:
    """`Engine` over one PostgreSQL database.

    A change whose commit was answered by silence is looked up by its transaction id on a new connection: it counts if
    it was committed, and is run again if it was not. While the server is away, changes and queries wait up to
    `patience` seconds.
    """

    dialect = Dialect.POSTGRES

    def __init__(
        self,
        url: str,
        channel: str,
        clock: Clock,
        *,
        patience: float = 30.0,
        commit: Callable[[Link], Awaitable[None]] = commit,
    ) -> None:
        self.url = url
        self.channel = channel
        self._clock = clock
        self._patience = patience
        self._commit = commit
        self._home = asyncio.get_running_loop()
        self._pool = _Pool(url)
        self._closed = False

    async def write(self, change: Change[T], *, durable: bool = True) -> T:
        return await self._at_home(self._write(change, BEGIN if durable else BEGIN_LAZY))

    async def read(self, query: Change[T]) -> T:
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

    async def _write(self, change: Change[T], begin: str) -> T:
        deadline = self._clock.monotonic() + self._patience
        while True:
            try:
                return await self._attempt(change, begin)
            except _Unknown as unknown:
                if await self._was_committed(unknown, deadline):
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
        connection = await self._pool.take()
        usable = False
        try:
            result = await query(PostgresTransaction(connection))
            usable = True
            return result
        finally:
            self._pool.give(connection, usable=usable)

    async def _attempt(self, change: Change[T], begin: str) -> T:
        connection = await self._pool.take()
        usable = False
        try:
            await connection.execute(begin)
            transaction = PostgresTransaction(connection)
            try:
                result = await change(transaction)
                for target in sorted(transaction.rings):
                    await connection.fetch(NOTIFY, self.channel, target)
            except Exception:
                if not connection.is_closed():
                    await connection.execute("ROLLBACK")
                    usable = True
                raise
            await self._finish(connection, result)
            usable = True
            return result
        finally:
            self._pool.give(connection, usable=usable)

    async def _finish(self, connection: Link, result: object) -> None:
        xid = (await connection.fetch(XID))[0][0]
        try:
            await self._commit(connection)
        except Exception as error:
            if is_lost(error):
                raise _Unknown(xid, result) from error
            raise

    async def _was_committed(self, unknown: _Unknown, deadline: float) -> bool:
        if unknown.xid is None:
            return True  # It wrote nothing.

        async def query(connection: PostgresTransaction) -> Row | None:
            return await connection.row(XID_STATUS, unknown.xid)

        while True:
            row = await self._read(query)  # type: ignore[arg-type]
            if row is None or row[0] != "in progress":
                return row is not None and row[0] == "committed"
            await self._pause(unknown, deadline)

    async def _pause(self, error: Exception, deadline: float) -> None:
        if self._clock.monotonic() >= deadline:
            raise DatabaseUnreachable(f"The PostgreSQL database cannot be reached ({error}).") from error
        await asyncio.sleep(PAUSE)
