"""The SQLite engine: one writer thread that commits changes in groups, and reader threads beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseUnreachable
from hermes_agent.store.sqlite.bell import Bell, bell_folder
from hermes_agent.store.sqlite.errors import explain
from hermes_agent.store.sqlite.opening import connect, open_writer
from hermes_agent.store.sqlite.statements import drive, sqlite_text
from hermes_agent.store.transaction import Change, Dialect, Row, Transaction, Value

T = TypeVar("T")
GROUP = 128
READERS = 4


class SqliteTransaction:
    """A transaction on one connection; SQLite answers at once, so awaiting it never suspends."""

    dialect = Dialect.SQLITE

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute
        self.fenced: set[object] = set()
        self.rings: set[str] = set()

    async def rows(self, sql: str, *params: Value) -> list[Row]:
        return list(self._execute(sqlite_text(sql), params))

    async def row(self, sql: str, *params: Value) -> Row | None:
        return next(iter(list(self._execute(sqlite_text(sql), params))), None)

    async def holds(self, sql: str, *params: Value) -> bool:
        return await self.row(sql, *params) is not None

    async def run(self, sql: str, *params: Value) -> int:
        before = self._connection.total_changes()
        self._execute(sqlite_text(sql), params)
        return self._connection.total_changes() - before

    async def many(self, sql: str, seq_of_params: Sequence[Sequence[Value]]) -> None:
        self._connection.executemany(sqlite_text(sql), seq_of_params)


class _Job:
    """A change on its way through the writer, and the future of the one who waits for it."""

    __slots__ = ("change", "durable", "error", "future", "loop", "result", "rings")

    def __init__(self, change: Change[Any], *, durable: bool) -> None:
        self.change = change
        self.durable = durable
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None
        self.rings: set[str] = set()

    def resolve(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


@dataclass(slots=True)
class _Stop:
    job: _Job


class SqliteEngine:
    """`Engine` over one SQLite file."""

    dialect = Dialect.SQLITE

    def __init__(self, path: Path, *, busy_seconds: float = 30.0, lasting: bool = True) -> None:
        self.path = path
        self._lasting = lasting
        self.bell = Bell(bell_folder(path.parent))
        self._busy_seconds = busy_seconds
        self._queue: SimpleQueue[_Job | _Stop] = SimpleQueue()
        self._readers: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._read_connections: list[apsw.Connection] = []
        self._closed = False

    async def start(self) -> None:
        """Open the file (made or migrated where needed) and start the writer. Raises a `StoreError`."""
        ready = _Job(_nothing, durable=False)
        threading.Thread(target=self._writer, args=(ready,), name="store-writer", daemon=True).start()
        await ready.future

    async def write(self, change: Change[T], *, durable: bool = True) -> T:
        job = _Job(change, durable=durable and self._lasting)
        if self._closed:
            raise DatabaseUnreachable("The store is closed.")
        self._queue.put(job)
        result: T = await job.future
        return result

    async def read(self, query: Change[T], *, brief: bool = False) -> T:
        if self._closed:
            raise DatabaseUnreachable("The store is closed.")
        if brief:
            # Handing it to a thread and taking it back costs several times what it takes.
            with suppress(apsw.BusyError):
                return self._query(query, busy_seconds=0.0)
        if self._readers is None:
            self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._query, query, self._busy_seconds)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        stop = _Stop(_Job(_nothing, durable=False))
        self._queue.put(stop)
        await stop.job.future

    # In reader threads, and brief queries in the thread that asks

    def _query(self, query: Change[T], busy_seconds: float) -> T:
        try:
            return drive(query(SqliteTransaction(self._reader(busy_seconds))))
        except apsw.BusyError as error:
            if not busy_seconds:
                raise
            raise explain(error, self.path) from error
        except apsw.Error as error:
            raise explain(error, self.path) from error

    def _reader(self, busy_seconds: float) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self.path, busy_seconds, readonly=True)
            self._local.connection = connection
            self._read_connections.append(connection)
        return connection

    # In the writer thread

    def _writer(self, ready: _Job) -> None:
        connection: apsw.Connection | None = None
        try:
            connection = open_writer(self.path, self._busy_seconds)
        except apsw.Error as error:
            ready.error = explain(error, self.path)
        except OSError as error:
            ready.error = DatabaseUnreachable(f"{self.path} cannot be used: {error.strerror}. Check HERMES_HOME.")
        except Exception as error:  # noqa: BLE001  Boundary: a thread's failure belongs to who started it.
            ready.error = error
        _answer([ready])
        if connection is None:
            self._closed = True
            return
        stop = self._serve(_Writing(connection, self.path))
        if self._readers is not None:
            self._readers.shutdown(wait=True)
        for reader in self._read_connections:
            reader.close()
        connection.close()
        self.bell.close()
        _answer([stop.job])

    def _serve(self, writing: _Writing) -> _Stop:
        while True:
            group, stop = self._next_group()
            writing.commit([job for job in group if not job.future.cancelled()])
            rings = set().union(*(job.rings for job in group if job.error is None))
            _answer(group)  # First: whoever asked for a change goes on before this process hears its own ring.
            if rings:
                self.bell.ring(rings)
            if stop is not None:
                return stop

    def _next_group(self) -> tuple[list[_Job], _Stop | None]:
        group: list[_Job] = []
        item = self._queue.get()
        try:
            while not isinstance(item, _Stop):
                group.append(item)
                if len(group) == GROUP:
                    return group, None
                item = self._queue.get_nowait()
        except Empty:
            return group, None
        return group, item


class _Writing:
    """The writer's connection: a group of changes becomes one commit."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._durable = True

    def commit(self, jobs: list[_Job]) -> None:
        """Run the changes in one transaction; each job holds its result or its error when this returns."""
        if not jobs:
            return
        try:
            if not self._together(jobs):
                # The transaction was lost with everybody's work: each change alone finds out whose fault it is.
                for job in jobs:
                    job.error = None
                    self._together([job])
        except apsw.Error as error:
            self._forget()
            for job in jobs:
                job.error = explain(error, self._path)

    def _together(self, jobs: list[_Job]) -> bool:
        execute = self._connection.execute
        self._be_durable(any(job.durable for job in jobs))
        execute("BEGIN IMMEDIATE")
        for job in jobs:
            if len(jobs) > 1:
                execute("SAVEPOINT change")
            self._run(job)
            if not self._connection.in_transaction:
                return len(jobs) == 1
            if job.error is not None:
                execute("ROLLBACK TO change" if len(jobs) > 1 else "ROLLBACK")
            if len(jobs) > 1:
                execute("RELEASE change")
        if not self._connection.in_transaction:
            return True
        try:
            execute("COMMIT")
        except apsw.Error as error:
            self._forget()
            if len(jobs) > 1:
                return False
            jobs[0].error = explain(error, self._path)
        return True

    def _run(self, job: _Job) -> None:
        transaction = SqliteTransaction(self._connection)
        job.rings = transaction.rings
        try:
            job.result = drive(job.change(transaction))
        except apsw.Error as error:
            job.error = explain(error, self._path)
        except BaseException as error:  # noqa: BLE001  Boundary: a change's failure belongs to who asked for it.
            job.error = error

    def _be_durable(self, durable: bool) -> None:
        if durable != self._durable:
            self._connection.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
            self._durable = durable

    def _forget(self) -> None:
        if self._connection.in_transaction:
            with suppress(apsw.Error):  # The next group is told so where it begins, and tries again.
                self._connection.execute("ROLLBACK")


def _answer(jobs: list[_Job]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, waiting in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, waiting)
        except RuntimeError:  # The loop is closed: nobody waits any more.
            continue


def _resolve(jobs: list[_Job]) -> None:
    for job in jobs:
        job.resolve()


async def _nothing(_tx: Transaction) -> None:
    """No change."""
