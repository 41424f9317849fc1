"""Frozen prefixes by their hash: what every request of a session begins with, byte for byte."""

from __future__ import annotations

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
