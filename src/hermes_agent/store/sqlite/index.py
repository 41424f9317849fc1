"""Full-text index for SQLite: `index.db` with FTS5, disposable, never part of a message's transaction."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

import apsw

from hermes_agent.store.finding.ranking import Counts
from hermes_agent.store.finding.terms import (
    FULL_CHARACTERS,
    FULL_MESSAGES,
    LONGEST_TEXT,
    Passage,
    PassageRow,
    Phrase,
    Term,
    cut,
)
from hermes_agent.store.search import KINDS, Extent, Scope, SearchTerms, said
from hermes_agent.store.sqlite.disposable import Disposable, Plan
from hermes_agent.store.transaction import Row

FORMAT = 5
BATCH = 2000
ALIKE = 20
# Without its own copy of the text: that is in the log. Terms come stemmed and cut apart, with spaces between; to this
# tokenizer every character beyond ASCII is part of a word. `owner` holds whose the session is.
SCHEMA = """
CREATE VIRTUAL TABLE words USING fts5(text, owner, content='', contentless_delete=1, tokenize="ascii");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
CREATE TABLE passage (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    began REAL NOT NULL, ended REAL NOT NULL, messages INTEGER NOT NULL, characters INTEGER NOT NULL,
    places BLOB NOT NULL
);
CREATE INDEX passage_by_session ON passage (session, last);
CREATE INDEX passage_by_time ON passage (ended);
CREATE TABLE progress (
    entry INTEGER NOT NULL, removal INTEGER NOT NULL, passages INTEGER NOT NULL, messages INTEGER NOT NULL,
    characters INTEGER NOT NULL, mark TEXT NOT NULL
);
INSERT INTO progress VALUES (0, 0, 0, 0, 0, '');
CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN
    UPDATE progress
    SET passages = passages + 1, messages = messages + new.messages, characters = characters + new.characters;
END;
CREATE TRIGGER passage_removed AFTER DELETE ON passage BEGIN
    UPDATE progress
    SET passages = passages - 1, messages = messages - old.messages, characters = characters - old.characters;
    DELETE FROM words WHERE rowid = old.id;
END;
"""
# What tells the entry that was read last from one of the same id in another log; nothing where it was deleted.
MARK = "(SELECT session || ' ' || number || ' ' || at FROM log.entry WHERE id = progress.entry)"
PROGRESS = f"SELECT entry, removal, mark <> coalesce({MARK}, mark) FROM progress"
LAST = "SELECT coalesce((SELECT seq FROM log.sqlite_sequence WHERE name = ?), 0)"
# One statement, since every search begins with it.
IS_BEHIND = f"""
SELECT entry <> coalesce((SELECT seq FROM log.sqlite_sequence WHERE name = 'entry'), 0)
OR removal <> coalesce((SELECT seq FROM log.sqlite_sequence WHERE name = 'removal'), 0)
OR mark <> coalesce({MARK}, mark) FROM progress
"""
SAYS = f"kind IN {KINDS}"
NEWS = f"""
SELECT id, session, number, at, CASE WHEN {SAYS} THEN body END FROM log.entry WHERE id > ? ORDER BY id LIMIT ?
"""
OPEN = f"""
SELECT id, first, last FROM passage WHERE session = ? AND messages < {FULL_MESSAGES} AND characters < {FULL_CHARACTERS}
ORDER BY last DESC LIMIT 1
"""
AGAIN = (
    f"SELECT number, at, body FROM log.entry WHERE session = ? AND number BETWEEN ? AND ? AND {SAYS} ORDER BY number"
)
OWNER = "SELECT principal, conversation FROM log.session WHERE id = ? AND deleted IS NULL"
ADD = """
INSERT INTO passage (session, first, last, began, ended, messages, characters, places) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
ADD_WORDS = "INSERT INTO words (rowid, text, owner) VALUES (last_insert_rowid(), ?, ?)"
REMOVE = "DELETE FROM passage WHERE id = ?"
FORGET = "DELETE FROM passage WHERE session IN (SELECT session FROM log.removal WHERE id > ?)"
EMPTY = "DELETE FROM passage; UPDATE progress SET entry = 0, removal = 0, mark = ''"
REACHED = f"""
UPDATE progress SET entry = ?, removal = ?; UPDATE progress SET mark = coalesce({MARK}, mark)
"""
COUNTS = "SELECT passages, messages, characters FROM progress"
# Beyond so many it no longer matters how common it is.
HOLDING = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT 20000)"
BEGINNING = "SELECT term FROM vocabulary WHERE term >= ?1 AND term < ?1 || char(1114111) ORDER BY doc DESC LIMIT ?2"
# FTS5 sorts by `rank` before it asks for the spots, which are thus looked up for the best alone.
FOUND = """
SELECT passage.session, passage.first, passage.last, passage.characters, passage.places, best.spots
FROM (
    SELECT rowid AS id, spots(words) AS spots FROM words
    WHERE words MATCH ?1 AND rank MATCH 'bm25(1.0, 0.0)' ORDER BY rank LIMIT ?2
) AS best JOIN passage USING (id)
"""
FOUND_IN = """
SELECT passage.session, passage.first, passage.last FROM words JOIN passage ON passage.id = words.rowid
WHERE words MATCH ?1 AND ({spans}) ORDER BY bm25(words, 1.0, 0.0) LIMIT ?2
"""
NEWEST = """
SELECT passage.session, first, last FROM passage JOIN log.session ON session.id = passage.session
WHERE deleted IS NULL AND (?1 = '' OR principal = ?1) AND (?2 = '' OR conversation = ?2) AND ({spans})
ORDER BY ended DESC LIMIT ?3
"""
SPAN = "passage.began < {:.3f} AND passage.ended >= {:.3f}"


