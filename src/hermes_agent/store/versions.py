"""The ledger of what is learned: every change of a note or a skill, who made it, from what, and both contents."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.store.bodies import storable
from hermes_agent.store.transaction import Engine, Row, Tables, Transaction

FIELDS = (
    "change, kind, item, at, author, principal, session, first, last, action, key, undoes, evidence, taint, cost, note"
)
INSERT = (
    f"INSERT INTO version (home, {FIELDS}, folder, private, before, after, state, machine, follows) "
    "VALUES ($home, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, "
    "$22, $23) "
    "ON CONFLICT DO NOTHING RETURNING id"
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
UNDONE = "SELECT undoes FROM version WHERE undoes = $1 AND state = 'done' LIMIT 1"
ITEMS = "SELECT DISTINCT item FROM version WHERE home = $home AND kind = $1 ORDER BY item"
LAST_ID = 2**62


class Kind(StrEnum):
    """What a version is of."""

    MEMORY = "memory"
    SKILL = "skill"


class Author(StrEnum):
    """Who made a change. `owner` and `member` are persons; `foreground` the agent of a conversation, `background` the
    one that reviews it, `curator` the one that looks after skills; `hub` is what came from outside."""

    OWNER = "owner"
    MEMBER = "member"
    FOREGROUND = "foreground"
    BACKGROUND = "background"
    CURATOR = "curator"
    HUB = "hub"


class VersionState(StrEnum):
    """`intended` is committed before the file is touched; `dropped` never reached it."""

    INTENDED = "intended"
    DONE = "done"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that is to be kept. `before` and `after` are whole contents, None where there is no file; `change` joins
    the rows of one act; `first` and `last` number the events of `session` that it came from; `key` is the call that
    asked, empty where none did; `undoes` the version that it takes back; `folder` is the category of a skill; a
    `private` change is of what this home alone has, such as an installed skill."""

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
    """What stands behind a change that nobody asked for in so many words: the events `first` to `last` of the
    conversation that it came from, its evidence as JSON, what of it is from outside, what it cost (US dollars), a note.
    `approved` says that the owner, or other conversations, want it whatever it changes."""

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
    """A change as it stands in the ledger, under its number."""

    id: int
    state: VersionState
    change: Change


class Overtaken(HermesError):
    """Another home changed this in the meantime."""


class Versions(Tables):
    """Rows are written once and never removed; only their state is settled. `machine` is the id of the copy of
    the home that writes them, empty where the database is its own."""

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
        """Write a row; its number. Raises `Overtaken` where another one `follows` that version (0: the first)."""
        whose = (storable(change.principal), change.session, change.first, change.last, change.action, change.key)
        more = (change.undoes, change.evidence, change.taint, change.cost, change.note, change.folder)
        hashes = [await self._kept(tx, body) for body in (change.before, change.after)]
        item = (change.change, change.kind.value, storable(change.item), change.at, change.author.value)
        # Locked, so that the one before is not dropped meanwhile.
        stands = not follows or await tx.holds(STANDS, follows)
        place = (int(change.private), *hashes, state.value, self.machine, follows)
        row = await tx.row(INSERT, *item, *whose, *more, *place) if stands else None
        if row is None:
            raise Overtaken(f"{change.item} was changed meanwhile: nothing was written.")
        return int(row[0])

    async def complete(self, tx: Transaction, version: int, state: VersionState) -> None:
        """Say what became of an intended change; what is settled stays."""
        await tx.run(SETTLE, version, state.value)

    async def drop(self, tx: Transaction, version: Version) -> bool:
        """Take back a change that was intended alone; False where another home has built upon it."""
        if await tx.holds(STANDS, version.id):
            if await tx.row(FOLLOWED, version.id, version.change.kind.value, storable(version.change.item)):
                return False
            await tx.run(SETTLE, version.id, VersionState.DROPPED.value)
        return True

    async def get(self, version: int) -> Version | None:
        """The version of that number."""
        return await self._one(_version, GET, version)

    async def by_key(self, key: str) -> Version | None:
        """What the call of that key did, where it was done."""
        return await self._one(_version, BY_KEY, key)

    async def latest(self, kind: Kind, item: str, *, mine: bool = False, private: bool = False) -> Version | None:
        """The newest version of an item; it may be intended only. With `mine` of those that this home made, with
        `private` of what it alone has."""
        if private or mine:
            return await self._one(
                _version, LATEST.format(mine="AND machine = $4 "), kind.value, item, int(private), self.machine
            )
        return await self._one(_version, LATEST.format(mine=""), kind.value, item, 0)

    async def heads(self, kind: Kind) -> dict[str, int]:
        """The number of the newest version of each item, of those that every home shows."""
        return {row[0]: row[1] for row in await self._engine.read(lambda tx: tx.rows(HEADS, kind.value))}

    async def holds(self, kind: Kind, item: str, after: int, content: bytes | None) -> bool:
        """Whether a version later than `after` left that content."""
        found = hash_of(content)
        return await self._engine.read(lambda tx: tx.row(HOLDING, kind.value, item, after, found)) is not None

    async def of_session(self, session: str, author: Author) -> tuple[Version, ...]:
        """What this author changed because of a conversation, the newest first."""
        return tuple(
            _version(row) for row in await self._engine.read(lambda tx: tx.rows(BY_SESSION, session, author.value))
        )

    async def list(
        self, kind: Kind | None = None, item: str = "", *, limit: int = 50, before: int = LAST_ID
    ) -> list[Version]:
        """The newest first; `before` is the last number of the page before."""
        return [
            _version(row)
            for row in await self._engine.read(
                lambda tx: tx.rows(LIST, kind.value if kind else "", item, before, limit)
            )
        ]

    async def items(self, kind: Kind) -> tuple[str, ...]:
        """All items of that kind that ever were."""
        return tuple(row[0] for row in await self._engine.read(lambda tx: tx.rows(ITEMS, kind.value)))

    async def undone(self, version: int) -> bool:
        """Whether a later version took it back."""
        return await self._engine.read(lambda tx: tx.row(UNDONE, version)) is not None

    async def _kept(self, tx: Transaction, body: bytes | None) -> str | None:
        if body is None:
            return None
        found = hash_of(body)
        await tx.run(KEEP, found, body)
        return found


def hash_of(content: bytes | None) -> str:
    """The name of a content; empty where there is none."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _version(row: Row) -> Version:
    number, state, change, kind, item, at, author, principal, *rest = row
    session, first, last, action, key, undoes, evidence, taint, cost, note, folder, private, before, after = rest
    return Version(
        id=number,
        state=VersionState(state),
        change=Change(
            kind=Kind(kind),
            item=item,
            at=at,
            author=Author(author),
            action=action,
            before=None if before is None else bytes(before),
            after=None if after is None else bytes(after),
            change=change,
            principal=principal,
            session=session,
            first=first,
            last=last,
            key=key,
            undoes=undoes,
            evidence=evidence,
            taint=taint,
            cost=cost,
            note=note,
            folder=folder,
            private=bool(private),
        ),
    )
