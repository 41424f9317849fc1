"""What goes on in a home: the workers that serve it, and the sessions with work in hand or without a worker."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.transaction import Columns, Engine, Many, Tables
from hermes_agent.store.workers import Workers

WORKER = "id, machine, version, started"
SERVING = f"SELECT {WORKER} FROM worker WHERE home = $home AND queue <> '' ORDER BY started, id"
ACTIVE = (
    "SELECT lane.id, lane.queue, lane.owner IS NOT NULL, lane.waits, lane.crashes, lane.error, lane.ready_at, "
    "coalesce((SELECT min(at) FROM inbox WHERE inbox.lane = lane.id AND inbox.ended IS NULL), 0.0), "
    "session.principal, session.surface, session.title, coalesce((SELECT question FROM run "
    "WHERE run.session = lane.id AND run.status = 'waiting' ORDER BY first DESC LIMIT 1), '') "
    "FROM lane JOIN session ON session.id = lane.id WHERE lane.home = $home AND session.deleted IS NULL "
    "AND (lane.owner IS NOT NULL OR lane.pending > 0) ORDER BY 8, lane.id LIMIT 1000"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A process that works for everybody: a gateway, an API server or a worker."""

    id: str
    machine: str
    version: str
    started: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """A session with unanswered mail. `held`: a process has it; `waits`: its run only waits, for the answer to
    `question` where that is not empty, else for other sessions. `since` is when its first mail came, `ready_at` when
    it is tried again after `error`."""

    session: str
    queue: str
    held: bool
    waits: bool
    crashes: int
    error: str
    ready_at: float
    since: float
    principal: str
    surface: str
    title: str
    question: str


serving_of = Columns(Serving, WORKER)
active_of = Columns(
    Active,
    "session, queue, held, waits, crashes, error, ready_at, since, principal, surface, title, question",
)


class Activity(Tables):
    """Reads workers and lanes for people; changes nothing but the rows of dead workers."""

    def __init__(self, engine: Engine, workers: Workers) -> None:
        super().__init__(engine)
        self._workers = workers

    active = Many[[], Active](ACTIVE, active_of)
    """The sessions with unanswered mail, the longest first; at most a thousand."""

    async def serving(self) -> list[Serving]:
        """The live processes that serve this home."""
        await self._workers.reap_all()
        rows = await self._engine.read(lambda tx: tx.rows(SERVING))
        return [serving_of(row) for row in rows]
