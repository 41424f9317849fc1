"""Tables of sessions in which nobody types: mandates; and children, to which a call of another session gave a goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import UnknownSession
from hermes_agent.core.mandate import Mandate
from hermes_agent.core.records import revive
from hermes_agent.store.transaction import (
    Columns,
    Has,
    Many,
    One,
    Row,
    Tables,
    Transaction,
    Within,
    marks,
    plain,
    storable,
    written,
)

FIELDS = (
    "session, parent, run, call, n, goal, role, isolation, folder, branch, base, queue, state, delivery, outcome, "
    "report, created, ended"
)
ADD = f"INSERT INTO child (home, {FIELDS}) VALUES ($home, {marks(18, 1)}) ON CONFLICT (session) DO NOTHING"
# The oldest child of a parent stands for all: who holds its row is alone in starting and ending children there.
ALONE = (
    "SELECT session FROM child WHERE parent = $1 AND home = $home ORDER BY created, n, session LIMIT 1 "
    "FOR NO KEY UPDATE"
)
DELETED = "SELECT 1 FROM session WHERE id = $1 AND home = $home AND deleted IS NOT NULL"
RUNNING = "SELECT count(*) FROM child WHERE parent = $1 AND home = $home AND state = 'running'"
PARENT = "SELECT parent FROM child WHERE session = $1 AND home = $home"
GET = f"SELECT {FIELDS} FROM child WHERE session = $1 AND home = $home"
OF_PARENT = f"SELECT {FIELDS} FROM child WHERE parent = $1 AND home = $home ORDER BY created, n"
AWAITED = (
    f"SELECT {FIELDS} FROM child WHERE parent = $1 AND home = $home AND delivery = 'call' "
    "AND (state <> 'ended' OR run = $2) ORDER BY created, n FOR NO KEY UPDATE"
)
LOCK = f"{GET} FOR NO KEY UPDATE"
LATEST = (
    f"SELECT {FIELDS} FROM child WHERE home = $home AND (CAST($1 AS TEXT) = '' OR EXISTS (SELECT 1 FROM session "
    "WHERE session.id = child.session AND session.principal = $1)) ORDER BY CASE state WHEN 'ended' THEN 1 ELSE 0 END, "
    "created DESC, n DESC LIMIT $2"
)
END = "UPDATE child SET state = 'ended', outcome = $2, report = $3, ended = $4 WHERE session = $1"
NEXT = (
    "UPDATE child SET state = 'running' WHERE session = (SELECT session FROM child WHERE parent = $1 "
    "AND home = $home AND state = 'waiting' ORDER BY created, n LIMIT 1) "
    "RETURNING session, queue"
)
DELIVER = "UPDATE child SET delivery = $2 WHERE session = $1"
REOPEN = (
    "UPDATE child SET state = 'running', delivery = 'mail', outcome = '', ended = NULL, queue = $2 "
    "WHERE session = $1 AND home = $home AND state = 'ended'"
)
MOVE = "UPDATE child SET queue = $2 WHERE session = $1"
MOVE_LANE = "UPDATE lane SET queue = $2 WHERE id = $1"
ADDRESS = (
    "SELECT COALESCE((SELECT principal FROM session WHERE id = $1), ''), "
    "COALESCE((SELECT queue FROM lane WHERE id = $2), CAST($3 AS TEXT))"
)
OPEN_MAIL = "SELECT 1 FROM inbox WHERE lane = $1 AND ended IS NULL LIMIT 1"
STOP = "UPDATE lane SET stop_epoch = epoch WHERE id = $1 AND owner IS NOT NULL RETURNING owner"
REFUSE = "UPDATE inbox SET state = 'refused', reason = $2, ended = $3 WHERE lane = $1 AND ended IS NULL"
EMPTY = "UPDATE lane SET pending = 0 WHERE id = $1 AND owner IS NULL"
FREE_LANE = "SELECT 1 FROM lane WHERE id = $1 AND owner IS NULL FOR NO KEY UPDATE"
HELD_BACK = "held back"
"""The queue of lanes whose children wait until another one has ended: nobody works on it."""


class State(StrEnum):
    """Where a child stands: `waiting` for another one to end, `running` (or ready to run), `ended`."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


class Delivery(StrEnum):
    """Where a child's report goes: to the `call` that waits for it, as `mail` to the parent, or to `nobody`."""

    CALL = "call"
    MAIL = "mail"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """The row of a child. `run` and `call` are those of the parent, `n` counts the children of the call from 1.
    `folder` is where it works; a worktree has a `branch` that began at commit `base`. `queue` names who works on
    it. `outcome` is empty until it has `ended`; `report` is JSON."""

    session: str
    parent: str
    run: str
    call: str
    n: int
    goal: str
    role: str
    isolation: str
    folder: str
    branch: str = ""
    base: str = ""
    queue: str
    state: State = State.WAITING
    delivery: Delivery
    outcome: str = ""
    report: str = ""
    created: float
    ended: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state is not State.ENDED


child_of = Columns(Child, FIELDS)


