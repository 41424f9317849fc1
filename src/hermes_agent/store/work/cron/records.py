"""Records of scheduled jobs: schedules, plans, jobs, their instants, and what planning changes."""

from __future__ import annotations

from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.claims import Lease

FRESH, SAME = "fresh", "same"


class Kind(StrEnum):
    """Kind of a schedule: a cron line, an interval, one time."""

    CRON = "cron"
    EVERY = "every"
    AT = "at"


class JobState(StrEnum):
    """State of a job: `done` has no instants left, `broken` cannot run at all."""

    ON = "on"
    PAUSED = "paused"
    DONE = "done"
    BROKEN = "broken"


class InstantState(StrEnum):
    """State of an instant: waiting for its time, under way, and the four ends."""

    PLANNED = "queued"
    RUNNING = "running"
    RAN = "ran"
    FAILED = "failed"
    MISSED = "missed"
    SKIPPED = "skipped"


class CatchUp(StrEnum):
    """What becomes of instants whose time passed while nobody worked: none runs, the last one, or each."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"


class Overlap(StrEnum):
    """What becomes of an instant whose job still runs: it is skipped, waits, or stops that run."""

    SKIP = "skip"
    QUEUE = "queue"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a job runs. `spec` is five cron fields, the seconds of an interval (counted from `anchor`), or a time in
    seconds since 1970; `note` says what was assumed about the words."""

    kind: Kind
    spec: str
    zone: str
    anchor: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a job does, and how.

    - `origin` is the conversation (by key) that made it, `author` wrote it: owner, member, agent or import;
    - `script` runs first, and its output stands before the prompt, or is the message where no `agent` runs; a `gate`
      that fails, or whose last line is `{"wakeAgent": false}`, skips the instant;
    - `deliver` are targets: `origin`, `local`, `all`, or a chat;
    - `window` (None: by the schedule) is how late an instant may begin, `jitter` the most seconds of its delay;
    - `seconds` limits a run, `money` (nanodollars) and `tokens` too; `ends` is when it stops for good;
    - `quiet`: failures are shown in lists alone;
    - `session`: `fresh` (each instant has a session of its own) or `same` (they continue one).
    """

    schedule: Schedule
    prompt: str = ""
    skills: tuple[str, ...] = ()
    script: str = ""
    gate: str = ""
    agent: bool = True
    model: str = ""
    effort: str = ""
    toolsets: tuple[str, ...] | None = None
    folder: str = ""
    origin: str = ""
    author: str = "owner"
    deliver: tuple[str, ...] = ("origin",)
    quiet: bool = False
    session: str = FRESH
    context_from: tuple[str, ...] = ()
    catch_up: CatchUp = CatchUp.LAST
    window: float | None = None
    overlap: Overlap = Overlap.SKIP
    jitter: int = 0
    seconds: int = 1800
    retries: int = 2
    money: int | None = None
    tokens: int | None = None
    ends: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A scheduled job. `remaining` is how often it still runs (None: without end), `planned_to` the moment up to which
    its instants are rows, `told` when its owner was told last that it fails (0: it does not)."""

    id: str
    principal: str
    name: str
    plan: Plan
    created: float
    state: JobState = JobState.ON
    why: str = ""
    remaining: int | None = None
    planned_to: int = 0
    told: float = 0.0
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One instant of a job. `due` is its identity; `counts` is how many the row stands for; `tries` are runs that
    failed for the provider's sake; `words` is what came of it, `letters` its keys in the outbox."""

    job: str
    due: int
    state: InstantState = InstantState.PLANNED
    why: str = ""
    counts: int = 1
    ready_at: float = 0.0
    late_at: float = 0.0
    queues: bool = False
    attempts: int = 0
    tries: int = 0
    session: str = ""
    started: float | None = None
    ended: float | None = None
    words: str = ""
    letters: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Its id, from which everything that it starts is named."""
        return f"{self.job}@{self.due}"

    @property
    def source_id(self) -> str:
        """The id of the message that a run gets of it."""
        return f"{self.id}.{self.tries}" if self.tries else self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """An instant with its lease."""

    instant: Instant
    lease: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What planning a job changes: rows to make (also merged ones that are over), to delete (by due), and the moment of
    the next look; `done`: there are none any more."""

    new: tuple[Instant, ...]
    gone: tuple[int, ...]
    to: int
    look_at: float
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What comes next in a home: when jobs are planned again, when an instant can begin (None: none), how many are
    under way, and how many results are not files yet."""

    look_at: float | None
    ready_at: float | None
    running: int
    unfiled: int


MANUAL = "manual"
"""The reason of an instant that a person asked for."""
