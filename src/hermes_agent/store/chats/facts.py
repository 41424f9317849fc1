"""Facts of chats: what people set there, by the key of the place and a name."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_agent.store.bodies import storable
from hermes_agent.store.transaction import Engine, Transaction

GET = "SELECT name, value FROM chat_fact WHERE home = $home AND place = $1 ORDER BY name"
ADD = "INSERT INTO chat_fact (home, place, name, value) VALUES ($home, $1, $2, $3) ON CONFLICT (home, place, name) DO "
SET, SET_FIRST = f"{ADD}UPDATE SET value = excluded.value", f"{ADD}NOTHING"
UNSET = "DELETE FROM chat_fact WHERE home = $home AND place = $1 AND name = $2"


class Facts:
    """A few short texts per chat."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def of(self, place: str) -> Mapping[str, str]:
        """What is set there, by name."""
        return {row[0]: row[1] for row in await self._engine.read(lambda tx: tx.rows(GET, place), brief=True)}

    async def set(self, place: str, name: str, value: str, *, first: bool = False) -> None:
        """Set one, where `first` only if nothing is set there; an empty value takes it away."""

        async def change(tx: Transaction) -> None:
            if value:
                await tx.run(SET_FIRST if first else SET, place, name, storable(value))
            else:
                await tx.run(UNSET, place, name)

        await self._engine.write(change)