class Children(Tables):
    """One row per child, written with its session. Whoever ends a child or decides where its report goes locks its
    row first, so that a report is delivered exactly once."""

    get = One[[str], Child](GET, child_of, brief=True)
    """The child of that session."""
    of = Many[[str], Child](OF_PARENT, child_of, brief=True)
    """The children of a session, oldest first."""
    has_open = Has[[str]]("SELECT 1 FROM child WHERE parent = $1 AND state <> 'ended' LIMIT 1", brief=True)
    """Whether a child of the session has not ended."""
    reopen = Within[[str, str]](REOPEN)
    """Note that a child that had ended, and works in a queue now, got another message: its next report goes as mail. 0
    where it has not ended."""

    async def add(self, tx: Transaction, child: Child, most: int) -> None:
        """Add a child whose mail waits in the queue `HELD_BACK`; let it run if fewer than `most` of its parent do.
        Raises `UnknownSession` where its parent was deleted."""
        if await tx.holds(DELETED, child.parent):
            raise UnknownSession(f"{child.parent} was deleted: it starts no agents.")
        await tx.holds(ALONE, child.parent)
        running = await tx.row(RUNNING, child.parent)
        runs = running is not None and running[0] < most
        state = State.RUNNING if runs else State.WAITING
        await tx.run(ADD, *child_of.of(replace(child, state=state)))
        if runs:
            await tx.run(MOVE_LANE, child.session, child.queue)
            tx.rings.add("")

    async def latest(self, principal: str = "", limit: int = 50) -> list[Child]:
        """Children of that principal (empty: of all), first those that have not ended, the newest first."""
        return [child_of(row) for row in await self._engine.read(lambda tx: tx.rows(LATEST, principal, limit))]

    async def awaited(self, tx: Transaction, parent: str, run: str) -> list[Child]:
        """The children for which calls of that run wait, or waited, locked until the transaction ends; also those of
        earlier runs that have not ended."""
        await tx.holds(ALONE, parent)
        return [child_of(row) for row in await tx.rows(AWAITED, parent, run)]

    async def end(self, tx: Transaction, session: str, outcome: str, report: str, at: float) -> Child | None:
        """End a child, and let the next waiting one of its parent run. None where it has ended, was deleted, or has
        more mail, which its next run answers."""
        parent = await tx.row(PARENT, session)
        row = await tx.row(LOCK, session) if parent and await tx.holds(ALONE, parent[0]) else None
        if row is None or not (child := child_of(row)).is_open or await tx.row(OPEN_MAIL, session) is not None:
            return None
        await tx.run(END, session, outcome, storable(report), at)
        if child.state is State.RUNNING and (ready := await tx.row(NEXT, child.parent)) is not None:
            await tx.run(MOVE_LANE, *ready)
        tx.rings.add("")
        return replace(child, state=State.ENDED, outcome=outcome, report=report, ended=at)

    async def stop(self, tx: Transaction, session: str, reason: str, at: float) -> bool:
        """Order the worker that runs a child to stop it. True where nobody runs it: then its mail is refused, and the
        caller ends it."""
        if (row := await tx.row(STOP, session)) is not None:
            tx.rings.add(row[0])
            return False
        if await tx.row(FREE_LANE, session) is not None:
            await tx.run(REFUSE, session, reason, at)
            await tx.run(EMPTY, session)
        return True

    async def abandon(self, tx: Transaction, session: str, reason: str, at: float) -> None:
        """Stop a child, and what it started, whose report nobody will read."""
        await tx.run(DELIVER, session, Delivery.NOBODY)
        if await self.stop(tx, session, reason, at):
            await self.end(tx, session, "stopped", written({"summary": reason}), at)
            await self.abandon_all(tx, session, reason, at)

    async def abandon_all(self, tx: Transaction, parent: str, reason: str, at: float) -> None:
        """Stop all children of a session."""
        for row in await tx.rows(OF_PARENT, parent):
            if (child := child_of(row)).is_open:
                await self.abandon(tx, child.session, reason, at)

    async def address(self, tx: Transaction, child: Child) -> tuple[str, str]:
        """For the mail about a child: the principal (by key) that it works for, and the queue of its parent."""
        [found] = await tx.rows(ADDRESS, child.session, child.parent, child.queue)
        return found[0], found[1]

    async def send(self, tx: Transaction, session: str) -> None:
        """Let the report go as mail, which was for a call."""
        await tx.run(DELIVER, session, Delivery.MAIL)

    async def hand_over(self, tx: Transaction, children: Sequence[Child], queue: str) -> None:
        """Leave lanes to the workers of another queue: of children, and of their parents that get mail about them."""
        for child in children:
            await tx.run(MOVE, child.session, queue)
            for lane in (child.session, *([child.parent] if child.delivery is Delivery.MAIL else [])):
                await tx.run(f"{MOVE_LANE} AND queue <> $3", lane, queue, HELD_BACK)
        tx.rings.add("")


PUT = "INSERT INTO mandate (session, home, body) VALUES ($1, $home, $2) ON CONFLICT (session) DO NOTHING"


def mandate_of(row: Row) -> Mandate:
    """The mandate of a row."""
    found: Mandate = revive(Mandate, plain(row[0]))
    return found


class Mandates(Tables):
    """One row per session that has a mandate; written with the session, never changed."""

    of = One[[str], Mandate]("SELECT body FROM mandate WHERE session = $1 AND home = $home", mandate_of, brief=True)
    """The session's mandate. Raises `ValueError` where a later version wrote one that this one cannot read."""

    async def put(self, tx: Transaction, session: str, mandate: Mandate) -> None:
        """Give a session its mandate, in the commit that creates the session."""
        await tx.run(PUT, session, written(mandate))