class SqliteIndex:
    """Implements `Index` in a separate SQLite file."""

    def __init__(self, path: Path, log_path: Path, *, busy_seconds: float) -> None:
        attach = f"ATTACH 'file:{quote(str(log_path))}?mode=ro' AS log"
        plan = Plan(
            name="search index",
            path=path,
            format=FORMAT,
            schema=SCHEMA,
            busy_seconds=busy_seconds,
            opened=partial(_prepare, attach),
            filled=_catch_up,
        )
        self._file = Disposable(plan)

    async def catch_up(self) -> int:
        return await self._file.work(_catch_up)

    async def count(self, phrases: Sequence[Phrase]) -> Counts:
        def work(connection: apsw.Connection) -> Counts:
            _catch_up(connection)
            passages, messages, characters = connection.execute(COUNTS).get
            holding = {phrase: int(connection.execute(HOLDING, (_text((phrase,)),)).get) for phrase in phrases}
            return Counts(passages=passages, messages=messages, characters=characters, holding=holding)

        return await self._file.work(work)

    async def resembling(self, beginnings: Sequence[Term]) -> list[Term]:
        def work(connection: apsw.Connection) -> list[Term]:
            found = (connection.execute(BEGINNING, (beginning, ALIKE)) for beginning in beginnings)
            return [term for rows in found for (term,) in rows]

        return await self._file.work(work)

    async def passages(self, wanted: SearchTerms, scope: Scope, limit: int) -> list[Extent]:
        spans = " OR ".join(SPAN.format(span.end, span.start) for span in wanted.spans)

        def work(connection: apsw.Connection) -> list[Extent]:
            if not (wanted.some or wanted.every):
                owner = (scope.principal, scope.conversation)
                rows = connection.execute(NEWEST.format(spans=spans or "1"), (*owner, limit))
            elif spans:
                rows = connection.execute(FOUND_IN.format(spans=spans), (_match(wanted, scope), limit))
            else:
                return [_extent(*row) for row in connection.execute(FOUND, (_match(wanted, scope), limit))]
            return [Extent(session=session, first=first, last=last) for session, first, last in rows]

        return await self._file.work(work)

    async def close(self) -> None:
        await self._file.close()


def _prepare(attach: str, connection: apsw.Connection) -> None:
    connection.execute(attach)
    connection.register_fts5_function("spots", _spots)


