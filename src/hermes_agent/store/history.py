"""The append-only log of each session, written under a lease, and the index of runs in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import get_args

from hermes_agent.core.errors import DatabaseTooNew
from hermes_agent.core.events import (
    VOCABULARY_OF,
    Answered,
    Asked,
    Durable,
    Entry,
    MessageTaken,
    Notice,
    RunEnded,
    RunStarted,
)
from hermes_agent.core.messages import Origin, said
from hermes_agent.core.records import revive
from hermes_agent.core.shown import DAMAGED
from hermes_agent.store.leases import Lease, advance, fence
from hermes_agent.store.transaction import Row, Tables, Transaction, plain, written

INSERT = "INSERT INTO entry (session, number, run, at, kind, body) VALUES ($1, $2, $3, $4, $5, $6)"
SELECT = "SELECT number, run, at, body, kind FROM entry WHERE session = $1 AND number > $2 ORDER BY number LIMIT $3"
LAST = "SELECT coalesce(max(number), 0) FROM entry WHERE session = $1"
SAID = "SELECT coalesce(max(number), 0) FROM entry WHERE session = $1 AND kind = 'message_taken'"
MESSAGES = "SELECT count(*) FROM entry WHERE session = $1 AND kind IN ('message_taken', 'replied')"
BODIES = "SELECT id, session, number, kind, body FROM entry WHERE id > $1 ORDER BY id LIMIT $2"
USING = "SELECT DISTINCT session FROM entry WHERE kind = 'replied' AND body LIKE $1 AND body LIKE $2 ORDER BY session"
HOLDING = (
    "SELECT body FROM entry WHERE {of} (body LIKE $1 OR body LIKE $2) "
    "UNION ALL SELECT body FROM inbox WHERE {mail} ended IS NULL AND (body LIKE $1 OR body LIKE $2)"
)
COPY = (
    "INSERT INTO entry (session, number, run, at, kind, body) "
    "SELECT CAST($1 AS TEXT), number, run, at, kind, body FROM entry "
    "WHERE session = $2 AND number <= $3 ORDER BY number"
)
COPY_RUNS = (
    "INSERT INTO run (session, run, first, last, status, question) SELECT CAST($1 AS TEXT), run, first, "
    "CASE WHEN last <= $3 THEN last ELSE 0 END, CASE WHEN last <= $3 THEN status ELSE 'running' END, question "
    "FROM run WHERE session = $2 AND first <= $3"
)
# So many entries are read before it is known whether there are many.
BRIEF = 32
PAGE = 100  # So few that no collection of garbage comes of them.
CHUNK = 2000
EVERYTHING = 2**62
WORDS = frozenset({"message_taken", "replied", "context_added"})
"""Events that are a message of the conversation each: a note takes the place of one that is damaged."""
EVENTS = frozenset(member.__dataclass_fields__["kind"].default for member in get_args(Durable))


class History(Tables):
    """Table of the session logs. `number` counts from 1 within a session; each number is written once, by the
    holder of the session's lane."""

    async def append(self, tx: Transaction, lease: Lease, entries: Sequence[Entry]) -> None:
        """Append to the log of the lease's session. Raises `LostLease`, or `LogBehind` where that would leave a gap."""
        if not entries:
            await fence(tx, lease)
            return
        words = max(VOCABULARY_OF.get(entry.event.kind, 1) for entry in entries)
        await advance(tx, lease, entries[0].number, entries[-1].number, words)
        lane = lease.lane
        rows = [(lane, entry.number, entry.run, entry.at, entry.event.kind, written(entry.event)) for entry in entries]
        if len(rows) == 1:
            await tx.run(INSERT, *rows[0])
        else:
            await tx.many(INSERT, rows)
        await index(tx, lane, entries)

    async def entries(self, session: str, after: int = 0, limit: int | None = None) -> list[Entry]:
        """The entries after number `after`, in order, at most `limit`. For long logs use `pages`, which blocks the
        event loop less."""
        return [entry async for page in self.pages(session, after, limit) for entry in page]

    async def pages(self, session: str, after: int = 0, limit: int | None = None) -> AsyncIterator[list[Entry]]:
        """The same in pages; long ones are read in another thread."""
        left = EVERYTHING if limit is None else limit
        rows = await self._rows(session, after, min(left, BRIEF), brief=True)
        yield _entries(session, rows)
        size = BRIEF
        while len(rows) == size < left:
            left, size = left - size, PAGE
            rows = await self._rows(session, rows[-1][0], min(left, size), brief=False)
            yield await asyncio.to_thread(_entries, session, rows)

    async def of_mail(self, session: str, row: int) -> AsyncIterator[list[Entry]]:
        """The entries of the run that took the message of that inbox row, in pages; all entries where the run is
        unknown."""
        first, last = await self._span(OF_MAIL, session, row)
        async for page in self.pages(session, first - 1, last - first + 1 if last else None):
            yield page

    async def of_run(self, session: str, run: str, after: int = 0) -> AsyncIterator[list[Entry]]:
        """The entries of a run after number `after`, in pages; all where its range is unknown."""
        first, last = await self._span(SPAN, session, run)
        after = max(after, first - 1)
        async for page in self.pages(session, after, max(0, last - after) if last else None):
            yield page

    async def since_last_end(self, session: str) -> AsyncIterator[list[Entry]]:
        """The entries after the last end of a run, in pages: earlier questions are no longer open."""
        async for page in self.pages(session, await self._number(LAST_END, session)):
            yield page

    async def _span(self, sql: str, *key: str | int) -> tuple[int, int]:
        row = await self._engine.read(lambda tx: tx.row(sql, *key), brief=True)
        return (1, 0) if row is None or not row[0] else (row[0], row[1])

    async def last_number(self, session: str) -> int:
        """The number of the newest entry, 0 where there is none."""
        return await self._number(LAST, session)

    async def said_at(self, session: str) -> int:
        """The number of the newest message that was sent, 0 where there is none."""
        return await self._number(SAID, session)

    async def count_messages(self, session: str) -> int:
        """How many messages a session has, of people and models."""
        return await self._number(MESSAGES, session)

    async def calling(self, tool: str, word: str = "%") -> tuple[str, ...]:
        """The sessions that called that tool, with that word among the arguments where given. Scans all logs: use it
        rarely."""
        return tuple(
            row[0] for row in await self._engine.read(lambda tx: tx.rows(USING, f'%"name":"{tool}"%', f'%"{word}"%'))
        )

    async def holding(self, words: tuple[str, str], session: str = "") -> list[str]:
        """The raw entries and open mail that contain one of the words, of one session or (empty) of all, which scans
        everything."""
        sql = HOLDING.format(of="session = $3 AND" if session else "", mail="lane = $3 AND" if session else "")
        like = [f"%{word}%" for word in words]
        rows = await self._engine.read(lambda tx: tx.rows(sql, *like, *filter(None, [session])))
        return [row[0] for row in rows]

    async def damaged(self) -> list[str]:
        """All unreadable log entries, as `SESSION NUMBER`. Scans everything."""
        found: list[str] = []
        last = 0
        while rows := await self._engine.read(partial(_bodies, after=last)):
            found += await asyncio.to_thread(_unreadable, rows)
            last = rows[-1][0]
        return found

    async def _number(self, sql: str, session: str) -> int:
        row = await self._engine.read(lambda tx: tx.row(sql, session), brief=True)
        return int(row[0]) if row else 0

    async def _rows(self, session: str, after: int, limit: int, *, brief: bool) -> list[Row]:
        return await self._engine.read(lambda tx: tx.rows(SELECT, session, after, limit), brief=brief)

    async def copy(self, tx: Transaction, lease: Lease, source: str, upto: int) -> int:
        """Start the log of the lease's session as a copy of `source` up to number `upto`; the number of entries."""
        await advance(tx, lease, 1, upto)
        await tx.run(COPY_RUNS, lease.lane, source, upto)
        return await tx.run(COPY, lease.lane, source, upto)


