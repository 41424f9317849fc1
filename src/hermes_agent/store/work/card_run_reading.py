"""Reading the table of the processes of cards, and when a dispatcher has something to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes_agent.core.clock import Clock
from hermes_agent.store.transaction import Engine, Row, TimedTables
from hermes_agent.store.work.card_reading import card_of
from hermes_agent.store.work.cards import Card, CardRun, RunKind
from hermes_agent.store.workers import Workers

FIELDS = (
    "card, epoch, kind, profile, host, exec_id, session, started, seen, adopted, note, reported, ended, outcome, "
    "exit_code"
)
OPEN = (
    f"SELECT card.body, {', '.join(f'card_run.{each}' for each in FIELDS.split(', '))} FROM card_run JOIN card "
    "ON card.id = card_run.card WHERE card_run.home = $home AND card_run.ended IS NULL ORDER BY card_run.started"
)
OF_CARD = f"SELECT {FIELDS} FROM card_run WHERE card = $1 ORDER BY epoch"
OVERDUE = "SELECT id FROM card WHERE home = $home AND status = 'blocked' AND ready_at > 0 AND ready_at <= $1"
# A folder that somebody works in, and a card whose earlier process is not known to be gone, wait.
FREE = (
    "NOT EXISTS (SELECT 1 FROM card_run WHERE card_run.card = card.id AND card_run.ended IS NULL) "
    "AND (card.place = '' OR NOT EXISTS (SELECT 1 FROM card_run JOIN card AS other ON other.id = card_run.card "
    "WHERE card_run.ended IS NULL AND other.place = card.place))"
)
WAITING = (
    "SELECT id, version FROM card WHERE home = $home AND due = 1 AND ready_at <= $1 AND (host = '' OR host = $2) "
    f"AND {FREE} ORDER BY priority, created, id LIMIT 100"
)
TRIAGE = "SELECT id, version FROM card WHERE home = $home AND status = 'triage' AND owner IS NULL AND ready_at <= $1"
NEXT = (
    "SELECT min(at) FROM (SELECT min(ready_at) AS at FROM card WHERE home = $home AND ready_at > 0 "
    "AND (ready_at > $4 OR status = 'blocked') UNION ALL "
    "SELECT min(seen) + $1 FROM card_run WHERE home = $home AND ended IS NULL AND reported = 0 UNION ALL "
    "SELECT min(ended) + $2 FROM card WHERE home = $home AND cleaned = 0 AND status = 'archived' AND host = $3 "
    "AND NOT EXISTS (SELECT 1 FROM card_run WHERE card_run.card = card.id AND card_run.ended IS NULL)) "
    "AS moments"
)
ALIVE = "SELECT id, machine FROM worker"
ANYBODY = (
    "SELECT 1 FROM card_dispatcher JOIN worker ON worker.id = card_dispatcher.worker "
    "WHERE card_dispatcher.home = $home LIMIT 1"
)
LAST_SESSION = (
    "SELECT session FROM card_run WHERE card = $1 AND profile = $2 AND kind = 'work' AND session <> '' "
    "ORDER BY epoch DESC LIMIT 1"
)
RECENT = (
    "SELECT profile, outcome, ended FROM card_run WHERE home = $home AND started >= $1 AND ended IS NOT NULL "
    "ORDER BY ended"
)


class RunReading(TimedTables):
    """What the table of runs says."""

    def __init__(self, engine: Engine, clock: Clock, workers: Workers) -> None:
        super().__init__(engine, clock)
        self._workers = workers

    async def last_session(self, card: str, profile: str) -> str:
        """The session in which that profile worked on the card before; empty where it never did."""
        row = await self._engine.read(lambda tx: tx.row(LAST_SESSION, card, profile), brief=True)
        return "" if row is None else str(row[0])

    async def open(self) -> list[tuple[CardRun, Card]]:
        """The runs whose process may be alive, oldest first, with their cards."""
        rows = await self._engine.read(lambda tx: tx.rows(OPEN))
        return [(run_of(row[1:]), card_of(row)) for row in rows]

    async def of(self, card: str) -> list[CardRun]:
        """All runs of a card."""
        return [run_of(row) for row in await self._engine.read(lambda tx: tx.rows(OF_CARD, card))]

    async def overdue(self) -> list[str]:
        """Blocked cards whose passing trouble has passed."""
        now = self._clock.now()
        return [row[0] for row in await self._engine.read(lambda tx: tx.rows(OVERDUE, now))]

    async def waiting(self, host: str, *, triage: bool = False) -> frozenset[tuple[str, int]]:
        """Cards with their version that a dispatcher of this machine could claim now, were there room."""
        now = self._clock.now()
        rows = await self._engine.read(lambda tx: tx.rows(WAITING, now, host), brief=True)
        if triage:
            rows += await self._engine.read(lambda tx: tx.rows(TRIAGE, now), brief=True)
        return frozenset((row[0], int(row[1])) for row in rows)

    async def next_due(self, host: str, stale: float, keep: float) -> float | None:
        """When time alone gives a dispatcher something to do next; None: never."""
        row = await self._engine.read(lambda tx: tx.row(NEXT, stale, keep, host, self._clock.now()), brief=True)
        return None if row is None or row[0] is None else float(row[0])

    async def alive(self) -> Mapping[str, str]:
        """The workers of this database that are registered, each with its machine."""
        return {row[0]: row[1] for row in await self._engine.read(lambda tx: tx.rows(ALIVE), brief=True)}

    async def is_dispatched(self) -> bool:
        """Whether a living process dispatches."""
        await self._workers.register()
        await self._workers.reap_all()
        return await self._engine.read(lambda tx: tx.row(ANYBODY), brief=True) is not None

    async def recent(self, since: float) -> Sequence[tuple[str, str, float]]:
        """Profile, outcome and end of the runs that ended since then."""
        return [(row[0], row[1], row[2]) for row in await self._engine.read(lambda tx: tx.rows(RECENT, since))]


def run_of(row: Row) -> CardRun:
    card, epoch, kind, profile, host, exec_id, session, started, seen, adopted, note, reported, ended, outcome, code = (
        row
    )
    return CardRun(
        card=card,
        epoch=int(epoch),
        kind=RunKind(kind),
        profile=profile,
        host=host,
        exec_id=exec_id,
        session=session,
        started=started,
        seen=seen,
        adopted=bool(adopted),
        note=note,
        reported=bool(reported),
        ended=ended,
        outcome=outcome,
        exit_code=code,
    )
