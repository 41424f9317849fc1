"""The checks of goals as claimed rows: one follows each end of a run that pursues a goal."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.claims import FREE, Claims, Lease
from hermes_agent.store.transaction import Engine, TimedTables, Transaction, storable
from hermes_agent.store.work.goals import Goal
from hermes_agent.store.workers import Workers

BEGIN = (
    "INSERT INTO goal_round (id, home, goal, revision, round, session, run, after, queue, state, epoch, attempts, "
    "created, note) VALUES ($1, $home, $2, $3, $4, $5, $6, $7, $8, 'queued', 0, 0, $9, '') ON CONFLICT DO NOTHING"
)
ROUND = "goal, revision, round, session, run, after, attempts"
READY = f"SELECT 1 FROM goal_round WHERE {FREE}"
PEERS = "SELECT 1 FROM goal_round WHERE home = $home AND ended IS NULL AND queue = $1 AND owner <> $2 LIMIT 1"
LANE = "SELECT pending, queue FROM lane WHERE id = $1 AND home = $home"
END = "state = 'done', ended = $4, note = $5"
MOST_ATTEMPTS = 3
"""How often the program may die in one check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A claimed check: of which revision and run's end, and the log's last event before that run."""

    lease: Lease
    goal: str
    revision: int
    round: int
    session: str
    run: str
    after: int
    attempts: int


class GoalRounds(TimedTables):
    """The queue of checks. Whoever claims one commits its outcome under its lease, or nothing."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers) -> None:
        super().__init__(engine, clock)
        self._workers = workers
        self._claims = Claims(engine, workers, "goal_round", ROUND)

    async def queue(self, tx: Transaction, goal: Goal, queue: str, run: str, after: int) -> None:
        """Add the check of a goal's round; one that is there stays."""
        key = f"{goal.id}:{goal.revision}:{goal.round}"
        row = (goal.id, goal.revision, goal.round, goal.session, run, after, queue, self._clock.now())
        if await tx.run(BEGIN, key, *row):
            tx.rings.add("")

    async def ready(self, queue: str, sessions: Sequence[str] | None) -> bool:
        """Whether a check of this queue (of these sessions; None: all) can be claimed."""

        async def query(tx: Transaction) -> bool:
            found = [await tx.row(f"{READY} AND {which} LIMIT 1", key) for which, key in _which(queue, sessions, 1)]
            return any(found)

        return await self._engine.read(query, brief=True)

    async def peers_check(self, queue: str) -> bool:
        """Whether another process checks goals of this queue: what it holds is free when it dies."""
        return await self._engine.read(lambda tx: tx.row(PEERS, queue, self._workers.id), brief=True) is not None

    async def claim(self, queue: str, sessions: Sequence[str] | None) -> Round | None:
        """Claim a check of this queue, or of these sessions alone."""
        for which, key in _which(queue, sessions, 2):
            found = await self._claims.claim(f"AND {which}", key)
            if found is not None:
                lease, (goal, revision, number, session, run, after, attempts) = found
                return Round(
                    lease=lease,
                    goal=goal,
                    revision=revision,
                    round=number,
                    session=session,
                    run=run,
                    after=after,
                    attempts=attempts,
                )
        return None

    async def release(self, claimed: Round, note: str = "", *, counts: bool = False) -> None:
        """Put a check back. With `counts` that is a failed attempt."""
        await self._claims.release(claimed.lease, note, counts=counts)

    async def end(self, tx: Transaction, claimed: Round, note: str) -> bool:
        """End a check; False where the lease is lost, then nothing else of the change may happen."""
        return await self._claims.end(tx, claimed.lease, END, self._clock.now(), storable(note))

    async def check(self, claimed: Round) -> None:
        """Send a heartbeat; raises `LostLease` where another worker has it."""
        await self._claims.check(claimed.lease)

    async def lane(self, tx: Transaction, session: str, *, hold: bool = True) -> tuple[int, str]:
        """How much mail a session has that is not answered, and the queue of its lane (empty: it had none). With `hold`
        no other mail comes before the end of the change; then it is asked before the goal, as at a run's end."""
        row = await tx.row(f"{LANE} FOR NO KEY UPDATE" if hold else LANE, session)
        return (0, "") if row is None else (int(row[0]), str(row[1]))


def _which(queue: str, sessions: Sequence[str] | None, number: int) -> list[tuple[str, str]]:
    """Conditions that select the rounds of a queue or of sessions, each with its parameter."""
    if sessions is None:
        return [(f"queue = ${number}", queue)]
    return [(f"session = ${number}", session) for session in sessions]
