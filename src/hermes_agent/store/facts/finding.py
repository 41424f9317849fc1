"""Full-text search of facts: the facts in force, and those that contain words of a question."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseDamaged
from hermes_agent.store.finding.question import STOP, phrases
from hermes_agent.store.finding.terms import Phrase, surface
from hermes_agent.store.postgres.driver import query_of
from hermes_agent.store.transaction import Dialect, Row, Tables, Transaction, marks

log = logging.getLogger(__name__)

MOST_PHRASES = 32
AT_ONCE = 500
"""Parameters of one statement."""

IN_FORCE = "SELECT id, trust, checked FROM known_fact WHERE home = $home AND space = $1 AND retracted IS NULL"
HOLDING = {
    Dialect.SQLITE: "SELECT known_fact.id FROM known_fact_words JOIN known_fact "
    "ON known_fact.id = known_fact_words.rowid "
    "WHERE known_fact_words MATCH $2 AND home = $home AND space = $1 AND retracted IS NULL",
    Dialect.POSTGRES: "SELECT id FROM known_fact "
    "WHERE tsv @@ CAST(CAST($2 AS TEXT) AS tsquery) AND home = $home AND space = $1 AND retracted IS NULL",
}
KEPT = "SELECT id, text, vector FROM known_fact WHERE home = $home AND space = $1 AND id IN ({ids})"
REMAKE = "INSERT INTO known_fact_words (known_fact_words) VALUES ('rebuild')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A fact in force: its trust, and when it was last confirmed or doubted."""

    id: int
    trust: float
    checked: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Result of a search in one space: all facts in force, and for each phrase the numbers of the facts that contain
    it."""

    standing: tuple[Standing, ...]
    holding: Mapping[Phrase, frozenset[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Text and stored vector of a fact."""

    id: int
    text: str
    vector: bytes


class FactFinding(Tables):
    """Full-text search of the facts in one space; rebuilds a damaged index and logs that."""

    async def ask(self, space: str, search_words: Sequence[Phrase]) -> Asked:
        """Search a space for these phrases."""

        async def query(tx: Transaction) -> Asked:
            standing = [Standing(id=row[0], trust=row[1], checked=row[2]) for row in await tx.rows(IN_FORCE, space)]
            text = _quoted if tx.dialect is Dialect.SQLITE else query_of
            sql = HOLDING[tx.dialect]
            known = {each.id for each in standing}  # A fact that came since then is none of them.
            holding = {
                each: frozenset(row[0] for row in await tx.rows(sql, space, text(each))) & known
                for each in search_words
            }
            return Asked(standing=tuple(standing), holding=holding)

        try:
            return await self._engine.read(query)
        except DatabaseDamaged:
            if self._engine.dialect is not Dialect.SQLITE:
                raise
            await self._engine.write(lambda tx: tx.run(REMAKE))
            log.warning("The index of the words of facts was damaged and is made again.")
            return await self._engine.read(query)

    async def kept(self, space: str, numbers: Sequence[int]) -> list[Kept]:
        """Texts and vectors of these facts; those of another space are left out."""

        async def query(tx: Transaction) -> list[Row]:
            found: list[Row] = []
            for start in range(0, len(numbers), AT_ONCE):
                some = numbers[start : start + AT_ONCE]
                found += await tx.rows(KEPT.format(ids=marks(len(some), 2)), space, *some)
            return found

        return [Kept(id=row[0], text=row[1], vector=bytes(row[2])) for row in await self._engine.read(query)]


def search_words(question: str) -> tuple[Phrase, ...]:
    """The search terms of a question, without stop words; in scripts without spaces any two characters."""
    found = [word for word in surface(question) if word not in STOP]
    return tuple(dict.fromkeys(phrases(found)))[:MOST_PHRASES]


def _quoted(phrase: Phrase) -> str:
    # Quoted, so that no word of it is an operator.
    return f'"{" ".join(phrase)}"'
