"""A SQLite file that can be rebuilt at any time, such as an index: opened on first use, replaced when damaged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.sqlite.errors import BusyWait, explain
from hermes_agent.store.sqlite.opening import creation_lock, discard

T = TypeVar("T")
log = logging.getLogger(__name__)
FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI

MAKING_SECONDS = 1.5
"""How long is waited for another process that makes the file; whoever uses it next tries again."""


def _nothing(connection: apsw.Connection) -> None:
    """No more is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Description of a disposable file: `name` in words, `format` the version of its `schema`, `opened` prepares
    each connection, `filled` refills a file that was recreated."""

    name: str
    path: Path
    format: int
    schema: str
    busy_seconds: float = 5.0
    opened: Callable[[apsw.Connection], object] = _nothing
    filled: Callable[[apsw.Connection], object] = _nothing


class Disposable:
    """This process's connection to a disposable SQLite file; work on it runs in a thread of its own unless it is brief.

    Empties a file of another format; deletes and recreates a damaged one, which is logged once.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._busy = BusyWait(plan.path, plan.busy_seconds, lambda: True)
        self._thread: ThreadPoolExecutor | None = None
        self._under_way: set[Future[Any]] = set()
        self._connection: apsw.Connection | None = None

    async def work(self, work: Callable[[apsw.Connection], T], *, brief: bool = False) -> T:
        """Run a function on the connection; its result. Raises `StoreError` where the file cannot be read or
        written. `brief` work runs in the caller's thread while the own thread is idle, because switching takes
        longer."""
        if brief and self._connection is not None and not self._under_way:
            return self._safely(work)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"store-{self._plan.path.stem}")
        job = self._thread.submit(self._safely, work)
        self._under_way.add(job)
        job.add_done_callback(self._under_way.discard)
        return await asyncio.wrap_future(job)

    async def close(self) -> None:
        """Close the file."""
        if self._thread is not None:
            self._busy.hurry()
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown()
            self._thread = None

    # In the thread, or in the one that asks while the thread rests

    def _safely(self, work: Callable[[apsw.Connection], T]) -> T:
        plan = self._plan
        try:
            try:
                return work(self._opened())
            except (apsw.NotADBError, apsw.CorruptError) as error:
                log.warning("The %s %s was damaged (%s) and is made again.", plan.name, plan.path, error)
                self._remove()
                plan.filled(self._opened())
                return work(self._opened())
        except apsw.Error as error:
            raise explain(error, plan.path) from error

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            connection = apsw.Connection(str(self._plan.path), flags=FLAGS)
            try:
                self._busy.install(connection)
                connection.execute("PRAGMA synchronous = OFF")  # What a power failure breaks is made again.
                if connection.pragma("user_version") != self._plan.format:
                    self._make(connection)
                self._plan.opened(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _make(self, connection: apsw.Connection) -> None:
        plan = self._plan
        with creation_lock(plan.path, MAKING_SECONDS):
            connection.pragma("journal_mode", "wal")
            with connection:
                if connection.pragma("user_version") != plan.format:  # pragma: no branch - another process was faster
                    _clear(connection)
                    connection.execute(plan.schema)
                    connection.pragma("user_version", plan.format)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _remove(self) -> None:
        self._close()
        discard(self._plan.path)


def _clear(connection: apsw.Connection) -> None:
    """Take away the tables of an older format: virtual ones first, which takes their shadows along."""
    for kind in ("virtual", "table"):
        sql = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = ? AND name NOT LIKE 'sqlite%'"
        for (name,) in list(connection.execute(sql, (kind,))):
            connection.execute(f'DROP TABLE IF EXISTS "{name}"')
