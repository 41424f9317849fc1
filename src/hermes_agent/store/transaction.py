"""Protocols of a database (transaction, engine), bases of table groups with their declared statements, and records."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import is_dataclass
from enum import Enum, StrEnum
from functools import cached_property, partial
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, get_origin, get_type_hints

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.records import revive

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
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
        self._engine = self.engine = engine

    async def _one(self, made: Callable[[Row], T], sql: str, *params: Value, brief: bool = False) -> T | None:
        """What is `made` of the row that a query finds; None where it finds none."""
        row = await self._engine.read(lambda tx: tx.row(sql, *params), brief=brief)
        return None if row is None else made(row)


class TimedTables(Tables):
    """Base class of a table group whose rows say when they were written."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        super().__init__(engine)
        self._clock = clock


def first(row: Row) -> Any:  # noqa: ANN401  whatever the column holds
    """The first column of a row."""
    return row[0]


def second(row: Row) -> Any:  # noqa: ANN401  whatever the column holds
    """The second column of a row."""
    return row[1]


class Statement(Generic[P, T, R]):
    """A method of a table group that runs one statement with its arguments as parameters. `made` makes a value of a
    row; `brief` and `durable` as in `Engine`."""

    def __init__(
        self, sql: str, made: Callable[[Row], T] = first, *, brief: bool = False, durable: bool = True
    ) -> None:
        self._sql, self._made, self._brief, self._durable = sql, made, brief, durable

    def __get__(self, tables: Tables, _owner: type) -> Callable[P, Coroutine[Any, Any, R]]:
        return partial(self._run, tables.engine)

    async def _run(self, engine: Engine, *params: Value) -> R:
        raise NotImplementedError


class Many(Statement[P, T, list[T]], Generic[P, T]):
    """What is made of each row that the query finds."""

    async def _run(self, engine: Engine, *params: Value) -> list[T]:
        rows = await engine.read(lambda tx: tx.rows(self._sql, *params), brief=self._brief)
        return [self._made(row) for row in rows]


class Keyed(Statement[P, T, dict[str, T]], Generic[P, T]):
    """What is made of each row that the query finds (by default its second column), by the row's first column."""

    def __init__(self, sql: str, made: Callable[[Row], T] = second, *, brief: bool = False) -> None:
        super().__init__(sql, made, brief=brief)

    async def _run(self, engine: Engine, *params: Value) -> dict[str, T]:
        rows = await engine.read(lambda tx: tx.rows(self._sql, *params), brief=self._brief)
        return {row[0]: self._made(row) for row in rows}


class One(Statement[P, T, T | None], Generic[P, T]):
    """What is made of the row that the query finds; None where it finds none."""

    async def _run(self, engine: Engine, *params: Value) -> T | None:
        row = await engine.read(lambda tx: tx.row(self._sql, *params), brief=self._brief)
        return None if row is None else self._made(row)


class Has(Statement[P, Any, bool], Generic[P]):
    """Whether the query finds a row."""

    async def _run(self, engine: Engine, *params: Value) -> bool:
        return await engine.read(lambda tx: tx.row(self._sql, *params), brief=self._brief) is not None


class Write(Statement[P, Any, int], Generic[P]):
    """How many rows the statement changed, in a commit of its own."""

    async def _run(self, engine: Engine, *params: Value) -> int:
        return await engine.write(lambda tx: tx.run(self._sql, *map(_value, params)), durable=self._durable)


class Within(Generic[P]):
    """A method of a table group: how many rows the statement changed, as part of a transaction."""

    def __init__(self, sql: str) -> None:
        self._sql = sql

    def __get__(self, _tables: Tables, _owner: type) -> Callable[Concatenate[Transaction, P], Coroutine[Any, Any, int]]:
        return self._run

    async def _run(self, tx: Transaction, /, *params: P.args, **_none: P.kwargs) -> int:
        return await tx.run(self._sql, *map(_value, params))


class Columns(Generic[T]):
    """Columns of a table that are fields of a record, by the fields' names: a truth is 0 or 1, an enum its value, a
    tuple or a record JSON."""

    def __init__(self, kind: type[T], names: str) -> None:
        self._kind, self._names = kind, names.split(", ")

    @cached_property
    def _readers(self) -> Sequence[Callable[[Any], Any]]:
        hints = get_type_hints(self._kind)
        return [_reader(hints[name]) for name in self._names]

    def __call__(self, row: Row, **more: Any) -> T:  # noqa: ANN401  the values of other fields
        """The record of a row that begins with these columns, with more fields."""
        facts = zip(self._names, self._readers, row, strict=False)
        return self._kind(**{name: read(value) for name, read, value in facts}, **more)

    def of(self, record: T) -> tuple[Value, ...]:
        """The values of the columns for a record."""
        return tuple(_value(getattr(record, name)) for name in self._names)


def _reader(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401  the type of a field
    if kind is bool or (isinstance(kind, type) and issubclass(kind, Enum)):
        return kind
    if kind == bytes | None:
        return lambda value: None if value is None else bytes(value)
    if get_origin(kind) is tuple or is_dataclass(kind):
        return lambda text: revive(kind, plain(text))
    return lambda value: value


def _value(value: Any) -> Value:  # noqa: ANN401  the value of a field
    match value:
        case bool():
            return int(value)
        case Enum():
            return str(value.value)
        case str():
            return storable(value)
        case int() | float() | bytes() | None:
            return value
        case _:
            return storable(written(value))


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
