"""Table of known facts with a ledger: each change is a ledger row, written in the same transaction."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.store.finding.terms import terms
from hermes_agent.store.postgres.driver import vector_of
from hermes_agent.store.transaction import Dialect, Row, Tables, Transaction, Value, storable
from hermes_agent.store.versions import Author

MOST_TERMS = 4_000
COLUMNS = (
    "home, space, hash, text, names, terms, vector, trust, author, principal, session, first, last, added, checked"
)
ONCE = "ON CONFLICT (home, space, hash) WHERE retracted IS NULL DO NOTHING RETURNING id"
ADD = {
    Dialect.SQLITE: f"INSERT INTO known_fact ({COLUMNS}) "
    f"VALUES ($home, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13) {ONCE}",
    Dialect.POSTGRES: f"INSERT INTO known_fact ({COLUMNS}, tsv) "
    "VALUES ($home, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, "
    f"CAST(CAST($14 AS TEXT) AS tsvector)) {ONCE}",
}
KNOWN = "SELECT id, retracted FROM known_fact WHERE home = $home AND space = $1 AND hash = $2 ORDER BY id DESC LIMIT 1"
FIELDS = "id, space, text, names, trust, author, principal, session, first, last, added, checked, retracted"
# An update first, so that on a server nobody else changes the row between looking at it and writing it.
HOLD = (
    "UPDATE known_fact SET space = space WHERE home = $home AND id = $1 AND (CAST($2 AS TEXT) = '' OR space = $2) "
    f"RETURNING {FIELDS}"
)
SET = "UPDATE known_fact SET trust = $2, checked = $3, retracted = $4 WHERE id = $1"
LIST = (
    f"SELECT {FIELDS} FROM known_fact WHERE home = $home AND (CAST($1 AS TEXT) = '' OR space = $1) AND retracted IS "
    "NULL "
    "ORDER BY id DESC LIMIT $2"
)
COUNT = "SELECT count(*) FROM known_fact WHERE home = $home AND space = $1 AND retracted IS NULL"
CHANGE_FIELDS = "fact, at, action, before, after, author, principal, session, first, last, key, undoes"
KEEP = (
    f"INSERT INTO known_fact_change (home, {CHANGE_FIELDS}) "
    "VALUES ($home, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id"
)
CHANGES = (
    "SELECT known_fact_change.id, fact, at, action, before, after, known_fact_change.author, "
    "known_fact_change.principal, known_fact_change.session, known_fact_change.first, known_fact_change.last, key, "
    "undoes, space, text FROM known_fact_change JOIN known_fact ON known_fact.id = fact "
)
LOG = (
    f"{CHANGES} WHERE known_fact.home = $home AND (CAST($1 AS TEXT) = '' OR space = $1) ORDER BY known_fact_change.id "
    "DESC LIMIT $2"
)
ONE_CHANGE = (
    f"{CHANGES} WHERE known_fact_change.id = $1 AND known_fact.home = $home AND (CAST($2 AS TEXT) = '' OR space = $2)"
)
BY_KEY = "SELECT fact FROM known_fact_change WHERE home = $home AND key = $1"
UNDONE = "SELECT 1 FROM known_fact_change WHERE undoes = $1"
LAST_ID = 2**62


class Action(StrEnum):
    """Kind of change to a fact; `taken over` is one imported from a file."""

    ADDED = "added"
    TAKEN_OVER = "taken over"
    RIGHT = "right"
    WRONG = "wrong"
    RETRACTED = "retracted"
    UNDO = "undo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Author and cause of a change: the events `first` to `last` of a session, and the key of the call (empty:
    none), which makes it idempotent."""

    author: Author
    principal: str = ""
    session: str = ""
    first: int = 0
    last: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A fact to add. `vector` is for similarity search; trust is 0 to 1."""

    text: str
    names: tuple[str, ...]
    vector: bytes
    trust: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A stored fact; `retracted` is since when it is no longer in force."""

    id: int
    space: str
    text: str
    names: tuple[str, ...]
    trust: float
    source: Source
    added: float
    checked: float
    retracted: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """A ledger row: the trust before and after, None where the fact was not in force."""

    id: int
    fact: int
    space: str
    text: str
    at: float
    action: Action
    before: float | None
    after: float | None
    source: Source
    undoes: int | None