def _entries(session: str, rows: Sequence[Row]) -> list[Entry]:
    return [_entry(session, row) for row in rows]


def _entry(session: str, row: Row) -> Entry:
    number, run, at, body, kind = row
    try:
        event: Durable = revive(Durable, plain(body))
    except ValueError:
        event = _passed_over(session, number, kind)
    return Entry(number=number, run=run, at=at, event=event)


async def _bodies(tx: Transaction, after: int) -> list[Row]:
    return await tx.rows(BODIES, after, CHUNK)


def _unreadable(rows: Sequence[Row]) -> list[str]:
    found = []
    for _id, session, number, kind, body in rows:
        try:
            revive(Durable, plain(body))
        except ValueError:
            if kind in EVENTS:
                found.append(f"{session} {number}")
    return found


def _passed_over(session: str, number: int, kind: str) -> Durable:
    """What stands in the log for an entry that cannot be read. Raises `DatabaseTooNew` for one of a later version."""
    if kind not in EVENTS:
        raise DatabaseTooNew(
            f"Entry {number} of session {session} is an event `{kind[:40]}`, which this version of Hermes does not "
            "know: a later one wrote it. Update Hermes here; nothing is lost."
        )
    text = DAMAGED.format(number=number, kind=kind)
    return MessageTaken(message=said(text, Origin.RUNTIME)) if kind in WORDS else Notice(text=text, level="warning")


PUT = (
    "INSERT INTO run (session, run, first, last, status, question) VALUES ($1, $2, $3, $4, $5, $6) "
    "ON CONFLICT (session, run) DO UPDATE SET last = excluded.last, status = excluded.status, "
    "question = excluded.question"
)
ANSWERED = "UPDATE run SET status = 'running', question = '' WHERE session = $1 AND run = $2 AND question = $3"
MAIL = "UPDATE inbox SET number = $3 WHERE id = $2 AND lane = $1"
SPAN = "SELECT first, last FROM run WHERE session = $1 AND run = $2"
OF_MAIL = (
    "SELECT inbox.number, coalesce(run.last, 0) FROM inbox "
    "JOIN entry ON entry.session = inbox.lane AND entry.number = inbox.number "
    "LEFT JOIN run ON run.session = entry.session AND run.run = entry.run WHERE inbox.id = $2 AND inbox.lane = $1"
)
LAST_END = "SELECT coalesce(max(last), 0) FROM run WHERE session = $1"


async def index(tx: Transaction, session: str, entries: Sequence[Entry]) -> None:
    """Update the rows of the runs for these entries, in the transaction that appends them."""
    for entry in entries:
        key = (session, entry.run)
        match entry.event:
            case RunStarted():
                await tx.run(PUT, *key, entry.number, 0, "running", "")
            case MessageTaken(inbox=row) if row:
                await tx.run(MAIL, session, row, entry.number)
            case Asked(question=question):
                await tx.run(PUT, *key, 0, 0, "waiting", question)
            case Answered(question=question):
                await tx.run(ANSWERED, *key, question)
            case RunEnded(outcome=outcome):
                await tx.run(PUT, *key, 0, entry.number, outcome.value, "")
            case _:
                pass
