"""Prompt caching: frozen prefixes, which skills a prompt named and the model read, and cache breaks (requests that a
provider could not serve from its cache) with their cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Prefix
from hermes_agent.core.records import revive
from hermes_agent.core.section import Section, tools_text
from hermes_agent.core.shape import first_change, read_shape
from hermes_agent.store.transaction import Engine, Tables, Transaction, plain, written

PUT = "INSERT INTO prefix (hash, body) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING"
GET = "SELECT body FROM prefix WHERE hash = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPrefix:
    """A prompt prefix with the sections of its system text."""

    prefix: Prefix
    sections: tuple[Section, ...]


class Prefixes(Tables):
    """Content-addressed table of prompt prefixes; the first body under a hash stays."""

    async def put(self, tx: Transaction, prefix: Prefix, sections: tuple[Section, ...]) -> None:
        """Store the prefix under its hash."""
        await tx.run(PUT, prefix.hash, written(FrozenPrefix(prefix=prefix, sections=sections)))

    async def get(self, prefix_hash: str) -> FrozenPrefix | None:
        """The prefix of that hash; None where it is missing or unreadable."""
        row = await self._engine.read(lambda tx: tx.row(GET, prefix_hash), brief=True)
        if row is None:
            return None
        try:
            frozen: FrozenPrefix = revive(FrozenPrefix, plain(row[0]))
        except ValueError:
            return None
        return frozen


BEGIN = (
    "INSERT INTO episode (session, home, principal, model, at) SELECT id, home, principal, model, created FROM session "
    "WHERE id = $1 ON CONFLICT (session) DO NOTHING"
)
OFFER = "INSERT INTO exposure (session, eligible, read) VALUES ($1, $2, '[]') ON CONFLICT (session) DO NOTHING"
READ = "SELECT eligible, read FROM exposure WHERE session = $1 FOR NO KEY UPDATE"
NOTE = "UPDATE exposure SET read = $2 WHERE session = $1"


class Exposures(Tables):
    """Which skills the prompt of a session named, and which of them the model read: one row per session."""

    async def draw(self, tx: Transaction, session: str, eligible: Sequence[str]) -> None:
        """Record the skills that the prompt of a new session names, in the commit that freezes its prefix."""
        await tx.run(BEGIN, session)
        await tx.run(OFFER, session, written(sorted(eligible)))

    async def note_read(self, session: str, item: str) -> None:
        """Record that the model read a skill; counts only if its prompt named it."""

        async def change(tx: Transaction) -> None:
            row = await tx.row(READ, session)
            if row is not None and item in plain(row[0]) and item not in (read := plain(row[1])):
                await tx.run(NOTE, session, written([*read, item]))

        await self._engine.write(change, durable=False)


# Providers cache nothing shorter.
LEAST_CACHED = 1_024
# A share of the question before, less than which was found: some providers cache in steps.
FOUND = 0.5
KEPT_SECONDS = 300.0
# What goes on from the request before; the others are questions of their own each time.
CONVERSES = ("chat", "review")
ROWS = f"""
SELECT session, purpose, provider, model, credential, prefix, at, call_id, input, cached, cache_write, shape
FROM usage WHERE home = $home AND at >= $1 AND shape <> '' AND known = 1 AND outcome = 'ok' AND purpose IN {CONVERSES}
ORDER BY session, purpose, at, call_id
"""
# What in the log takes the beginning of a conversation away, between two requests.
WRITERS = {"compacted": "a compaction", "undone": "an undo"}
WROTE = f"""
SELECT kind FROM entry WHERE session = $1 AND at >= $2 AND at <= $3 AND kind IN {tuple(WRITERS)} ORDER BY number LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A cache break: `expected` tokens could have come from the provider's cache and only `cached` did. `changed`
    names the first difference from the previous request and, where the log shows it, who caused it."""

    at: float
    session: str
    purpose: str
    call_id: str
    model: str
    expected: int
    cached: int
    changed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    session: str
    purpose: str
    provider: str
    model: str
    credential: str
    prefix: str
    at: float
    call_id: str
    input: int
    cached: int
    cache_write: int
    shape: str

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"


class Breaks:
    """Finds cache breaks in the usage ledger."""

    def __init__(self, engine: Engine, prefixes: Prefixes) -> None:
        self._engine = engine
        self._prefixes = prefixes

    async def since(self, moment: float) -> list[Break]:
        """The breaks since that time, oldest first. None for a model that never cached anything."""
        names = _Call.__slots__
        calls = [
            _Call(**dict(zip(names, row, strict=True)))
            for row in await self._engine.read(lambda tx: tx.rows(ROWS, moment))
        ]
        found = [await self._break(before, after) for before, after in _broken(calls)]
        return sorted(found, key=lambda each: each.at)

    async def _break(self, before: _Call, after: _Call) -> Break:
        return Break(
            at=after.at,
            session=after.session,
            purpose=after.purpose,
            call_id=after.call_id,
            model=after.name,
            expected=min(before.input, after.input),
            cached=after.cached,
            changed=await self._changed(before, after),
        )

    async def _changed(self, before: _Call, after: _Call) -> str:
        """The first thing that changed, in the order in which a provider reads a request."""
        if before.name != after.name:
            return f"model (before: {before.name})"
        if before.credential != after.credential:
            return f"key ({before.credential} to {after.credential})"
        if before.prefix != after.prefix:
            old, new = await self._prefixes.get(before.prefix), await self._prefixes.get(after.prefix)
            return "prompt" if old is None or new is None else first_section(old, new)
        old_shape, new_shape = read_shape(before.shape), read_shape(after.shape)
        changed = first_change(old_shape, new_shape) if old_shape and new_shape else ""
        passed = after.at - before.at
        if changed:
            return changed + await self._writer(before, after)
        if passed <= KEPT_SECONDS:
            return "nothing here: the provider did not find it"
        return f"nothing here: {passed / 60:.0f} minutes had passed"

    async def _writer(self, before: _Call, after: _Call) -> str:
        row = await self._engine.read(lambda tx: tx.row(WROTE, before.session, before.at, after.at))
        return f" (by {WRITERS[row[0]]})" if row else ""


def first_section(old: FrozenPrefix, new: FrozenPrefix) -> str:
    """The first section of a prompt that differs from the previous one."""
    if tools_text(old.prefix.tools) != tools_text(new.prefix.tools):
        return "tools"
    for before, after in zip(old.sections, new.sections, strict=False):
        if (before.name, before.hash) != (after.name, after.hash):
            return after.name
    return "prompt"


def _broken(calls: list[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """Requests, each with the one of the same conversation before it, that found too little."""
    caching = {call.name for call in calls if call.cached or call.cache_write}
    for before, after in pairwise(calls):
        same = (before.session, before.purpose) == (after.session, after.purpose)
        expected = min(before.input, after.input)
        if same and after.name in caching and expected >= LEAST_CACHED and after.cached < FOUND * expected:
            yield before, after
