"""What conversations brought since they were reviewed, and how often reviews in a row kept nothing."""

from __future__ import annotations

from hermes_agent.store.transaction import Engine, Transaction

COUNT = (
    "INSERT INTO learning_count (session, iterations, turns) VALUES ($1, $2, $3) ON CONFLICT (session) DO UPDATE SET "
    "iterations = learning_count.iterations + excluded.iterations, turns = learning_count.turns + excluded.turns "
    "RETURNING iterations, turns"
)
COUNTED = "SELECT iterations, turns FROM learning_count WHERE session = $1"
RESET = {
    "skills": "UPDATE learning_count SET iterations = 0 WHERE session = $1",
    "memory": "UPDATE learning_count SET turns = 0 WHERE session = $1",
}
EMPTY = "SELECT what, empty FROM learning_pace WHERE home = $home AND principal = $1"
PACE = (
    "INSERT INTO learning_pace (home, principal, what, empty) VALUES ($home, $1, $2, $3) "
    "ON CONFLICT (home, principal, what) DO UPDATE SET empty = CASE WHEN $3 = 0 THEN 0 ELSE learning_pace.empty + 1 END"
)


class Pace:
    """Counts by session, and empty reviews by person."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def count(self, tx: Transaction, session: str, iterations: int, turns: int) -> tuple[int, int]:
        """Add to the counts of a session; what they are now."""
        row = await tx.row(COUNT, session, iterations, turns)
        assert row is not None
        return int(row[0]), int(row[1])

    async def counted(self, session: str) -> tuple[int, int]:
        """Rounds of tools and messages since the last reviews."""
        row = await self._engine.read(lambda tx: tx.row(COUNTED, session), brief=True)
        return (int(row[0]), int(row[1])) if row else (0, 0)

    async def reset(self, tx: Transaction, session: str, what: str) -> None:
        """Count anew what a review of `skills`, or of `memory`, is due by."""
        await tx.run(RESET[what], session)

    async def empty(self, tx: Transaction, principal: str) -> dict[str, int]:
        """How many reviews in a row kept nothing of this person's, by what was reviewed."""
        return {row[0]: int(row[1]) for row in await tx.rows(EMPTY, principal)}

    async def note(self, tx: Transaction, principal: str, what: str, *, empty: bool) -> None:
        """A review of this ended: one more that kept nothing, or the row of those is over."""
        await tx.run(PACE, principal, what, int(empty))
