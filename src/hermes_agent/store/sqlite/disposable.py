"""A file with an index that can be made again at any time: opened when first used, replaced when it is damaged."""

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
from hermes_agent.store.sqlite.opening import creation_lock
from hermes_agent.store.sqlite.sidecars import discard

T = TypeVar("T")
log = logging.getLogger(__name__)
FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI

MAKING_SECONDS = 1.5
"""How long is waited for another process that makes the file; whoever uses it next tries again."""


def _nothing(connection: apsw.Connection) -> None:
    """No more is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the file is: `name` in words, `format` the number under which `schema` is known, `opened` what each new
    connection needs, `filled` what makes up for a file that was thrown away."""

    name: str
    path: Path
    format: int
    schema: str
    busy_seconds: float = 5.0
    opened: Callable[[apsw.Connection], object] = _nothing
    filled: Callable[[apsw.Connection], object] = _nothing


class Disposable:
    """The one connection of this process to such a file, in a thread of its own.

    A file of another format is emptied, a damaged one is deleted and made again, which the log mentions once.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._busy = BusyWait(plan.path, plan.busy_seconds, lambda: True)
        self._thread: ThreadPoolExecutor | None = None
        self._under_way: set[Future[Any]] = set()
        self._connection: apsw.Connection | None = None

    async def work(self, work: Callable[[apsw.Connection], T], *, brief: bool = False) -> T:
        """The result of this work. Raises `StoreError` where the file cannot be read or written. `brief` work takes
        less time than to hand it to the thread and take it back: while the thread rests it is done at once."""
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
