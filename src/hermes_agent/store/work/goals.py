"""Tables of goals: what a person wants reached, the checks that are due as claimed rows, and their receipts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.records import revive
from hermes_agent.core.spending import Limit, Scope
from hermes_agent.store.claims import FREE, Claims, Lease
from hermes_agent.store.transaction import (
    Columns,
    Engine,
    One,
    Row,
    TimedTables,
    Transaction,
    Value,
    marks,
    plain,
    storable,
    written,
)
from hermes_agent.store.workers import Workers

FIELDS = "id, principal, session, state, revision, round, due, news, changed, ended, body"
APART = ("id", "principal", "session", "state", "revision", "round", "wait_until")
"""What of a goal counts as it stands in its own column: a session that is deleted changes it there."""
PUT = f"INSERT INTO goal (home, {FIELDS}) VALUES ($home, {marks(11, 1)})"
SET = (
    "UPDATE goal SET session = $2, state = $3, revision = $4, round = $5, due = $6, news = $7, changed = $8, "
    "ended = $9, body = $10 WHERE id = $1 AND home = $home"
)
GET = f"SELECT {FIELDS} FROM goal WHERE id = $1 AND home = $home"
HOLD = f"{GET} FOR NO KEY UPDATE"
LIST = (
    f"SELECT {FIELDS} FROM goal WHERE home = $home AND (CAST($1 AS TEXT) = '' OR principal = $1) "
    "AND (ended IS NULL OR $2 = 1) ORDER BY ended IS NULL DESC, changed DESC, id LIMIT $3"
)
PURSUED = (
    f"SELECT {FIELDS} FROM goal WHERE session = $1 AND home = $home AND ended IS NULL "
    "AND state IN ('active', 'checking', 'waiting') ORDER BY changed DESC, id LIMIT 1"
)
OF_QUEUE = (
    "home = $home AND (CAST($1 AS TEXT) = '' OR EXISTS (SELECT 1 FROM lane WHERE lane.id = goal.session "
    "AND lane.queue = $1))"
)
DUE = (
    f"SELECT {FIELDS} FROM goal WHERE {OF_QUEUE} AND state = 'waiting' AND ended IS NULL UNION ALL "
    f"SELECT {FIELDS} FROM goal WHERE {OF_QUEUE} AND news = 1 AND (state <> 'waiting' OR ended IS NOT NULL) ORDER BY 1"
)
CHECKS = "criterion, kind, at, seconds, exit_code, verdict, evidence, output_hash"
CHECKED = (
    f"INSERT INTO goal_check (home, round, number, goal, revision, run, {CHECKS}) VALUES "
    f"($home, {marks(13, 1)}) ON CONFLICT DO NOTHING"
)
RECEIPTS = (
    f"SELECT {CHECKS}, round FROM goal_check WHERE goal = $1 AND home = $home "
    "ORDER BY at DESC, round DESC, number LIMIT $2"
)


class State(StrEnum):
    """State of a goal. `draft`: not begun; `checking`: its criteria are due; `waiting`: for a time or a command;
    `paused`: by a person; `blocked`: it needs a person; `limited`: its turns, money or tokens are used up."""

    DRAFT = "draft"
    ACTIVE = "active"
    CHECKING = "checking"
    WAITING = "waiting"
    PAUSED = "paused"
    BLOCKED = "blocked"
    LIMITED = "limited"
    DONE = "done"
    DROPPED = "dropped"


PURSUED_STATES = (State.ACTIVE, State.CHECKING, State.WAITING)


class Kind(StrEnum):
    """Kind of a criterion: a command that exits with 0, a file, a card of the board, or words for a judge."""

    COMMAND = "command"
    FILE = "file"
    BOARD = "board"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One condition of a goal. `text` is the command, the path, the card's id or the words; a file may have to hold
    the text `contains`, or have this `sha256`."""

    kind: Kind
    text: str
    contains: str = ""
    sha256: str = ""

    def __str__(self) -> str:
        more = f" contains {self.contains!r}" if self.contains else f" has sha256 {self.sha256}" if self.sha256 else ""
        return f"`{self.text}`" if self.kind is Kind.COMMAND else f"{self.kind} {self.text}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal. `principal` is `owner` or a principal's key; `origin` says who worded it.

    `session` pursues it in `folder`, from the log's event `since` on; `round` counts the ends of its runs, `turns`
    those that the goal itself began, `fails` its failed runs in a row. `mark` and `same` are the last state that a
    check found and how often in a row; `drift` counts changed effects over the same state. `garbled` and `unreached`
    count the judge's failures in a row. `unmet` are the criteria that did not hold, in words. `said` is what the agent
    reported (`blocked`, `waiting`) with its reason. `untold`: news of which the person was not told. `money`
    (nanodollars) and `tokens` limit its account.
    """

    id: str
    principal: str
    text: str
    created: float
    revision: int = 1
    origin: str = "person"
    constraints: tuple[str, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    state: State = State.ACTIVE
    why: str = ""
    session: str = ""
    folder: str = ""
    since: int = 0
    round: int = 0
    turns: int = 0
    max_turns: int = 20
    fails: int = 0
    mark: str = ""
    effects: str = ""
    same: int = 0
    drift: int = 0
    garbled: int = 0
    unreached: int = 0
    unmet: tuple[str, ...] = ()
    said: tuple[str, str] = ("", "")
    untold: str = ""
    money: int | None = None
    tokens: int | None = None
    wait_until: float | None = None
    wait_exec: str = ""
    changed: float = 0.0
    ended: float | None = None

    @property
    def job(self) -> str:
        """The account that its runs and judges are charged to."""
        return f"goal:{self.id}"

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of its account."""
        limit = Limit(scope=Scope.JOB, money=self.money, tokens=self.tokens)
        return (limit,) if (self.money, self.tokens) != (None, None) else ()

    @property
    def is_open(self) -> bool:
        """Whether it is neither done nor dropped."""
        return self.state not in (State.DONE, State.DROPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A receipt: what one criterion gave. `verdict` is `met`, `unmet`, `impossible`, `waiting`, `garbled` or
    `unreached`; `evidence` the end of the output, or what the judge named."""

    criterion: str
    kind: Kind
    at: float
    seconds: float
    verdict: str
    exit_code: int | None = None
    evidence: str = ""
    output_hash: str = ""
    round: str = ""


check_of = Columns(Check, f"{CHECKS}, round")


def goal_of(row: Row) -> Goal:
    """The goal of a row."""
    found: Goal = revive(Goal, plain(row[-1]))
    apart = dict(zip(APART, row, strict=False))
    return replace(found, **apart | {"state": State(apart["state"])})


Become = Callable[[Goal], Goal | None]
"""The goal as it becomes; None where it stays."""


class Goals(TimedTables):
    """Goals with their receipts. A change reads the goal in its own transaction."""

    get = One[[str], Goal](GET, goal_of, brief=True)
    """The goal of that id."""
    pursued = One[[str], Goal](PURSUED, goal_of, brief=True)
    """The goal that a session pursues."""

    async def put(self, tx: Transaction, goal: Goal) -> None:
        """Add a goal, as part of a change."""
        key, *row = _columns(replace(goal, changed=self._clock.now()))
        await tx.run(PUT, key, goal.principal, *row)

    async def due(self, queue: str = "") -> Sequence[Goal]:
        """The goals of a queue's sessions (empty: of all) that wait, or have news that nobody was told."""
        return [goal_of(row) for row in await self._engine.read(lambda tx: tx.rows(DUE, queue), brief=True)]

    async def become(self, tx: Transaction, goal: str, become: Become) -> Goal | None:
        """Change a goal as part of a transaction; the goal then, None where it stays."""
        return await self._become(tx, HOLD, goal, become)

    async def change(self, goal: str, become: Become) -> Goal | None:
        """The same in a transaction of its own."""
        return await self._engine.write(lambda tx: self.become(tx, goal, become))

    async def end_run(self, tx: Transaction, session: str, become: Become) -> Goal | None:
        """The same for the goal that a session pursues, in the commit of a run's end."""
        return await self._become(tx, f"{PURSUED} FOR NO KEY UPDATE", session, become)

    async def keep(self, tx: Transaction, goal: Goal, name: str, run: str, checks: Sequence[Check]) -> None:
        """Write the receipts of a round."""
        redact = self._engine.redact
        for number, each in enumerate(checks):
            told = replace(each, criterion=redact(each.criterion), evidence=redact(each.evidence))
            await tx.run(CHECKED, name, number, goal.id, goal.revision, run, *check_of.of(told)[:-1])

    async def receipts(self, goal: str, limit: int = 50) -> Sequence[Check]:
        """The receipts of a goal, the newest round first."""
        return [check_of(row) for row in await self._engine.read(lambda tx: tx.rows(RECEIPTS, goal, limit))]

    async def list(self, principal: str = "", *, ended: bool = False, limit: int = 1000) -> list[Goal]:
        """The goals of a person (empty: everybody's), open ones first, the one changed last first."""
        rows = await self._engine.read(lambda tx: tx.rows(LIST, principal, int(ended), limit), brief=True)
        return [goal_of(row) for row in rows]

    async def _become(self, tx: Transaction, sql: str, key: str, become: Become) -> Goal | None:
        row = await tx.row(sql, key)
        after = None if row is None else become(goal_of(row))
        if after is not None:
            await tx.run(SET, *_columns(replace(after, changed=self._clock.now())))
        return after


def _columns(goal: Goal) -> tuple[Value, ...]:
    counts = (goal.revision, goal.round, goal.wait_until, int(bool(goal.untold)), goal.changed, goal.ended)
    return (goal.id, goal.session, goal.state.value, *counts, written(goal))


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
