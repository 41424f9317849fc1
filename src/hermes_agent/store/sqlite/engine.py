"""SQLite engine: one writer thread that commits changes in groups, and concurrent reader threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw

from hermes_agent.core.activity import activity
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseUnreachable, StoreError
from hermes_agent.host.paths import sentence
from hermes_agent.store.sqlite.errors import BusyWait, explain
from hermes_agent.store.sqlite.opening import OpenFile, connect, open_writer
from hermes_agent.store.sqlite.presence import Bell, bell_folder
from hermes_agent.store.sqlite.statements import drive, sqlite_text
from hermes_agent.store.transaction import Change, Dialect, Row, Transaction, Value

T = TypeVar("T")
log = logging.getLogger(__name__)
GROUP = 128
READERS = 4


class SqliteTransaction:
    """A transaction on one connection; SQLite answers at once, so awaiting it never suspends."""

    dialect = Dialect.SQLITE

    def __init__(self, connection: apsw.Connection, home: int) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._home = home
        self.fenced: set[object] = set()
        self.rings: set[str] = set()

    async def rows(self, sql: str, *params: Value) -> list[Row]:
        return list(self._execute(sqlite_text(sql, self._home), params))

    async def row(self, sql: str, *params: Value) -> Row | None:
        return next(iter(list(self._execute(sqlite_text(sql, self._home), params))), None)

    async def holds(self, sql: str, *params: Value) -> bool:
        return await self.row(sql, *params) is not None

    async def run(self, sql: str, *params: Value) -> int:
        before = self._connection.total_changes()
        self._execute(sqlite_text(sql, self._home), params)
        return self._connection.total_changes() - before

    async def many(self, sql: str, seq_of_params: Sequence[Sequence[Value]]) -> None:
        self._connection.executemany(sqlite_text(sql, self._home), seq_of_params)


class _Job:
    """A queued change with the future of its caller."""

    __slots__ = ("change", "durable", "error", "future", "loop", "notify", "result", "rings")

    def __init__(self, change: Change[Any], *, durable: bool) -> None:
        self.change = change
        self.durable = durable
        self.loop = asyncio.get_running_loop()
        self.notify = activity.get().notify
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
    """Implements `Engine` on a SQLite file."""

    dialect = Dialect.SQLITE

    def __init__(self, path: Path, *, busy_seconds: float = 30.0, lasting: bool = True, home: int = 1) -> None:
        self.path = path
        self._home = home
        self._lasting = lasting
        self.bell = Bell(bell_folder(path.parent))
        self._busy_seconds = busy_seconds
        self._busy = BusyWait(path, busy_seconds, self._is_wanted, self._notify)
        self._queue: SimpleQueue[_Job | _Stop] = SimpleQueue()
        self._group: list[_Job] = []
        self._readers: ThreadPoolExecutor | None = None
        self._local = threading.local()
        self._read_connections: list[apsw.Connection] = []
        self._closed = False
        self._failure: DatabaseUnreachable | None = None
        self.notice = ""
        self.redact: Callable[[str], str] = str

    @property
    def blocked(self) -> str:
        """The sentence that names another program that blocks the writer; empty where none does."""
        return self._busy.blocked

    def hurry(self) -> None:
        """Limit waiting for other programs to a moment: this program is ending."""
        self._busy.hurry()

    async def start(self) -> None:
        """Open the file (created or migrated where needed) and start the writer. Raises a `StoreError`."""
        ready = _Job(_nothing, durable=False)
        context = copy_context()
        threading.Thread(target=context.run, args=(self._writer, ready), name="store-writer", daemon=True).start()
        await ready.future

    async def write(self, change: Change[T], *, durable: bool = True) -> T:
        job = _Job(change, durable=durable and self._lasting)
        self._check_open()
        self._put(job)
        result: T = await job.future
        return result

    async def read(self, query: Change[T], *, brief: bool = False) -> T:
        self._check_open()
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
        self.hurry()
        stop = _Stop(_Job(_nothing, durable=False))
        self._put(stop)
        await stop.job.future

    def _put(self, item: _Job | _Stop) -> None:
        self._queue.put(item)
        if self._failure is not None:  # The writer ended in this very moment.
            self._fail_queued(self._failure)

    def _check_open(self) -> None:
        if self._closed:
            raise self._failure or DatabaseUnreachable("The store is closed.")

    # In reader threads, and brief queries in the thread that asks

    def _query(self, query: Change[T], busy_seconds: float) -> T:
        try:
            return drive(query(SqliteTransaction(self._reader(busy_seconds), self._home)))
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
        file: OpenFile | None = None
        try:
            file = open_writer(self.path, self._busy_seconds)
        except apsw.Error as error:
            ready.error = explain(error, self.path)
        except OSError as error:
            ready.error = DatabaseUnreachable(f"The database {self.path} cannot be used. {sentence(error)}")
        except Exception as error:  # noqa: BLE001  Boundary: a thread's failure belongs to who started it.
            ready.error = error
        self.notice = file.notice if file else ""
        _answer([ready])
        if file is None:
            self._closed = True
            return
        self._busy.install(file.connection)
        stops: list[_Job] = []
        try:
            stops = [self._serve(_Writing(file.connection, self.path, self._home)).job]
        except BaseException as error:
            log.exception("nothing more can be written to %s", self.path)
            why = f"{type(error).__name__}: {error}"
            self._failure = DatabaseUnreachable(f"Nothing more can be written here ({why}): start Hermes again.")
        finally:
            self._closed = True
            if self._readers is not None:
                self._readers.shutdown(wait=True)
            for reader in self._read_connections:
                reader.close()
            file.close()
            self.bell.close()
            _answer(stops)
            if self._failure is not None:
                self._fail_queued(self._failure)

    def _serve(self, writing: _Writing) -> _Stop:
        while True:
            stop = self._next_group()
            writing.commit([job for job in self._group if not job.future.cancelled()])
            self._busy.done()
            rings = set().union(*(job.rings for job in self._group if job.error is None))
            _answer(self._group)  # First: whoever asked for a change goes on before this process hears its own ring.
            if rings:
                self.bell.ring(rings)
            if stop is not None:
                return stop

    def _next_group(self) -> _Stop | None:
        self._group = []
        item = self._queue.get()
        try:
            while not isinstance(item, _Stop):
                self._group.append(item)
                if len(self._group) == GROUP:
                    return None
                item = self._queue.get_nowait()
        except Empty:
            return None
        return item

    def _fail_queued(self, failure: DatabaseUnreachable) -> None:
        """Tell everybody who waits for the writer that it ended. In any thread."""
        failed, self._group = self._group, []
        stops: list[_Job] = []
        with suppress(Empty):
            while True:
                item = self._queue.get_nowait()
                if isinstance(item, _Stop):
                    stops.append(item.job)
                else:
                    failed.append(item)
        for job in failed:
            job.error = failure
        _answer([*failed, *stops])

    def _is_wanted(self) -> bool:
        return not all(job.future.cancelled() for job in self._group)

    def _notify(self, text: str) -> None:
        for loop, notify in {(job.loop, job.notify) for job in self._group}:
            with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                loop.call_soon_threadsafe(notify, text)


class _Writing:
    """The writer's connection: commits a group of changes at once."""

    def __init__(self, connection: apsw.Connection, path: Path, home: int = 1) -> None:
        self._connection = connection
        self._path, self._home = path, home
        self._durable = True

    def commit(self, jobs: list[_Job]) -> None:
        """Run the changes in one transaction; every job has its result or error when this returns."""
        if jobs and not self._tried(jobs):
            # The transaction was lost with everybody's work: each change alone finds out whose fault it is.
            for job in jobs:
                job.error = None
                self._tried([job])

    def _tried(self, jobs: list[_Job]) -> bool:
        """Whether it is known what became of each of these; an error of the connection is the error of these alone."""
        try:
            return self._together(jobs)
        except apsw.Error as error:
            self._forget()
            for job in jobs:
                job.error = explain(error, self._path)
        except Exception as error:
            log.exception("a commit failed")
            self._forget()
            for job in jobs:
                job.error = StoreError(f"The database {self._path} cannot be written: {type(error).__name__}: {error}")
        return True

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
        transaction = SqliteTransaction(self._connection, self._home)
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
