"""Version ledger of learned files: every change of a note or skill with its author, cause, and content before and
after."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.store.transaction import (
    Columns,
    Engine,
    Has,
    Keyed,
    Many,
    One,
    Row,
    Tables,
    Transaction,
    Within,
    marks,
    storable,
)

FIELDS = (
    "change, kind, item, at, author, principal, session, first, last, action, key, undoes, evidence, taint, cost, note"
)
INSERT = (
    f"INSERT INTO version (home, {FIELDS}, folder, private, before, after, state, machine, follows) "
    f"VALUES ($home, {marks(23, 1)}) ON CONFLICT DO NOTHING RETURNING id"
)
STANDS = "SELECT 1 FROM version WHERE id = $1 AND home = $home AND state <> 'dropped' FOR NO KEY UPDATE"
FOLLOWED = (
    "SELECT 1 FROM version WHERE home = $home AND follows = $1 AND kind = $2 AND item = $3 AND state <> 'dropped'"
)
KEEP = "INSERT INTO version_body (hash, body) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING"
SETTLE = "UPDATE version SET state = $2 WHERE id = $1 AND state = 'intended'"
# The names of the row's own columns, said with the table's: a body has none of them.
ROWS = (
    "SELECT version.id, state, change, kind, item, at, author, principal, session, first, last, action, key, undoes, "
    "evidence, taint, cost, note, folder, private, old.body, new.body FROM version "
    "LEFT JOIN version_body AS old ON old.hash = version.before "
    "LEFT JOIN version_body AS new ON new.hash = version.after "
)
GET = f"{ROWS} WHERE version.id = $1 AND home = $home"
# Where there are several homes, what one intended stands: another may go on with its run, or have built upon it.
BY_KEY = (
    f"{ROWS} WHERE key = $1 AND home = $home AND (state = 'done' OR (state = 'intended' AND machine <> '')) ORDER BY "
    "version.id LIMIT 1"
)
LATEST = (
    f"{ROWS} WHERE home = $home AND kind = $1 AND item = $2 AND private = $3 AND state <> 'dropped' {{mine}}"
    "ORDER BY version.id DESC LIMIT 1"
)
HEADS = (
    "SELECT item, max(id) FROM version WHERE home = $home AND kind = $1 AND private = 0 AND state <> 'dropped' GROUP "
    "BY item"
)
HOLDING = (
    "SELECT 1 FROM version WHERE home = $home AND kind = $1 AND item = $2 AND id > $3 AND coalesce(after, '') = $4 "
    "AND state <> 'dropped' LIMIT 1"
)
LIST = (
    f"{ROWS} WHERE home = $home AND (CAST($1 AS TEXT) = '' OR kind = $1) AND (CAST($2 AS TEXT) = '' OR item = $2) "
    "AND version.id < $3 AND state <> 'dropped' ORDER BY version.id DESC LIMIT $4"
)
BY_SESSION = f"{ROWS} WHERE home = $home AND session = $1 AND author = $2 AND state = 'done' ORDER BY version.id DESC"
# Who wrote last what nobody known wrote, or the owner took it on; what the owner undid counts no more.
TELLING = (
    "SELECT author FROM version WHERE home = $home AND kind = $1 AND item = $2 AND state <> 'dropped' "
    "AND (private = 0 OR machine = $3) "
    "AND (author = 'found' OR (author = 'owner' AND action IN ('adopt', 'edit'))) AND id NOT IN (SELECT undoes FROM "
    "version AS later WHERE later.home = $home AND later.author = 'owner' AND later.undoes IS NOT NULL) "
    "ORDER BY id DESC LIMIT 1"
)
UNDONE = "SELECT undoes FROM version WHERE undoes = $1 AND state = 'done' LIMIT 1"
ITEMS = "SELECT DISTINCT item FROM version WHERE home = $home AND kind = $1 ORDER BY item"
LAST_ID = 2**62


class Kind(StrEnum):
    """Kind of the versioned item."""

    MEMORY = "memory"
    SKILL = "skill"


class Author(StrEnum):
    """Author of a change. `owner` and `member` are persons; `foreground` is the agent of a conversation,
    `background` the reviewing one, `curator` the one that maintains skills; `hub` is what was installed, `found` what a
    file held that nobody known wrote."""

    OWNER = "owner"
    MEMBER = "member"
    FOREGROUND = "foreground"
    BACKGROUND = "background"
    CURATOR = "curator"
    HUB = "hub"
    FOUND = "found"


UNTOUCHED = frozenset({Author.OWNER, Author.MEMBER, Author.FOUND})
"""Whose text the agent's own reviews and the curator leave as it is."""
OUTSIDE, ADOPT = "changed outside", "adopt"
ADOPTING = frozenset({(Author.OWNER, ADOPT), (Author.OWNER, "edit")})


