"""The checks of goals as claimed rows: one follows each end of a run that pursues a goal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.claims import FREE, Claims, Lease
from hermes_agent.store.transaction import Engine, TimedTables, Transaction, marks, storable
from hermes_agent.store.work.goals import Goal
from hermes_agent.store.workers import Workers

BEGIN = (
    "INSERT INTO goal_round (id, home, goal, revision, round, session, run, after, queue, state, epoch, attempts, "
    "created, note) VALUES ($1, $home, $2, $3, $4, $5, $6, $7, $8, 'queued', 0, 0, $9, '') ON CONFLICT DO NOTHING"
)
ROUND = "goal, revision, round, session, run, after, attempts"
READY = f"SELECT 1 FROM goal_round WHERE {FREE}"
PEERS = "SELECT 1 FROM goal_round WHERE home = $home AND ended IS NULL AND queue = $1 AND owner <> $2 LIMIT 1"
LANE = "SELECT queue FROM lane WHERE id = $1 AND home = $home"
# Reports of agents bring the goal on, and are no reason to let it wait.
PENDING = "SELECT count(*) FROM inbox WHERE lane = $1 AND ended IS NULL AND source <> 'child'"
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
    """The queue of checks. Whoever claims one of its `claims` commits the outcome under its lease, or nothing."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers) -> None:
        super().__init__(engine, clock)
        self._workers = workers
        self.claims = Claims(engine, workers, "goal_round", ROUND)

    async def queue(self, tx: Transaction, goal: Goal, queue: str, run: str, after: int) -> None:
        """Add the check of a goal's round; one that is there stays."""
        key = f"{goal.id}:{goal.revision}:{goal.round}"
        row = (goal.id, goal.revision, goal.round, goal.session, run, after, queue, self._clock.now())
        if await tx.run(BEGIN, key, *row):
            tx.rings.add("")

    async def ready(self, queue: str, sessions: Collection[str] | None) -> bool:
        """Whether a check of this queue (of these sessions; None: all) can be claimed."""
        which, values = _which(queue, sessions, 1)
        return await self._engine.read(lambda tx: tx.holds(f"{READY} AND {which} LIMIT 1", *values), brief=True)

    async def peers_check(self, queue: str) -> bool:
        """Whether another process checks goals of this queue: what it holds is free when it dies."""
        return await self._engine.read(lambda tx: tx.row(PEERS, queue, self._workers.id), brief=True) is not None

    async def claim(self, queue: str, sessions: Collection[str] | None) -> Round | None:
        """Claim a check of this queue, or of these sessions alone."""
        which, values = _which(queue, sessions, 2)
        if (found := await self.claims.claim(f"AND {which}", *values)) is None:
            return None
        return Round(lease=found[0], **dict(zip(ROUND.split(", "), found[1], strict=True)))

    async def end(self, tx: Transaction, claimed: Round, note: str) -> bool:
        """End a check; False where the lease is lost, then nothing else of the change may happen."""
        return await self.claims.end(tx, claimed.lease, END, self._clock.now(), storable(note))

    async def lane(self, tx: Transaction, session: str) -> tuple[int, str]:
        """How much mail of people a session has that is not answered, and the queue of its lane (empty: it had none).
        No other mail comes before the end of the change; it is asked before the goal, as at a run's end."""
        row = await tx.row(f"{LANE} FOR NO KEY UPDATE", session)
        mail = await tx.row(PENDING, session) if row is not None else None
        return (0, "") if row is None or mail is None else (int(mail[0]), str(row[0]))


def _which(queue: str, sessions: Collection[str] | None, number: int) -> tuple[str, Sequence[str]]:
    """The condition that selects the rounds of a queue or of sessions, with its parameters."""
    if sessions is None:
        return f"queue = ${number}", (queue,)
    some = tuple(sessions) or ("",)
    return f"session IN ({marks(len(some), number)})", some
