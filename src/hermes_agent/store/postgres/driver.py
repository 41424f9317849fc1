"""asyncpg driver: the few calls that the store makes, a connection pool, its errors and its texts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from typing import Any, Protocol

from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseUnreachable, DiskFull, StoreError
from hermes_agent.host.late import libraries
from hermes_agent.store.finding.terms import Phrase, Term
from hermes_agent.store.transaction import Value

# 08 connection; 57P01-03 the server shuts down, crashed or starts; 53300 it has no connection left.
LOST = ("08", "57P01", "57P02", "57P03", "53300")
# Serialization failure, deadlock, a standby that is not promoted yet: nothing of the transaction happened.
AGAIN = ("40001", "40P01", "25006")
NO_ROOM = "53100"
# A prepared statement that is there already, or is gone: the server's connection is another one than a moment ago.
SHARED = ("42P05", "26000")
POOLED = (
    "store.url leads to a pooler that gives each transaction another connection (pgbouncer: pool_mode = transaction). "
    "Hermes needs one connection of its own for as long as it is open: set pool_mode = session for this database, or "
    "name the server itself in store.url."
)
# A transaction whose client is gone without a word must not hold its locks for longer than anybody waits. Said after
# the connection is made: a pooler refuses most settings that come with it.
SETTINGS = "SET idle_in_transaction_session_timeout = '15s'; SET client_connection_check_interval = '500ms'"
Listener = Callable[..., None]


class Link(Protocol):
    """The part of an asyncpg connection that the store uses."""

    async def fetch(self, sql: str, *params: Value) -> list[Any]: ...

    async def execute(self, sql: str, *params: Value) -> str: ...

    async def executemany(self, sql: str, params: Sequence[Sequence[Value]]) -> None: ...

    async def add_listener(self, channel: str, callback: Listener) -> None: ...

    def add_termination_listener(self, callback: Listener) -> None: ...

    def is_closed(self) -> bool: ...

    def terminate(self) -> None: ...

    async def close(self) -> None: ...


def _asyncpg() -> Any:  # noqa: ANN401  the module has no types
    try:
        return libraries.asyncpg
    except ModuleNotFoundError as error:
        raise DatabaseUnreachable(
            "store.url is PostgreSQL, and its driver is not installed: pip install 'hermes-runtime[postgres]'"
        ) from error


async def link(url: str) -> Link:
    """Open a connection. Raises `OSError` or what asyncpg raises."""
    connect: Callable[..., Awaitable[Link]] = _asyncpg().connect
    connection = await connect(url, timeout=10.0, command_timeout=60.0)
    try:
        await connection.execute(SETTINGS)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def unlink(connection: Link) -> None:
    """Close a connection, forcibly where the server does not answer."""
    try:
        async with asyncio.timeout(2.0):
            await connection.close()
    except (OSError, TimeoutError):
        connection.terminate()


def sqlstate(error: BaseException) -> str:
    """The SQLSTATE code of an error, "" for errors without one."""
    return str(getattr(error, "sqlstate", None) or "")


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, which leaves the outcome of a running statement unknown."""
    if isinstance(error, (OSError, TimeoutError)):
        return True
    if sqlstate(error).startswith(LOST):
        return True
    # A connection that the server ended in the middle of a question may leave the driver in a state of its own making.
    if type(error).__name__ == "InternalClientError":
        return True
    return type(error).__name__ == "InterfaceError" and "connection is closed" in str(error)


def explain(error: Exception) -> Exception:
    """The `StoreError` for what PostgreSQL raised; other errors unchanged."""
    if sqlstate(error) == NO_ROOM:
        return DiskFull("No room left on the PostgreSQL server's disk. Nothing that was saved before is lost.")
    if sqlstate(error) in SHARED:
        return DatabaseUnreachable(POOLED)
    if sqlstate(error):
        return StoreError(f"PostgreSQL refused: {error}")
    return error


CONNECTIONS = 8
IDLE_SECONDS = 600.0  # Far below the age at which a mark is taken for forgotten.
ENTER = "INSERT INTO commit_mark (client, token, at) VALUES ($1, '', now())"
LEAVE = "DELETE FROM commit_mark WHERE client = $1 OR at < now() - interval '30 days'"
ROLLBACK = "ROLLBACK"


@dataclass(slots=True, kw_only=True)
class Pooled:
    """A pooled connection with the client name that marks its commits. `usable`: it may be reused."""

    link: Link
    client: str
    used: float
    usable: bool = False
    plans: dict[str, str] = field(default_factory=dict)

    async def prepared(self, sql: str) -> str:
        """The name of the prepared statement for this SQL; prepared once, outside a transaction."""
        name = self.plans.get(sql)
        if name is None:
            name = f"plan{len(self.plans)}"
            await self.link.execute(f"PREPARE {name} AS {sql}")
            self.plans[sql] = name
        return name

    async def roll_back(self) -> None:
        """Roll back the open transaction, so that the connection can be reused."""
        if not self.link.is_closed():
            await self.link.execute(ROLLBACK)
            self.usable = True


class Pool:
    """Pool of at most `CONNECTIONS`, the last used first; a connection left in the middle of a statement is
    discarded."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._ids = RandomIds()
        self._idle: list[Pooled] = []
        self._free = asyncio.Semaphore(CONNECTIONS)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Pooled]:
        """Borrow a connection. Raises `OSError` or what asyncpg raises."""
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
        """Close every idle connection."""
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


LAST_POSITION = 16_383  # Later ones are all taken for this one.


def executing(plan: str, params: Sequence[Value]) -> str:
    """An EXECUTE of a prepared statement with literal parameters."""
    return f"EXECUTE {plan}({', '.join(map(literal, params))})"


def literal(value: Value) -> str:
    """The value as an SQL literal, escaped for either setting of `standard_conforming_strings`."""
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"decode('{value.hex()}', 'hex')"
        case str():
            quoted = value.replace("\\", "\\\\").replace("'", "''")
            return f"E'{quoted}'"
        case _:
            return repr(value)


def vector_of(terms: Sequence[Term]) -> str:
    """The tokens as the text of a tsvector with positions; they hold no quotes, and no parser changes them."""
    return " ".join(f"'{term}':{min(place, LAST_POSITION)}" for place, term in enumerate(terms, 1))


def query_of(phrase: Phrase) -> str:
    """A phrase as the text of a tsquery."""
    return "(" + " <-> ".join(f"'{term}'" for term in phrase) + ")"
