"""Full-text search over all logs: finds sessions and messages by their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Protocol

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Role
from hermes_agent.store.finding.question import Question, Span, understood
from hermes_agent.store.finding.ranking import SOON, Counts, Ranked, Ranking, Run, Spoken, Spot, marked, snippet
from hermes_agent.store.finding.terms import Phrase, Term
from hermes_agent.store.transaction import Engine, Row, Transaction, plain

# The events whose words a person would look for.
KINDS = ("message_taken", "replied")
# How many passages are read from the log and weighed message by message: the index has put them in order already.
READ = 12
# Phrases that the index looks for: the rarest ones.
MOST_PHRASES = 16
MOST_HELD = 3000  # Passages that hold any of them, about.
MOST_WEIGHED = 48
FEW_PASSAGES = 1000  # Of so few, also those are weighed that hold common words alone.
SHORTEST_BEGINNING = 3
MESSAGES = f"""
WITH wanted (session, first, last) AS (VALUES {{values}})
SELECT entry.session, entry.number, entry.at, entry.body
FROM wanted CROSS JOIN entry JOIN session ON session.id = entry.session
WHERE entry.session = wanted.session AND entry.number BETWEEN wanted.first AND wanted.last
AND entry.kind IN {KINDS} AND session.home = $home AND session.deleted IS NULL
ORDER BY entry.session, entry.number
"""
SAID = f"SELECT session, number, at, body FROM entry WHERE session = $1 AND kind IN {KINDS} AND number"
EARLIER = f"{SAID} < $2 ORDER BY number DESC LIMIT $3"
LATER = f"{SAID} >= $2 ORDER BY number LIMIT $3"
RECENT = """
SELECT id FROM session WHERE home = $home AND deleted IS NULL
AND (CAST($1 AS TEXT) = '' OR principal = $1) AND (CAST($2 AS TEXT) = '' OR conversation = $2)
ORDER BY updated DESC, id DESC LIMIT $3
"""
EXTENT = "(CAST(${} AS TEXT), CAST(${} AS bigint), CAST(${} AS bigint))"


class _Part(msgspec.Struct):
    kind: str = ""
    text: str = ""


class _Message(msgspec.Struct):
    role: str
    parts: list[_Part]


class _Told(msgspec.Struct):
    message: _Message


_decoder = msgspec.json.Decoder(_Told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Filter of a search: sessions of one principal, of one conversation; of everybody where both are empty."""

    principal: str = ""
    conversation: str = ""


