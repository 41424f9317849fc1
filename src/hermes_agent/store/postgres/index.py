"""The search index on PostgreSQL: a tsvector beside each entry that has words, filled from the log in commit order."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.store.bodies import storable
from hermes_agent.store.postgres.engine import PostgresEngine
from hermes_agent.store.search import KINDS, LONGEST_TEXT, UNSPACED, Wanted, said
from hermes_agent.store.transaction import Row, Transaction

BATCH = 500
# What commits later has a higher transaction id than everything that is still under way; so nothing is skipped.
NEWS = """
SELECT CAST(entry.xid AS TEXT), entry.id, entry.kind, entry.body FROM entry, indexed
WHERE (entry.xid, entry.id) > (indexed.xid, indexed.entry) AND entry.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY entry.xid, entry.id LIMIT $1
"""
IS_BEHIND = """
SELECT 1 FROM entry, indexed WHERE (entry.xid, entry.id) > (indexed.xid, indexed.entry)
AND entry.xid < pg_snapshot_xmin(pg_current_snapshot()) LIMIT 1
"""
LOCK = "SELECT 1 FROM indexed FOR UPDATE"
# An entry that is deleted meanwhile has no words.
ADD = """
INSERT INTO words (entry, tsv) SELECT id, to_tsvector('hermes', CAST($2 AS TEXT)) FROM entry WHERE id = $1 FOR KEY SHARE
ON CONFLICT (entry) DO NOTHING
"""
REACHED = "UPDATE indexed SET xid = CAST(CAST($1 AS TEXT) AS xid8), entry = $2"
FOUND = """
SELECT entry.session, entry.number, entry.at, entry.body
FROM websearch_to_tsquery('hermes', $1) AS query, words JOIN entry ON entry.id = words.entry
JOIN session ON session.id = entry.session
WHERE words.tsv @@ query AND ($3 = '' OR session.principal = $3)
ORDER BY ts_rank(words.tsv, query) DESC, entry.id DESC LIMIT $2
"""


class PostgresIndex:
    """`Index` in the log's own database; words of deleted entries go with them."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine

    async def catch_up(self) -> int:
        count = 0
        while await self._engine.read(_is_behind):
            count += await self._engine.write(_advance)
        return count

    async def find(self, wishes: Sequence[Wanted], *, principal: str, limit: int) -> list[Row]:
        await self.catch_up()

        async def query(tx: Transaction) -> list[Row]:
            for wanted in wishes:
                if rows := await tx.rows(FOUND, _query(wanted), limit, principal):
                    return rows
            return []

        return await self._engine.read(query)

    async def close(self) -> None:
        """Nothing of its own is open."""


def lettered(text: str) -> str:
    """The text with each character of an unspaced script as a word of ASCII, which every locale takes for one."""
    return UNSPACED.sub(lambda match: f" u{ord(match[0]):x} ", text)


def _query(wanted: Wanted) -> str:
    # Every phrase is quoted, so that no word of it is an operator.
    return (" " if wanted.every else " or ").join(f'"{lettered(" ".join(phrase))}"' for phrase in wanted.phrases)


async def _is_behind(tx: Transaction) -> bool:
    return await tx.row(IS_BEHIND) is not None


async def _advance(tx: Transaction) -> int:
    await tx.row(LOCK)
    rows = await tx.rows(NEWS, BATCH)
    heard = [(number, said(body)[1]) for _xid, number, kind, body in rows if kind in KINDS]
    await tx.many(ADD, [(number, lettered(storable(text[:LONGEST_TEXT]).lower())) for number, text in heard])
    if rows:  # pragma: no branch - another process may have been faster
        await tx.run(REACHED, rows[-1][0], rows[-1][1])
    return len(rows)