class KnownFacts(Tables):
    """Table of the facts of the local fact memory. Facts are not deleted: what is retracted is kept and can be put
    back.

    Methods that take a number raise `HermesError` where the space (empty: any) has no such fact.
    """

    async def add(self, space: str, new: NewFact, source: Source, at: float) -> int | None:
        """Add a fact; its number, None where the space already has it."""

        async def change(tx: Transaction) -> int | None:
            if done := await _done(tx, source):
                return done
            return await _added(tx, space, new, source, at, Action.ADDED)

        return await self._engine.write(change)

    async def judge(self, space: str, number: int, by: float, source: Source, at: float) -> float:
        """Raise or lower the trust in a fact, between 0 and 1; the new trust."""

        async def change(tx: Transaction) -> float:
            fact = await _held(tx, space, number)
            if await _done(tx, source):
                return fact.trust
            after = _bounded(fact.trust + by)
            action = Action.RIGHT if by > 0 else Action.WRONG
            await _set(tx, fact, after, _Act(action=action, at=at, source=source))
            return after

        return await self._engine.write(change)

    async def retract(self, space: str, number: int, source: Source, at: float) -> Fact:
        """Retract a fact; its last state."""

        async def change(tx: Transaction) -> Fact:
            fact = await _held(tx, space, number, any_state=bool(source.key))
            if not await _done(tx, source):
                _check_in_force(fact)
                await _set(tx, fact, None, _Act(action=Action.RETRACTED, at=at, source=source))
            return fact

        return await self._engine.write(change)

    async def undo(self, space: str, number: int, source: Source, at: float) -> FactChange:
        """Undo the change of that number; the change. Raises `HermesError` where that is not possible."""

        async def change(tx: Transaction) -> FactChange:
            row = await tx.row(ONE_CHANGE, number, space) if 0 < number < LAST_ID else None
            if row is None:
                raise HermesError(f"There is no change {number} of facts.")
            made = _change(row)
            fact = await _held(tx, made.space, made.fact, any_state=True)
            if await tx.row(UNDONE, number) is not None:
                raise HermesError(f"Change {number} was undone already.")
            after = await _before(tx, made, fact)
            await _set(tx, fact, after, _Act(action=Action.UNDO, at=at, source=source, undoes=number))
            return made

        return await self._engine.write(change)

    async def count(self, space: str) -> int:
        """The number of facts in force."""
        row = await self._engine.read(lambda tx: tx.row(COUNT, space))
        assert row is not None
        return int(row[0])

    async def in_force(self, space: str = "", *, limit: int = 100) -> list[Fact]:
        """The facts in force, the newest first; of all spaces where none is given."""
        return [_fact(row) for row in await self._engine.read(lambda tx: tx.rows(LIST, space, limit))]

    async def log(self, space: str = "", *, limit: int = 100) -> list[FactChange]:
        """The changes, the newest first."""
        return [_change(row) for row in await self._engine.read(lambda tx: tx.rows(LOG, space, limit))]


async def _added(tx: Transaction, space: str, new: NewFact, source: Source, at: float, action: Action) -> int | None:
    text = storable(new.text)
    said = terms(text)[:MOST_TERMS]
    names = msgspec.json.encode([storable(name) for name in new.names]).decode()
    what = (space, _hash(new.text), text, names, " ".join(said), new.vector, _bounded(new.trust))
    more: tuple[Value, ...] = (vector_of(said),) if tx.dialect is Dialect.POSTGRES else ()
    row = await tx.row(ADD[tx.dialect], *what, *_whose(source), at, *more)
    if row is None:
        return None
    change = (int(row[0]), at, action.value, None, _bounded(new.trust))
    await tx.row(KEEP, *change, *_whose(source), storable(source.key), None)
    return int(row[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Act:
    action: Action
    at: float
    source: Source
    undoes: int | None = None


async def _set(tx: Transaction, fact: Fact, trust: float | None, act: _Act) -> None:
    """Give a fact another trust, None to take it out of force."""
    before = None if fact.retracted is not None else fact.trust
    await tx.run(SET, fact.id, fact.trust if trust is None else trust, act.at, act.at if trust is None else None)
    change = (fact.id, act.at, act.action.value, before, trust)
    await tx.row(KEEP, *change, *_whose(act.source), storable(act.source.key), act.undoes)


async def _before(tx: Transaction, made: FactChange, fact: Fact) -> float | None:
    """The trust that the fact has when this change is taken back; None: it is out of force."""
    if made.after is None:
        known = await tx.row(KNOWN, fact.space, _hash(fact.text))
        if fact.retracted is None or (known is not None and known[1] is None):
            raise HermesError(f"The same is in force already: {fact.text[:80]}")
        return made.before
    _check_in_force(fact)
    return None if made.before is None else _bounded(fact.trust + made.before - made.after)


async def _held(tx: Transaction, space: str, number: int, *, any_state: bool = False) -> Fact:
    row = await tx.row(HOLD, number, space) if 0 < number < LAST_ID else None
    if row is None:
        raise HermesError(f"There is no fact {number}.")
    fact = _fact(row)
    if not any_state:
        _check_in_force(fact)
    return fact


def _check_in_force(fact: Fact) -> None:
    if fact.retracted is not None:
        raise HermesError(f"Fact {fact.id} is retracted.")


async def _done(tx: Transaction, source: Source) -> int | None:
    """The fact that the call of this key changed already."""
    row = await tx.row(BY_KEY, storable(source.key)) if source.key else None
    return None if row is None else int(row[0])


def _whose(source: Source) -> tuple[Value, ...]:
    return source.author.value, storable(source.principal), source.session, source.first, source.last


def _hash(text: str) -> str:
    return hashlib.sha256(storable(text).encode()).hexdigest()


def _bounded(trust: float) -> float:
    return round(min(1.0, max(0.0, trust)), 2)


def _names(text: str) -> tuple[str, ...]:
    try:
        return tuple(msgspec.json.decode(text, type=list[str]))
    except msgspec.DecodeError:  # Somebody else wrote it; the fact itself can be read.
        return ()


def _fact(row: Row) -> Fact:
    number, space, text, names, trust, author, principal, session, first, last, added, checked, retracted = row
    return Fact(
        id=number,
        space=space,
        text=text,
        names=_names(names),
        trust=trust,
        source=Source(author=Author(author), principal=principal, session=session, first=first, last=last),
        added=added,
        checked=checked,
        retracted=retracted,
    )


def _change(row: Row) -> FactChange:
    number, fact, at, action, before, after, author, principal, session, first, last, key, undoes, space, text = row
    return FactChange(
        id=number,
        fact=fact,
        space=space,
        text=text,
        at=at,
        action=Action(action),
        before=before,
        after=after,
        source=Source(author=Author(author), principal=principal, session=session, first=first, last=last, key=key),
        undoes=undoes,
    )
