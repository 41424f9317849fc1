"""Table of learned constraints: which are in force, when each is checked again, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.transaction import Columns, Many, One, Tables, Transaction, Write
from hermes_agent.store.versions import Kind

FIELDS = "id, sort, kind, item, line, probe, version, session, principal, at, expires, next, state, ended, retired"
NEW = "sort, kind, item, line, probe, version, session, principal, at, expires, next"
PUT = (
    f"INSERT INTO learning_lesson (home, {NEW}, state) "
    "VALUES ($home, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'live') "
    "ON CONFLICT (home, kind, item, line) WHERE ended IS NULL DO NOTHING"
)
GET = f"SELECT {FIELDS} FROM learning_lesson WHERE home = $home AND id = $1"
DUE = (
    f"SELECT {FIELDS} FROM learning_lesson WHERE home = $home AND ended IS NULL AND next <= $1 ORDER BY next, id "
    "LIMIT $2"
)
LIVE = (
    f"SELECT {FIELDS} FROM learning_lesson WHERE home = $home AND ended IS NULL AND (CAST($1 AS TEXT) = '' OR sort = "
    "$1) "
    "ORDER BY at DESC, id DESC"
)
POSTPONE = "UPDATE learning_lesson SET next = $2 WHERE home = $home AND id = $1 AND ended IS NULL"
END = "UPDATE learning_lesson SET state = $2, ended = $3, retired = $4 WHERE home = $home AND id = $1 AND ended IS NULL"
SWEPT = "(SELECT coalesce(max(version), 0) FROM learning_swept WHERE home = $home)"
# A job that waits or runs does what is due anyhow.
ANY = (
    "SELECT 1 WHERE (EXISTS (SELECT 1 FROM learning_lesson WHERE home = $home AND ended IS NULL AND next <= $1) "
    f"OR EXISTS (SELECT 1 FROM version WHERE home = $home AND id > {SWEPT} "
    "AND author IN ('foreground', 'background', 'curator'))) "
    "AND NOT EXISTS (SELECT 1 FROM learning_job WHERE home = $home AND kind = 'probe' AND ended IS NULL)"
)
SWEEP = (
    "INSERT INTO learning_swept (home, version) VALUES ($home, $1) ON CONFLICT (home) DO UPDATE "
    "SET version = excluded.version WHERE learning_swept.version < excluded.version"
)
AFTER = f"SELECT id FROM version WHERE home = $home AND id > {SWEPT} ORDER BY id LIMIT $1"


class Sort(StrEnum):
    """What a learned item teaches: something to `do`, a person's preference (`prefer`), something to `avoid`, a
    `fact`."""

    DO = "do"
    PREFER = "prefer"
    AVOID = "avoid"
    FACT = "fact"


class LessonState(StrEnum):
    """State of a constraint: `live` until its check `passed`, it `expired`, newer ones displaced it (`crowded`), or
    it is `gone` from its file; `proposed` where its end needs approval, because a person's word protects it."""

    LIVE = "live"
    PASSED = "passed"
    EXPIRED = "expired"
    CROWDED = "crowded"
    GONE = "gone"
    PROPOSED = "proposed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A constraint: `line` is a line of the file `item`, or an entry of the notes. Ledger version `version` added it
    in `session`, version `retired` removed it. Without `expires` it ends only with its file."""

    sort: Sort
    kind: Kind
    item: str
    line: str
    version: int
    session: str
    principal: str
    at: float
    next: float
    probe: str = ""
    expires: float | None = None
    id: int = 0
    state: LessonState = LessonState.LIVE
    ended: float | None = None
    retired: int | None = None


lesson_of = Columns(Lesson, FIELDS)
new_of = Columns(Lesson, NEW)


class Lessons(Tables):
    """Table of learned constraints: a row is ended at most once, and not deleted."""

    async def any(self, tx: Transaction, now: float) -> bool:
        """Whether a constraint is due or the ledger has unread versions, and no job for that is queued."""
        return await tx.row(ANY, now) is not None

    after = Many[[int], int](AFTER)
    """The ledger versions that were not searched for constraints yet, the oldest first."""
    get = One[[int], Lesson](GET, lesson_of)
    """The constraint of that number."""
    postpone = Write[[int, float]](POSTPONE)
    """Set the time of its next check."""

    async def sweep(self, version: int, found: Sequence[Lesson]) -> None:
        """Add the constraints of a version and mark it as searched. A line already in force is not added again."""

        async def change(tx: Transaction) -> None:
            for one in found:
                await tx.run(PUT, *new_of.of(one))
            await tx.run(SWEEP, version)

        await self._engine.write(change)

    async def due(self, now: float, limit: int = 100) -> list[Lesson]:
        """The constraints to check now, the longest overdue first."""
        return [lesson_of(row) for row in await self._engine.read(lambda tx: tx.rows(DUE, now, limit))]

    async def live(self, sort: Sort | None = None) -> list[Lesson]:
        """The constraints in force, the newest first."""
        return [lesson_of(row) for row in await self._engine.read(lambda tx: tx.rows(LIVE, sort.value if sort else ""))]

    async def end(self, number: int, state: LessonState, at: float, retired: int | None = None) -> bool:
        """End it; False where it was ended before."""
        return await self._engine.write(lambda tx: tx.run(END, number, state.value, at, retired)) > 0
