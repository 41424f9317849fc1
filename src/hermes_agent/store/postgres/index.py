"""Full-text index on PostgreSQL: one tsvector per passage of a session, filled from the log in commit order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

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
from hermes_agent.store.postgres.driver import Link, query_of, vector_of
from hermes_agent.store.postgres.engine import PostgresEngine
from hermes_agent.store.search import KINDS, Extent, Scope, SearchTerms, said
from hermes_agent.store.transaction import Row, Transaction

BATCH = 1000
ALIKE = 20
SAYS = f"kind IN {KINDS}"
# What commits later has a higher transaction id than everything that is still under way; so nothing is skipped.
NEWS = f"""
SELECT CAST(entry.xid AS TEXT), entry.id, entry.session, entry.number, entry.at, CASE WHEN {SAYS} THEN entry.body END
FROM entry, indexed
WHERE (entry.xid, entry.id) > (indexed.xid, indexed.entry) AND entry.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY entry.xid, entry.id LIMIT $1
"""
IS_BEHIND = """
SELECT 1 FROM entry, indexed WHERE (entry.xid, entry.id) > (indexed.xid, indexed.entry)
AND entry.xid < pg_snapshot_xmin(pg_current_snapshot()) LIMIT 1
"""
# A dump keeps the transaction ids of the server that it came from: what seems to come from the future was restored, and
# would be passed over until this server's own ids are as high.
IS_RESTORED = (
    "SELECT EXISTS (SELECT 1 FROM entry WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())) "
    "OR EXISTS (SELECT 1 FROM indexed WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()))"
)
BEGIN_ANEW = """
SELECT 1 FROM indexed FOR UPDATE;
UPDATE entry SET xid = pg_current_xact_id() WHERE xid >= pg_snapshot_xmax(pg_current_snapshot());
DELETE FROM passage;
UPDATE indexed SET xid = '0', entry = 0
"""
LOCK = "SELECT 1 FROM indexed FOR UPDATE"
# Whoever deletes the session waits, and then takes its passages too.
HOLD = "SELECT 1 FROM session WHERE id = $1 AND deleted IS NULL FOR SHARE"
OPEN = f"""
SELECT id, first, last FROM passage WHERE session = $1
AND messages < {FULL_MESSAGES} AND characters < {FULL_CHARACTERS} ORDER BY last DESC LIMIT 1
"""
AGAIN = f"SELECT number, at, body FROM entry WHERE session = $1 AND number BETWEEN $2 AND $3 AND {SAYS} ORDER BY number"
REMOVE = "DELETE FROM passage WHERE id = $1"
ADD = """
INSERT INTO passage (session, first, last, began, ended, messages, characters, tsv)
VALUES ($1, $2, $3, $4, $5, $6, $7, CAST(CAST($8 AS TEXT) AS tsvector))
"""
REACHED = "UPDATE indexed SET xid = CAST(CAST($1 AS TEXT) AS xid8), entry = $2"
COUNTS = """
SELECT count(*), CAST(coalesce(sum(messages), 0) AS bigint), CAST(coalesce(sum(characters), 0) AS bigint) FROM passage
"""
HOLDING = "SELECT count(*) FROM passage WHERE tsv @@ CAST(CAST($1 AS TEXT) AS tsquery)"
BEGINNING = """
SELECT lexeme FROM (SELECT tsv FROM passage JOIN session ON session.id = passage.session
WHERE tsv @@ CAST(CAST($1 AS TEXT) AS tsquery) AND home = $home LIMIT 50) AS held,
LATERAL unnest(held.tsv) WHERE starts_with(lexeme, $2) GROUP BY lexeme ORDER BY count(*) DESC, lexeme LIMIT $3
"""
OWNED = """
session.home = $home AND session.deleted IS NULL
AND ($1 = '' OR session.principal = $1) AND ($2 = '' OR session.conversation = $2) AND ({spans})
"""
FOUND = f"""
SELECT passage.session, passage.first, passage.last
FROM CAST(CAST($4 AS TEXT) AS tsquery) AS query, passage JOIN session ON session.id = passage.session
WHERE passage.tsv @@ query AND {OWNED}
ORDER BY ts_rank(passage.tsv, query, 1) DESC, passage.id DESC LIMIT $3
"""
NEWEST = f"""
SELECT passage.session, passage.first, passage.last FROM passage JOIN session ON session.id = passage.session
WHERE {OWNED} ORDER BY passage.ended DESC LIMIT $3
"""
SPAN = "passage.began < {:.3f} AND passage.ended >= {:.3f}"


class PostgresIndex:
    """Implements `Index` in the log's own database; deleted entries lose their words with their rows."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine

    async def catch_up(self) -> int:
        count = 0
        while await self._engine.read(lambda tx: tx.row(IS_BEHIND)) is not None:
            count += await self._engine.write(_advance)
        return count

    async def count(self, phrases: Sequence[Phrase]) -> Counts:
        await self.catch_up()

        async def query(tx: Transaction) -> Counts:
            passages, messages, characters = (await tx.rows(COUNTS))[0]
            holding = {phrase: (await tx.rows(HOLDING, query_of(phrase)))[0][0] for phrase in phrases}
            return Counts(passages=passages, messages=messages, characters=characters, holding=holding)

        return await self._engine.read(query)

    async def resembling(self, beginnings: Sequence[Term]) -> list[Term]:
        async def query(tx: Transaction) -> list[Term]:
            found = [await tx.rows(BEGINNING, f"'{term}':*", term, ALIKE) for term in beginnings]
            return [row[0] for rows in found for row in rows]

        return await self._engine.read(query)

    async def passages(self, wanted: SearchTerms, scope: Scope, limit: int) -> list[Extent]:
        spans = " OR ".join(SPAN.format(span.end, span.start) for span in wanted.spans) or "TRUE"
        place = (scope.principal, scope.conversation, limit)

        async def query(tx: Transaction) -> list[Row]:
            if wanted.some or wanted.every:
                return await tx.rows(FOUND.format(spans=spans), *place, _query(wanted))
            return await tx.rows(NEWEST.format(spans=spans), *place)

        rows = await self._engine.read(query)
        return [Extent(session=session, first=first, last=last) for session, first, last in rows]

    async def close(self) -> None:
        """Does nothing: it uses the engine's connections."""


