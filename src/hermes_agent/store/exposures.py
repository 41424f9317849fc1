"""What each session began with, and which skills it was offered and read: recorded now, judged later."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.store.bodies import plain, written
from hermes_agent.store.transaction import Engine, Transaction

BEGIN = (
    "INSERT INTO episode (session, home, principal, model, at) SELECT id, home, principal, model, updated FROM session "
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
