"""What a session begins with: its frozen prefix by its hash, and the skills that this offers."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.model import Prefix
from hermes_agent.core.records import revive
from hermes_agent.core.section import Section
from hermes_agent.store.bodies import plain, written
from hermes_agent.store.transaction import Engine, Transaction

PUT = "INSERT INTO prefix (hash, body) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING"
GET = "SELECT body FROM prefix WHERE hash = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPrefix:
    """A prefix and the sections that its system text was joined from."""

    prefix: Prefix
    sections: tuple[Section, ...]


class Prefixes:
    """Content-addressed: the first body under a hash stays."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def put(self, tx: Transaction, prefix: Prefix, sections: tuple[Section, ...]) -> None:
        """Keep the prefix under its hash."""
        await tx.run(PUT, prefix.hash, written(FrozenPrefix(prefix=prefix, sections=sections)))

    async def get(self, prefix_hash: str) -> FrozenPrefix | None:
        """The prefix of that hash; None where there is none that can be read."""
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


class Exposures:
    """One row a session; nothing is withheld from any."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def draw(self, tx: Transaction, session: str, eligible: Sequence[str]) -> None:
        """A session begins, whose prompt names these; in the commit that freezes its prefix."""
        await tx.run(BEGIN, session)
        await tx.run(OFFER, session, written(sorted(eligible)))

    async def note_read(self, session: str, item: str) -> None:
        """The model has read an item; that counts where its prompt named it."""

        async def change(tx: Transaction) -> None:
            row = await tx.row(READ, session)
            if row is not None and item in plain(row[0]) and item not in (read := plain(row[1])):
                await tx.run(NOTE, session, written([*read, item]))

        await self._engine.write(change, durable=False)