async def adopt(connection: Link) -> None:
    """Restart the index where the database was restored from another server's dump."""
    if (await connection.fetch(IS_RESTORED))[0][0]:
        await connection.execute(BEGIN_ANEW)


def _query(wanted: SearchTerms) -> str:
    found = " & ".join(map(query_of, wanted.every)) if wanted.every else " | ".join(map(query_of, wanted.some))
    without = "".join(f" & !{query_of(phrase)}" for phrase in wanted.without)
    return f"({found}){without}"


async def _advance(tx: Transaction) -> int:
    await tx.row(LOCK)
    rows = await tx.rows(NEWS, BATCH)
    told = sorted((session, number, at, body) for _xid, _id, session, number, at, body in rows if body is not None)
    for session, news in groupby(told, key=lambda row: row[0]):
        if await tx.row(HOLD, session) is not None:
            await _add(tx, session, [_line(number, at, body) for _session, number, at, body in news])
    if rows:  # pragma: no branch - another process may have been faster
        await tx.run(REACHED, rows[-1][0], rows[-1][1])
    return len(rows)


async def _add(tx: Transaction, session: str, lines: list[PassageRow]) -> None:
    unfinished = await tx.row(OPEN, session)
    if unfinished is not None:
        passage, first, last = unfinished
        await tx.run(REMOVE, passage)
        lines = [_line(*row) for row in await tx.rows(AGAIN, session, first, last)] + lines
    await tx.many(ADD, [_row(passage) for passage in cut(session, lines)])


def _row(passage: Passage) -> tuple[str | int | float, ...]:
    extent = (passage.session, passage.first, passage.last, passage.began, passage.ended)
    return (*extent, passage.messages, passage.characters, vector_of(passage.terms))


def _line(number: int, at: float, body: str) -> PassageRow:
    return PassageRow(number=number, at=at, text=said(body)[1][:LONGEST_TEXT])
