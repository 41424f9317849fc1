"""Values of the board: a card, its runs and events, and a change to a card."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Origin

HUMAN, PROFILE, COMMAND = "human", "profile:", "command:"
"""The forms of a validator: a person, a reviewer of that profile, a command in the workspace."""


class Status(StrEnum):
    """Where a card stands. `archived` is final."""

    TRIAGE = "triage"
    TODO = "todo"
    READY = "ready"
    RUNNING = "running"
    BLOCKED = "blocked"
    REVIEW = "review"
    DONE = "done"
    CANCELLED = "cancelled"
    ARCHIVED = "archived"


CLOSED = frozenset({Status.DONE, Status.CANCELLED, Status.ARCHIVED})


class Reason(StrEnum):
    """Why a card is blocked: another card, an answer of a person, something missing here, a passing trouble, or too
    many failed runs."""

    DEPENDENCY = "dependency"
    NEEDS_INPUT = "needs_input"
    CAPABILITY = "capability"
    TRANSIENT = "transient"
    FAILED = "failed"


class Workspace(StrEnum):
    """What a card's folder is: an empty one of its own, a git worktree of its own, or a folder that exists."""

    SCRATCH = "scratch"
    WORKTREE = "worktree"
    DIR = "dir"


class RunKind(StrEnum):
    """What a process of a card does: its work, the check of it, or dividing it into smaller cards."""

    WORK = "work"
    VALIDATE = "validate"
    DECOMPOSE = "decompose"


class Ending(StrEnum):
    """Outcome of a run of a card."""

    COMPLETED = "completed"
    BLOCKED = "blocked"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    SPAWN_FAILED = "spawn_failed"
    GAVE_UP = "gave_up"
    RATE_LIMITED = "rate_limited"
    RECLAIMED = "reclaimed"
    CANCELLED = "cancelled"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card of a board.

    - `created_by` is a person, or the card whose worker created it, `whose` the person for whom it is done;
    - `assignee` is a profile (empty: the base home); a lower `priority` is more urgent;
    - `parents_left` counts the parents that are not done; `done` stays true in the archive;
    - `folder` is the workspace's path (empty until it is made), `source` the repository of a worktree, `host` the
      machine that has it (empty: none yet);
    - `owner` and `epoch` are the lease of whoever works on it: a worker of the store, and a number that only grows;
    - `attempts` are the card's failures, `crashes` the machine's; `ready_at` is when it may start next;
    - `goal_turns`: how many runs a worker has by itself to reach what the card asks for;
    - `was_blocked` is the reason of its last block, `reblocks` how often in a row it was that one;
    - `imported` is the line of another program from which it was made;
    - `key` makes creating it idempotent; `version` counts its changes.
    """

    id: str
    board: str
    title: str
    body: str = ""
    status: Status = Status.TODO
    assignee: str = ""
    priority: int = 2
    tenant: str = ""
    created_by: str = ""
    whose: str = ""
    origin: Origin = Origin.OWNER
    key: str = ""
    parents_left: int = 0
    workspace: Workspace = Workspace.SCRATCH
    folder: str = ""
    source: str = ""
    branch: str = ""
    host: str = ""
    skills: tuple[str, ...] = ()
    model: str = ""
    toolsets: tuple[str, ...] = ()
    max_seconds: float = 0.0
    max_attempts: int = 2
    goal_turns: int = 0
    validator: str = ""
    blocked: Reason | None = None
    blocked_on: str = ""
    was_blocked: Reason | None = None
    reblocks: int = 0
    ready_at: float = 0.0
    owner: str = ""
    epoch: int = 0
    attempts: int = 0
    crashes: int = 0
    summary: str = ""
    metadata: str = ""
    done: bool = False
    cleaned: bool = False
    imported: str = ""
    created: float = 0.0
    started: float | None = None
    ended: float | None = None
    version: int = 0

    @property
    def person(self) -> str:
        """The person for whom it is done."""
        return self.whose or self.created_by

    @property
    def is_open(self) -> bool:
        """Whether there is something left to do."""
        return self.status not in CLOSED

    @property
    def is_due(self) -> bool:
        """Whether a dispatcher may claim it: for its work, or for a check that a program does."""
        if self.owner:
            return False
        return self.status is Status.READY or (
            self.status is Status.REVIEW and self.validator.startswith((PROFILE, COMMAND))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRow:
    """A card in a list."""

    id: str
    board: str
    title: str
    status: str
    assignee: str
    priority: int
    tenant: str
    parents_left: int
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change to a card: what it becomes, the event that says so, and a message to the watchers (empty: none).
    `ending` ends the open run of the card's epoch before the change."""

    card: Card
    kind: str
    by: str
    text: str = ""
    origin: Origin = Origin.RUNTIME
    letter: str = ""
    ending: Ending | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardEvent:
    """What happened to a card, in order. `origin` labels the text."""

    card: str
    number: int
    kind: str
    at: float
    by: str
    text: str
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRun:
    """A process of a card, by the epoch of its claim. `seen` is its last sign of progress; it is over once `ended` is
    set. `outcome` is set before, where the card moved first."""

    card: str
    epoch: int
    kind: RunKind
    profile: str
    host: str
    exec_id: str
    session: str
    started: float
    seen: float
    adopted: bool
    note: str
    reported: bool
    ended: float | None
    outcome: str
    exit_code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFile:
    """A file that belongs to a card, by its path in the home."""

    card: str
    name: str
    sha256: str
    bytes: int
    path: str
    by: str
