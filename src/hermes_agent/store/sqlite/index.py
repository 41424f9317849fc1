"""The search index beside a SQLite log: `index.db` with FTS5, disposable, never in a message's transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import apsw

from hermes_agent.store.search import KINDS, LONGEST_TEXT, Wanted, said, spaced
from hermes_agent.store.sqlite.errors import explain
from hermes_agent.store.sqlite.opening import creation_lock
from hermes_agent.store.transaction import Row

T = TypeVar("T")
log = logging.getLogger(__name__)
FORMAT = 1
BATCH = 2000
# Without its own copy of the text: that is in the log, and a rowid here is an entry's id there.
SCHEMA = f"""
CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize="porter unicode61");
CREATE TABLE progress (entry INTEGER NOT NULL, removal INTEGER NOT NULL);
INSERT INTO progress VALUES (0, 0);
PRAGMA user_version = {FORMAT};
"""
PROGRESS = "SELECT entry, removal FROM progress"
LAST = "SELECT coalesce((SELECT seq FROM log.sqlite_sequence WHERE name = ?), 0)"
# One statement, since every search begins with it.
IS_BEHIND = """
SELECT entry <> coalesce((SELECT seq FROM log.sqlite_sequence WHERE name = 'entry'), 0)
OR removal <> coalesce((SELECT seq FROM log.sqlite_sequence WHERE name = 'removal'), 0) FROM progress
"""
NEWS = "SELECT id, kind, body FROM log.entry WHERE id > ? ORDER BY id LIMIT ?"
ADD = "INSERT INTO words (rowid, text) VALUES (?, ?)"
FORGET = "DELETE FROM words WHERE rowid IN (SELECT rowid FROM words EXCEPT SELECT id FROM log.entry)"
FOUND = """
SELECT entry.session, entry.number, entry.at, entry.body
FROM words JOIN log.entry ON entry.id = words.rowid {owner}
WHERE words MATCH ?1 ORDER BY words.rank LIMIT ?2
"""
OWNER = "JOIN log.session ON session.id = entry.session AND session.principal = ?3"


class SqliteIndex:
    """`Index` in a file of its own. A damaged file is deleted and made again, which the log mentions once."""

    def __init__(self, path: Path, log_path: Path, *, busy_seconds: float) -> None:
        self._path = path
        self._log_path = log_path
        self._busy_seconds = busy_seconds
        self._thread: ThreadPoolExecutor | None = None
        self._connection: apsw.Connection | None = None

    async def catch_up(self) -> int:
        return await self._in_thread(self._catch_up)

    async def find(self, wishes: Sequence[Wanted], *, principal: str, limit: int) -> list[Row]:
        sql = FOUND.format(owner=OWNER if principal else "")
        more = (limit, principal) if principal else (limit,)

        def work(connection: apsw.Connection) -> list[Row]:
            self._catch_up(connection)
            answers = (list(connection.execute(sql, (_match(wanted), *more))) for wanted in wishes)
            return next((rows for rows in answers if rows), [])

        return await self._in_thread(work)

    async def close(self) -> None:
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown()
            self._thread = None

    async def _in_thread(self, work: Callable[[apsw.Connection], T]) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-index")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._safely, work)

    # In the index's thread

    def _safely(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            try:
                return work(self._opened())
            except (apsw.NotADBError, apsw.CorruptError) as error:
                log.warning("The search index %s was damaged (%s) and is made again from the log.", self._path, error)
                self._remove()
                self._catch_up(self._opened())
                return work(self._opened())
        except apsw.Error as error:
            raise explain(error, self._path) from error

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
            connection = self._connection = apsw.Connection(str(self._path), flags=flags)
            connection.set_busy_timeout(int(self._busy_seconds * 1000))
            connection.execute("PRAGMA synchronous = OFF")  # What a power failure breaks is made again.
            if connection.pragma("user_version") != FORMAT:
                self._make(connection)
            connection.execute(f"ATTACH 'file:{quote(str(self._log_path))}?mode=ro' AS log")
        return self._connection

    def _make(self, connection: apsw.Connection) -> None:
        with creation_lock(self._path):
            connection.pragma("journal_mode", "wal")
            with connection:
                if connection.pragma("user_version") != FORMAT:  # pragma: no branch - another process was faster
                    connection.execute(SCHEMA)

    def _catch_up(self, connection: apsw.Connection) -> int:
        count, more = 0, self._is_behind(connection)
        while more:
            read, more = self._advance(connection)
            count += read
        return count

    def _is_behind(self, connection: apsw.Connection) -> bool:
        return bool(connection.execute(IS_BEHIND).get)

    def _advance(self, connection: apsw.Connection) -> tuple[int, bool]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            entry, removal = connection.execute(PROGRESS).get
            last, last_removal = _last(connection, "entry"), _last(connection, "removal")
            if entry > last or removal > last_removal:  # Another log under this name, or an older one.
                connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
                entry = removal = 0
            rows = list(connection.execute(NEWS, (entry, BATCH)))
            connection.executemany(ADD, _texts(rows))
            if removal < last_removal:
                connection.execute(FORGET)
            reached = rows[-1][0] if len(rows) == BATCH else last
            connection.execute("UPDATE progress SET entry = ?, removal = ?", (reached, last_removal))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # pragma: no branch - some failures have ended it already
                connection.execute("ROLLBACK")
            raise
        return len(rows), reached < last

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _remove(self) -> None:
        self._close()
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _last(connection: apsw.Connection, table: str) -> int:
    return int(connection.execute(LAST, (table,)).get)


def _texts(rows: list[Row]) -> list[tuple[int, str]]:
    return [(number, spaced(said(body)[1][:LONGEST_TEXT])) for number, kind, body in rows if kind in KINDS]


def _match(wanted: Wanted) -> str:
    # Every phrase is quoted, so that no word of it is an operator.
    return (" " if wanted.every else " OR ").join(f'"{" ".join(phrase)}"' for phrase in wanted.phrases)