EVERYBODY = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message found: its place, time, role, and a snippet; `marks` are the ranges of the found words in it."""

    session: str
    number: int
    at: float
    role: Role
    snippet: str
    marks: tuple[Spot, ...] = ()

    @property
    def marked(self) -> str:
        """The snippet with found words in Markdown bold."""
        return marked(self.snippet, self.marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A session found, with its best messages."""

    session: str
    score: float
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTerms:
    """Condition on a passage: it contains every phrase of `every`, or else one of `some`; none of `without`; and
    lies in one of the `spans`, where given."""

    some: tuple[Phrase, ...] = ()
    every: tuple[Phrase, ...] = ()
    without: tuple[Phrase, ...] = ()
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A passage found: a range of message numbers of one session, its length in characters, and which of its
    messages match (None: the index cannot tell)."""

    session: str
    first: int
    last: int
    characters: int = 0
    holding: tuple[int, ...] | None = None


class Index(Protocol):
    """Full-text index of the passages of all logs, in one dialect.

    - `catch_up` indexes what the logs gained and lost since the last time; returns the number of entries read;
    - `count` catches up, then returns the statistics for these phrases;
    - `resembling` returns a few terms with each of these beginnings;
    - `passages` returns the best matches (the newest, for spans alone) within the scope.
    """

    async def catch_up(self) -> int: ...

    async def count(self, phrases: Sequence[Phrase]) -> Counts: ...

    async def resembling(self, beginnings: Sequence[Term]) -> list[Term]: ...

    async def passages(self, wanted: SearchTerms, scope: Scope, limit: int) -> list[Extent]: ...

    async def close(self) -> None: ...


class Search:
    """Searches sessions and messages with any punctuation in the query: English words by stems, other scripts by
    pairs of characters."""

    def __init__(self, index: Index, engine: Engine, clock: Clock) -> None:
        self._index = index
        self._engine = engine
        self._clock = clock

    async def catch_up(self) -> int:
        """Update the index, so that the next search need not; the number of entries read."""
        return await self._index.catch_up()

    async def discover(self, query: str, scope: Scope = EVERYBODY, limit: int = 5, each: int = 3) -> list[Found]:
        """The best sessions, each with its best messages (`each`)."""
        wanted, ranked = await self._ranked(query, scope, limit)
        return [
            Found(
                session=one.session,
                score=one.score,
                hits=tuple(_hit(scored.message, wanted) for scored in one.messages[:each]),
            )
            for one in ranked[:limit]
        ]

    async def search(self, query: str, scope: Scope = EVERYBODY, limit: int = 20) -> list[Hit]:
        """The best messages; for equal scores those of better sessions first."""
        wanted, ranked = await self._ranked(query, scope, limit)
        weighed = [(one.score + scored.score, scored.message) for one in ranked for scored in one.messages]
        weighed.sort(key=lambda each: -each[0])
        return [_hit(message, wanted) for _score, message in weighed[:limit]]

    async def read(self, session: str, around: int, before: int, after: int) -> list[Spoken]:
        """Messages of one session in order: `before` of them ahead of number `around`, and `after` from it on."""

        async def query(tx: Transaction) -> list[Row]:
            earlier = await tx.rows(EARLIER, session, around, before)
            return [*reversed(earlier), *await tx.rows(LATER, session, around, after)]

        return [_spoken(row) for row in await self._engine.read(query)]

    async def recent(self, scope: Scope = EVERYBODY, limit: int = 10) -> list[str]:
        """Ids of the most recently used sessions, the latest first."""
        return [
            row[0]
            for row in await self._engine.read(lambda tx: tx.rows(RECENT, scope.principal, scope.conversation, limit))
        ]

    async def close(self) -> None:
        """Close the index."""
        await self._index.close()

    async def _ranked(self, query: str, scope: Scope, limit: int) -> tuple[tuple[Phrase, ...], list[Ranked]]:
        question = understood(query, self._clock.now())
        if question.is_empty:
            return (), []
        counts = await self._index.count(tuple(dict.fromkeys((*question.words, *question.required, *question.apart))))
        for wanted in _wishes(question, counts):
            if ranked := await self._weighed(question, wanted, counts, scope, max(READ, limit)):
                return (*wanted.every, *wanted.some), ranked
        return await self._alike(question, scope, max(READ, limit))

    async def _alike(self, question: Question, scope: Scope, limit: int) -> tuple[tuple[Phrase, ...], list[Ranked]]:
        """Nothing holds what was asked for: what holds words that begin so."""
        single = {term for phrase in (*question.words, *question.required) for term in phrase}
        beginnings = sorted(term for term in single if len(term) >= SHORTEST_BEGINNING or not term.isascii())
        alike = tuple((term,) for term in await self._index.resembling(beginnings[:MOST_PHRASES])) if beginnings else ()
        if not alike:
            return (), []
        counts = await self._index.count(alike)
        loose = replace(question, words=alike, required=())
        wanted = SearchTerms(some=_rarest(alike, counts))
        return wanted.some, await self._weighed(loose, wanted, counts, scope, limit)

    async def _weighed(
        self, question: Question, wanted: SearchTerms, counts: Counts, scope: Scope, limit: int
    ) -> list[Ranked]:
        extents = await self._index.passages(wanted, scope, limit)
        if question.spans and not wanted.spans:
            spans = tuple(Span(start=span.start, end=span.end + SOON) for span in question.spans)
            extents += await self._index.passages(replace(wanted, spans=spans), scope, limit)
            extents += await self._index.passages(SearchTerms(spans=question.spans), scope, limit)
        if not extents:
            return []
        rule = replace(question, required=wanted.every)
        weighed = (
            _telling((*wanted.some, *question.words), counts)[:MOST_WEIGHED] if wanted.some or wanted.every else []
        )
        # What holds nothing that is weighed has no part in the order but by its length.
        sparing = not question.spans and {*wanted.some, *wanted.every}.issuperset(weighed)
        passages = await self._read(list(dict.fromkeys(extents)), sparing=sparing)
        return Ranking(rule, weighed, counts).ranked(passages)

    async def _read(self, extents: list[Extent], *, sparing: bool) -> list[Run]:
        """The messages of these passages; with `sparing` only those of which the index says that they hold anything."""
        wanted = [
            (each.session, first, last)
            for each in extents
            for first, last in (
                [(each.first, each.last)]
                if each.holding is None or not sparing
                else [(number, number) for number in each.holding]
            )
        ]
        values = ", ".join(EXTENT.format(n, n + 1, n + 2) for n in range(1, 3 * len(wanted), 3))
        places = [value for each in wanted for value in each]

        messages = {
            (row[0], row[1]): _spoken(row)
            for row in await self._engine.read(lambda tx: tx.rows(MESSAGES.format(values=values), *places))
        }
        in_order = {key: list(rows) for key, rows in groupby(messages.values(), key=lambda each: each.session)}
        runs = (
            Run(
                messages=[e for e in in_order.get(extent.session, ()) if extent.first <= e.number <= extent.last],
                characters=extent.characters if sparing and extent.holding is not None else None,
            )
            for extent in extents
        )
        return [run for run in runs if run.messages]


def said(body: str) -> tuple[Role, str]:
    """Role and text of a log entry of one of `KINDS`; empty for a damaged one."""
    try:
        message = tool_text(body).message
        return Role(message.role), "".join(part.text for part in message.parts if part.kind == "text")
    except (ValueError, msgspec.MsgspecError):
        return Role.USER, ""


def tool_text(body: str) -> _Told:
    """Decodes only the text of an entry, because thousands are read at once."""
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError:
        return msgspec.convert(plain(body), _Told)


def _wishes(question: Question, counts: Counts) -> list[SearchTerms]:
    """What to look for until something is found: quoted phrases as they stand, then any of all words; what is left out
    is left out of the messages, and, should that leave nothing, of the passages."""
    words = _rarest(question.words, counts)
    loose = _rarest((*question.words, *question.required, *question.apart), counts)
    wishes = []
    if question.required and all(counts.holding[phrase] for phrase in question.required):
        wishes.append(SearchTerms(some=words, every=question.required[:MOST_PHRASES]))
    if loose:
        wishes.append(SearchTerms(some=loose))
        if question.excluded:
            wishes.append(SearchTerms(some=loose, without=question.excluded[:MOST_PHRASES]))
    if question.spans:
        wishes.append(SearchTerms(spans=question.spans))
    return wishes


def _rarest(phrases: tuple[Phrase, ...], counts: Counts) -> tuple[Phrase, ...]:
    """The rarest of those that tell passages apart, as many as the index can look through in a moment."""
    chosen: list[Phrase] = []
    room = MOST_HELD
    for phrase in _telling(phrases, counts)[:MOST_PHRASES]:
        room -= counts.holding[phrase]
        if chosen and room < 0:
            break
        chosen.append(phrase)
    return tuple(chosen)


def _telling(phrases: tuple[Phrase, ...], counts: Counts) -> list[Phrase]:
    """Those that exist, the rarest first; without those that most passages have, where there are many passages."""
    held = [phrase for phrase in dict.fromkeys(phrases) if counts.holding[phrase]]
    held.sort(key=lambda phrase: counts.holding[phrase])
    if counts.passages <= FEW_PASSAGES:
        return held
    return [phrase for phrase in held if 2 * counts.holding[phrase] <= counts.passages] or held


def _spoken(row: Row) -> Spoken:
    session, number, at, body = row
    role, text = said(body)
    return Spoken(session=session, number=number, at=at, role=role, text=text)


def _hit(message: Spoken, wanted: tuple[Phrase, ...]) -> Hit:
    line, marks = snippet(message.text, wanted)
    return Hit(
        session=message.session, number=message.number, at=message.at, role=message.role, snippet=line, marks=marks
    )