def _spots(api: apsw.FTS5ExtensionApi, /, *_arguments: apsw.SQLiteValue) -> bytes:
    """The places in a row's text, counted in terms, at which anything stands that was looked for."""
    return array(
        "I", sorted(place for each in range(api.phrase_count) for place in api.phrase_locations(each)[0])
    ).tobytes()


def _extent(session: str, first: int, last: int, characters: int, places: bytes, spots: bytes) -> Extent:
    numbered, found = array("I", places), array("I", spots)
    numbers, ends = numbered[::2], numbered[1::2]
    holding = dict.fromkeys(first + numbers[bisect_right(ends, spot)] for spot in found)
    return Extent(session=session, first=first, last=last, characters=characters, holding=tuple(holding))


def _catch_up(connection: apsw.Connection) -> int:
    count, more = 0, bool(connection.execute(IS_BEHIND).get)
    while more:
        read, more = _advance(connection)
        count += read
    return count


def _advance(connection: apsw.Connection) -> tuple[int, bool]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        entry, removal, differs = connection.execute(PROGRESS).get
        last, last_removal = _last(connection, "entry"), _last(connection, "removal")
        if differs or entry > last or removal > last_removal:  # Another log under this name, or an older one.
            connection.execute(EMPTY)
            entry = removal = 0
        rows = list(connection.execute(NEWS, (entry, BATCH)))
        _add(connection, rows)
        connection.execute(FORGET, (removal,))
        reached = rows[-1][0] if len(rows) == BATCH else last
        connection.execute(REACHED, (reached, last_removal))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # pragma: no branch - some failures have ended it already
            connection.execute("ROLLBACK")
        raise
    return len(rows), reached < last


def _last(connection: apsw.Connection, table: str) -> int:
    return int(connection.execute(LAST, (table,)).get)


def _add(connection: apsw.Connection, rows: list[Row]) -> None:
    told = sorted((session, number, at, body) for _id, session, number, at, body in rows if body is not None)
    for session, news in groupby(told, key=lambda row: row[0]):
        owner = connection.execute(OWNER, (session,)).get
        if owner is None:  # Deleted meanwhile; its removal comes next.
            continue
        lines = [_line(number, at, body) for _session, number, at, body in news]
        if unfinished := connection.execute(OPEN, (session,)).get:
            passage, first, last = unfinished
            connection.execute(REMOVE, (passage,))
            lines = [_line(*row) for row in connection.execute(AGAIN, (session, first, last))] + lines
        for passage in cut(session, lines):
            _write(connection, passage, _owners(*owner))


def _write(connection: apsw.Connection, passage: Passage, owner: str) -> None:
    extent = (passage.session, passage.first, passage.last, passage.began, passage.ended)
    places = array("I", [each for number, end in passage.places for each in (number - passage.first, end)])
    connection.execute(ADD, (*extent, passage.messages, passage.characters, places.tobytes()))
    connection.execute(ADD_WORDS, (" ".join(passage.terms), owner))


def _line(number: int, at: float, body: str) -> PassageRow:
    return PassageRow(number=number, at=at, text=said(body)[1][:LONGEST_TEXT])


def _owners(principal: str, conversation: str) -> str:
    return f"{_token('p', principal)} {_token('c', conversation)}"


def _token(kind: str, name: str) -> str:
    return kind + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _text(phrases: Sequence[Phrase], joined: str = " OR ") -> str:
    # Every phrase is quoted, so that no word of it is an operator.
    return "text : (" + joined.join(f'"{" ".join(phrase)}"' for phrase in phrases) + ")"


def _match(wanted: SearchTerms, scope: Scope) -> str:
    found = _text(wanted.every, " AND ") if wanted.every else _text(wanted.some)
    if wanted.without:
        found = f"({found} NOT {_text(wanted.without)})"
    for kind, name in (("p", scope.principal), ("c", scope.conversation)):
        if name:
            found = f"owner : {_token(kind, name)} AND {found}"
    return found
