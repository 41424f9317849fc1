"""Which workers do what is due at times: those that serve everybody."""

from __future__ import annotations

from hermes_agent.store.transaction import Engine, Tables, Transaction
from hermes_agent.store.workers import Workers

SERVE = (
    "DELETE FROM chat_fact WHERE home = $home AND place = 'serving' AND name NOT IN (SELECT id FROM worker)",
    "INSERT INTO chat_fact (home, place, name, value) VALUES ($home, 'serving', $1, 'yes') ON CONFLICT DO NOTHING",
)
SERVED = "SELECT 1 FROM chat_fact WHERE home = $home AND place = 'serving' AND name IN (SELECT id FROM worker) LIMIT 1"


class Serving(Tables):
    """Facts of a home that name its serving workers; those of workers that are gone do not count."""

    def __init__(self, engine: Engine, workers: Workers) -> None:
        super().__init__(engine)
        self._workers = workers

    async def serve(self) -> None:
        """Say that this worker does what is due, as long as it is there."""

        async def change(tx: Transaction) -> None:
            await tx.run(SERVE[0])
            await tx.run(SERVE[1], self._workers.id)

        await self._engine.write(change)

    async def served(self) -> bool:
        """Whether anybody does what is due."""
        await self._workers.reap()
        return await self._engine.read(lambda tx: tx.row(SERVED)) is not None