class VersionState(StrEnum):
    """State of a version: `intended` is committed before the file is written; `dropped` never reached it."""

    INTENDED = "intended"
    DONE = "done"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change to record. `before` and `after` are whole contents, None: no file. `change` groups the rows of one
    act; `first` and `last` number the events of `session` behind it; `key` is the call that made it (empty:
    none); `undoes` the version that it reverts; `folder` is the category of a skill; a `private` change is of
    something that this home alone has, such as an installed skill."""

    kind: Kind
    item: str
    at: float
    author: Author
    action: str
    before: bytes | None
    after: bytes | None
    change: str = ""
    principal: str = ""
    session: str = ""
    first: int = 0
    last: int = 0
    key: str = ""
    undoes: int | None = None
    evidence: str | None = None
    taint: str | None = None
    cost: float | None = None
    note: str | None = None
    folder: str = ""
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """Evidence for an unrequested change: the events `first` to `last` of its conversation, evidence as JSON, its
    parts of outside origin, its cost (US dollars), a note. `approved`: the owner, or other conversations,
    approved it whatever it changes."""

    first: int = 0
    last: int = 0
    evidence: str | None = None
    taint: str | None = None
    cost: float | None = None
    note: str | None = None
    approved: bool = False


NO_BACKING = Backing()


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """Who changes a note or a skill, and what made them: the events `first` to `last` of a session, the key of the
    call; the version that it takes back."""

    author: Author
    principal: str = ""
    session: str = ""
    first: int = 0
    last: int = 0
    key: str = ""
    undoes: int | None = None
    backing: Backing = NO_BACKING


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A change in the ledger, with its number and state."""

    id: int
    state: VersionState
    change: Change


class Overtaken(HermesError):
    """Raised when another home changed the item in the meantime."""


change_of = Columns(Change, f"{FIELDS}, folder, private, before, after")


def version_of(row: Row) -> Version:
    """The version of a row."""
    return Version(id=row[0], state=VersionState(row[1]), change=change_of(row[2:]))


class Versions(Tables):
    """The version ledger: rows are written once and never deleted; only their state is completed. `machine` is the
    id of this copy of the home, empty where the database is its own."""

    def __init__(self, engine: Engine, machine: str = "") -> None:
        super().__init__(engine)
        self.machine = machine

    async def record(
        self,
        tx: Transaction,
        change: Change,
        state: VersionState = VersionState.INTENDED,
        *,
        follows: int | None = None,
    ) -> int:
        """Write a row; its number. Raises `Overtaken` where another row already `follows` that version (0: the
        first)."""
        hashes = [await self._kept(tx, body) for body in (change.before, change.after)]
        # Locked, so that the one before is not dropped meanwhile.
        stands = not follows or await tx.holds(STANDS, follows)
        place = (*hashes, state.value, self.machine, follows)
        row = await tx.row(INSERT, *change_of.of(change)[:-2], *place) if stands else None
        if row is None:
            raise Overtaken(f"{change.item} was changed meanwhile: nothing was written.")
        return int(row[0])

    get = One[[int], Version](GET, version_of)
    """The version of that number."""
    by_key = One[[str], Version](BY_KEY, version_of)
    """The completed version of the call with that key."""
    heads = Keyed[[Kind], int](HEADS)
    """The number of the newest version of each shared item of a kind."""
    items = Many[[Kind], str](ITEMS)
    """All items of that kind ever."""
    undone = Has[[int]](UNDONE)
    """Whether a later version reverted it."""
    complete = Within[[int, VersionState]](SETTLE)
    """Set the final state of an intended change; a final state stays."""

    async def drop(self, tx: Transaction, version: Version) -> bool:
        """Drop an intended change; False where another home has built on it."""
        if await tx.holds(STANDS, version.id):
            if await tx.row(FOLLOWED, version.id, version.change.kind.value, storable(version.change.item)):
                return False
            await tx.run(SETTLE, version.id, VersionState.DROPPED.value)
        return True

    async def latest(self, kind: Kind, item: str, *, mine: bool = False, private: bool = False) -> Version | None:
        """The newest version of an item, possibly only intended. With `mine` the newest made by this home, with
        `private` of private items."""
        if private or mine:
            return await self._one(
                version_of, LATEST.format(mine="AND machine = $4 "), kind.value, item, int(private), self.machine
            )
        return await self._one(version_of, LATEST.format(mine=""), kind.value, item, 0)

    async def holds(self, kind: Kind, item: str, after: int, content: bytes | None) -> bool:
        """Whether a version later than `after` resulted in that content."""
        found = hash_of(content)
        return await self._engine.read(lambda tx: tx.row(HOLDING, kind.value, item, after, found)) is not None

    async def of_session(self, session: str, author: Author) -> tuple[Version, ...]:
        """The author's versions caused by a conversation, the newest first."""
        return tuple(
            version_of(row) for row in await self._engine.read(lambda tx: tx.rows(BY_SESSION, session, author.value))
        )

    async def list(
        self, kind: Kind | None = None, item: str = "", *, limit: int = 50, before: int = LAST_ID
    ) -> list[Version]:
        """The newest first; `before` is the last number of the previous page."""
        return [
            version_of(row)
            for row in await self._engine.read(
                lambda tx: tx.rows(LIST, kind.value if kind else "", item, before, limit)
            )
        ]

    async def is_found(self, kind: Kind, item: str) -> bool:
        """Whether an item holds what nobody known wrote, which its owner has neither taken on nor undone since."""
        row = await self._engine.read(lambda tx: tx.row(TELLING, kind.value, item, self.machine))
        return row is not None and row[0] == Author.FOUND

    async def vouches(self, kind: Kind, item: str, content: bytes, *, private: bool = False) -> bool:
        """Whether that is the content which the ledger says the item has, and somebody known answers for it."""
        head = await self.latest(kind, item, private=private)
        if head is None or (head.change.after != content and head.state is not VersionState.INTENDED):
            return False
        return content in (head.change.after, head.change.before) and not await self.is_found(kind, item)

    async def _kept(self, tx: Transaction, body: bytes | None) -> str | None:
        if body is None:
            return None
        found = hash_of(body)
        await tx.run(KEEP, found, body)
        return found


def hash_of(content: bytes | None) -> str:
    """The content's hash; empty where there is none."""
    return "" if content is None else hashlib.sha256(content).hexdigest()
