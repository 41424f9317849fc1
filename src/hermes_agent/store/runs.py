"""Runs by their events: where in the log each begins and ends, so that nobody reads the whole log to find one."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Answered, Asked, Entry, MessageTaken, RunEnded, RunStarted
from hermes_agent.store.transaction import Engine, Transaction

PUT = (
    "INSERT INTO run (session, run, first, last, status, question) VALUES ($1, $2, $3, $4, $5, $6) "
    "ON CONFLICT (session, run) DO UPDATE SET last = excluded.last, status = excluded.status, "
    "question = excluded.question"
)
ANSWERED = "UPDATE run SET status = 'running', question = '' WHERE session = $1 AND run = $2 AND question = $3"
MAIL = "UPDATE inbox SET number = $3 WHERE id = $2 AND lane = $1"
SPAN = "SELECT first, last FROM run WHERE session = $1 AND run = $2"
OF_MAIL = (
    "SELECT inbox.number, coalesce(run.last, 0) FROM inbox "
    "JOIN entry ON entry.session = inbox.lane AND entry.number = inbox.number "
    "LEFT JOIN run ON run.session = entry.session AND run.run = entry.run WHERE inbox.id = $2 AND inbox.lane = $1"
)
LAST_END = "SELECT coalesce(max(last), 0) FROM run WHERE session = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The numbers of the first and the last event of a run; `last` is 0 while it goes on."""

    first: int
    last: int

    @property
    def length(self) -> int | None:
        """How many events to read from the first on; None: all that come."""
        return self.last - self.first + 1 if self.last else None


WHOLE = Span(first=1, last=0)
"""Of a run from before runs had rows: it is looked for in the whole log."""


class Runs:
    """One row a run, written in the commits of its events."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def span(self, session: str, run: str) -> Span:
        """Where the run is in the session's log."""
        return await self._span(SPAN, session, run)

    async def of_mail(self, session: str, row: int) -> Span:
        """Where the run is that took the message of that row of the inbox, from that message on."""
        return await self._span(OF_MAIL, session, row)

    async def last_end(self, session: str) -> int:
        """The number of the last event with which a run ended: what was asked before it waits for nobody any more."""
        rows = await self._engine.read(lambda tx: tx.rows(LAST_END, session), brief=True)
        return int(rows[0][0])

    async def _span(self, sql: str, *key: str | int) -> Span:
        row = await self._engine.read(lambda tx: tx.row(sql, *key), brief=True)
        return WHOLE if row is None or not row[0] else Span(first=row[0], last=row[1])


async def index(tx: Transaction, session: str, entries: Sequence[Entry]) -> None:
    """Bring the rows of the runs up to these entries, in the transaction that appends them."""
    for entry in entries:
        key = (session, entry.run)
        match entry.event:
            case RunStarted():
                await tx.run(PUT, *key, entry.number, 0, "running", "")
            case MessageTaken(inbox=row) if row:
                await tx.run(MAIL, session, row, entry.number)
            case Asked(question=question):
                await tx.run(PUT, *key, 0, 0, "waiting", question)
            case Answered(question=question):
                await tx.run(ANSWERED, *key, question)
            case RunEnded(outcome=outcome):
                await tx.run(PUT, *key, 0, entry.number, outcome.value, "")
            case _:
                pass
