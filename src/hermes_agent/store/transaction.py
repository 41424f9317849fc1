"""Protocols of a database: the transaction and the engine that runs changes; bases of table groups; JSON columns."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec

from hermes_agent.core.clock import Clock

T = TypeVar("T")
Value = str | int | float | bytes | None
Row = tuple[Any, ...]


class Dialect(StrEnum):
    """The database system: SQLite or PostgreSQL."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"


class Transaction(Protocol):
    """An open transaction.

    - SQL has `$1` parameters, and `$home` for the number of the store's home; SQL that both dialects understand
      is written once;
    - `rows` and `row` return the result of a query or a `RETURNING`; `run` returns the number of rows changed;
    - `holds` tells whether a query that locks its rows finds one; as the first statement of a change it costs no
      extra round trip;
    - `fenced` holds the leases that were checked in this transaction and cannot change any more in it;
    - `rings` collects the ids of the workers to wake after the commit; "" wakes all.
    """

    dialect: Dialect
    fenced: set[object]
    rings: set[str]

    async def rows(self, sql: str, *params: Value) -> list[Row]: ...

    async def row(self, sql: str, *params: Value) -> Row | None: ...

    async def holds(self, sql: str, *params: Value) -> bool: ...

    async def run(self, sql: str, *params: Value) -> int: ...

    async def many(self, sql: str, seq_of_params: Sequence[Sequence[Value]]) -> None: ...


Change = Callable[[Transaction], Coroutine[Any, Any, T] | Awaitable[T]]


class Engine(Protocol):
    """Runs changes and queries against one database, from any thread and event loop.

    - a change commits as a whole or not at all, and sees no uncommitted work of others;
    - a change may run more than once before it commits once: it awaits only its transaction, decides on rows and
      has no side effects;
    - a query is not a transaction: others may commit between two of its statements;
    - a `brief` query finds a few rows by a key: on SQLite it runs in the caller's thread;
    - `durable` False commits what a power failure (never a process's death) may lose;
    - cancelling a `write` leaves open whether it commits;
    - `blocked` is a sentence about another program that blocks every change, empty where none is known;
    - `redact` removes secrets from errors and reasons before they are stored;
    - after `hurry` no change waits longer than a moment for another program;
    - raises `DatabaseUnreachable`, `DatabaseDamaged` or `DiskFull`, or what the change raised.
    """

    dialect: Dialect
    redact: Callable[[str], str]

    @property
    def blocked(self) -> str: ...

    def hurry(self) -> None: ...

    async def write(self, change: Change[T], *, durable: bool = True) -> T: ...

    async def read(self, query: Change[T], *, brief: bool = False) -> T: ...

    async def close(self) -> None: ...


def marks(count: int, first: int) -> str:
    """Placeholders for `count` parameters from `$first` on, for an IN list."""
    return ", ".join(f"${number}" for number in range(first, first + count))


class Tables:
    """Base class of a table group: tables of one database with the methods that read and write them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def _one(self, made: Callable[[Row], T], sql: str, *params: Value, brief: bool = False) -> T | None:
        """What is `made` of the row that a query finds; None where it finds none."""
        row = await self._engine.read(lambda tx: tx.row(sql, *params), brief=brief)
        return None if row is None else made(row)


class TimedTables(Tables):
    """Base class of a table group whose rows say when they were written."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__(engine)
        self._clock = clock


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def written(value: object) -> str:
    """The value (dataclasses, enums, containers, numbers, text) as JSON."""
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:  # A lone surrogate cannot be UTF-8: every odd character is escaped instead.
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def plain(body: str) -> Any:  # noqa: ANN401  the caller's `revive` gives it its type
    """Decodes what `written` wrote into dicts, lists, strings and numbers. Raises `ValueError` for anything else."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, TypeError):
        try:
            return json.loads(body)
        except (RecursionError, TypeError) as error:
            raise ValueError(f"no JSON: {error}") from error


def storable(text: str) -> str:
    """Free text without NULs and lone surrogates, which databases refuse in a column."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")
