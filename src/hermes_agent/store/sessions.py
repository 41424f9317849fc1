"""Table of sessions: principal, conversation, title, and which session is current in a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import UnknownSession
from hermes_agent.store.transaction import (
    Columns,
    Dialect,
    Has,
    One,
    Row,
    TimedTables,
    Transaction,
    Within,
    Write,
    marks,
    storable,
)

FIELDS = "id, principal, conversation, surface, title, model, workspace, created, updated, parent, prefix, job"
CREATE = f"INSERT INTO session (home, {FIELDS}) VALUES ($home, {marks(12, 1)}) ON CONFLICT (id) DO NOTHING"
GET = f"SELECT {FIELDS} FROM session WHERE id = $1 AND home = $home AND deleted IS NULL"
CURRENT = (
    f"SELECT {FIELDS} FROM session WHERE deleted IS NULL "
    "AND id = (SELECT session FROM current_session WHERE home = $home AND conversation = $1)"
)
SPOKEN = (
    "SELECT 1 FROM current_session JOIN session ON session.id = current_session.session WHERE session.deleted IS NULL "
    "AND current_session.home = $home AND substr(current_session.conversation, 1, $1) IN ($2, $3, $4) LIMIT 1"
)
SET_CURRENT = (
    "INSERT INTO current_session (home, conversation, session) VALUES ($home, $1, $2) "
    "ON CONFLICT (home, conversation) DO UPDATE SET session = excluded.session"
)
SET_FIRST = (
    "INSERT INTO current_session (home, conversation, session) VALUES ($home, $1, $2) "
    "ON CONFLICT (home, conversation) DO NOTHING"
)
DROP_DELETED = (
    "DELETE FROM current_session WHERE home = $home AND conversation = $1 "
    "AND NOT EXISTS (SELECT 1 FROM session WHERE id = current_session.session AND deleted IS NULL)"
)
LIST_ALL = (
    f"SELECT {FIELDS} FROM session WHERE home = $home AND deleted IS NULL AND (updated, id) < ($1, $2) "
    "ORDER BY updated DESC, id DESC LIMIT $3"
)
LIST_OWN = (
    f"SELECT {FIELDS} FROM session WHERE home = $home AND deleted IS NULL AND principal = $4 AND (updated, id) < ($1, "
    "$2) "
    "ORDER BY updated DESC, id DESC LIMIT $3"
)
LIST_BUSY = (
    f"SELECT {FIELDS} FROM session WHERE home = $home AND deleted IS NULL AND (CAST($1 AS TEXT) = '' OR principal = "
    "$1) "
    "AND EXISTS (SELECT 1 FROM inbox WHERE inbox.lane = session.id AND inbox.ended IS NULL) ORDER BY updated DESC, id"
)
BY_TITLE = (
    f"SELECT {FIELDS} FROM session WHERE home = $home AND deleted IS NULL AND lower(title) = lower($1) "
    "AND (CAST($2 AS TEXT) = '' OR principal = $2) ORDER BY updated DESC LIMIT 1"
)
BY_PREFIX = (
    f"SELECT {FIELDS} FROM session WHERE home = $home AND deleted IS NULL AND (CAST($2 AS TEXT) = '' OR principal = "
    "$2) "
    "AND (substr(id, 1, $3) = $1 OR substr(lower(title), 1, $3) = lower($1)) ORDER BY updated DESC LIMIT 4"
)
NAMES = (
    "SELECT id, title FROM session WHERE home = $home AND deleted IS NULL AND (CAST($1 AS TEXT) = '' OR principal = "
    "$1) "
    "ORDER BY updated DESC LIMIT 1000"
)
RENAME = "UPDATE session SET title = $2, updated = $3 WHERE id = $1 AND home = $home AND deleted IS NULL"
ENTITLE = "UPDATE session SET title = $2 WHERE id = $1 AND home = $home AND title = '' AND deleted IS NULL"
SET_PREFIX = "UPDATE session SET prefix = $2 WHERE id = $1"
SET_MODEL = "UPDATE session SET model = $2 WHERE id = $1 AND home = $home"
DELETE = (
    "UPDATE session SET deleted = $2, title = '' WHERE id = $1 AND home = $home AND deleted IS NULL",
    "INSERT INTO removal (session) VALUES ($1)",
    "DELETE FROM current_session WHERE session = $1",
    "DELETE FROM entry WHERE session = $1",
    "DELETE FROM run WHERE session = $1",
    "DELETE FROM exposure WHERE session = $1",
    "DELETE FROM episode WHERE session = $1",
    "DELETE FROM mandate WHERE session = $1",
    "DELETE FROM child WHERE session = $1",
    # Goals outlive their session, and wait for another one.
    "UPDATE goal SET session = '', state = CASE WHEN state IN ('active', 'checking', 'waiting') THEN 'paused' "
    "ELSE state END WHERE session = $1 AND home = $home AND ended IS NULL",
    "UPDATE goal_round SET state = 'dropped', ended = $2 WHERE session = $1 AND home = $home AND ended IS NULL",
    "DELETE FROM learning_count WHERE session = $1",
    "DELETE FROM learning_support WHERE session = $1",
    "UPDATE learning_job SET state = 'dropped', ended = $2 WHERE session = $1 AND ended IS NULL",
    # What this conversation alone supports is taken back by whoever comes next.
    "INSERT INTO learning_job (home, id, kind, session, principal, what, first, last, state, epoch, attempts, created, "
    "calls, input, cached, output, kept, waiting, refused, told, note) SELECT $home, CAST($1 AS TEXT) || '.retract', "
    "'retract', $1, '', '', 0, 0, 'queued', 0, 0, $2, 0, 0, 0, 0, 0, 0, 0, 1, '' "
    "WHERE EXISTS (SELECT 1 FROM version WHERE session = $1 AND author = 'background') "
    "OR EXISTS (SELECT 1 FROM learning_proposal WHERE session = $1 AND ended IS NULL) ON CONFLICT (id) DO NOTHING",
    "DELETE FROM effect WHERE session = $1",
    "DELETE FROM lane WHERE id = $1",
    # The identity of each message stays, so that one that is delivered again still counts once.
    "UPDATE inbox SET state = 'refused', reason = 'The session was deleted.', ended = $2 "
    "WHERE lane = $1 AND ended IS NULL",
    "UPDATE inbox SET body = '' WHERE lane = $1",
)
IDLE = (
    "SELECT id FROM session WHERE home = $home AND deleted IS NULL AND updated < $1 AND (CAST($2 AS TEXT) = '' OR "
    "principal = $2) "
    "AND NOT EXISTS (SELECT 1 FROM lane WHERE lane.id = session.id AND (owner IS NOT NULL OR pending > 0)) "
    "AND NOT EXISTS (SELECT 1 FROM child WHERE child.parent = session.id AND child.state <> 'ended') ORDER BY id"
)
COUNTS = (
    "SELECT surface, count(*) FROM session WHERE home = $home AND deleted IS NULL GROUP BY surface ORDER BY surface"
)
ENTRIES = "SELECT count(*) FROM entry"
SIZE = {
    Dialect.SQLITE: "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    Dialect.POSTGRES: "SELECT pg_database_size(current_database())",
}
HAS_GOALS = "SELECT 1 FROM goal WHERE home = $home AND principal = $1 AND ended IS NULL LIMIT 1"
LAST_TIME = 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The row of a session. `principal` and `conversation` are keys; times are seconds since 1970; `parent` is the
    session that it was branched from; `prefix` the hash of its prompt prefix; `job` groups runs that share limits
    (empty: none)."""

    id: str
    principal: str
    conversation: str
    surface: str
    created: float
    updated: float
    title: str = ""
    model: str = ""
    workspace: str = ""
    parent: str = ""
    prefix: str = ""
    job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Size of the store: sessions (also per surface), log entries, and the database's size in bytes."""

    sessions: int
    entries: int
    bytes: int
    surfaces: Mapping[str, int]


session_of = Columns(Session, FIELDS)


class Sessions(TimedTables):
    """Table of sessions. A deleted session is not found any more; its usage rows stay."""

    async def create(self, tx: Transaction, session: Session) -> None:
        """Add a session; an existing id keeps its row."""
        await tx.run(CREATE, *session_of.of(session))

    get = One[[str], Session](GET, session_of, brief=True)
    """The session of that id."""
    current = One[[str], Session](CURRENT, session_of, brief=True)
    """The session that gets the next message of this conversation."""
    has_goals = Has[[str]](HAS_GOALS, brief=True)
    """Whether a person has open goals; here, so that nothing else of goals is loaded for a session without."""
    entitle = Write[[str, str]](ENTITLE)
    """Set the title of a session without one; does not count as a use."""
    set_prefix = Within[[str, str]](SET_PREFIX)
    """Set the prompt prefix of its requests."""
    set_model = Write[[str, str]](SET_MODEL)
    """Set the model of its requests."""

    async def spoken_in(self, place: str) -> bool:
        """Whether the conversation of that key, or one within it, has a session."""
        keys = (place, f"{place}:", f"{place}#")
        return await self._engine.read(lambda tx: tx.row(SPOKEN, len(place) + 1, *keys)) is not None

    async def set_current(self, tx: Transaction, conversation: str, session: str, *, only: bool = False) -> bool:
        """Make `session` the current one of a conversation; with `only`, False where there is one already."""
        if only:
            await tx.run(DROP_DELETED, conversation)
        return await tx.run(SET_FIRST if only else SET_CURRENT, conversation, session) > 0

    async def list(
        self, principal: str | None = None, limit: int = 50, before: Session | None = None, *, busy: bool = False
    ) -> list[Session]:
        """The most recently used first; `before` is the last session of the previous page. With `busy`, exactly
        those with unanswered mail."""
        updated, last = (before.updated, before.id) if before else (LAST_TIME, "")

        async def query(tx: Transaction) -> list[Row]:
            if busy:
                return await tx.rows(LIST_BUSY, principal or "")
            if principal is None:
                return await tx.rows(LIST_ALL, updated, last, limit)
            return await tx.rows(LIST_OWN, updated, last, limit, principal)

        return [session_of(row) for row in await self._engine.read(query)]

    async def find(self, name: str, principal: str | None = None) -> Session:
        """The session with that id or title, or a unique prefix of one. Raises `UnknownSession`, which names the
        nearest."""
        owner = principal or ""

        async def query(tx: Transaction) -> list[Row]:
            row = await tx.row(GET, name)
            if row is not None and owner in ("", row[1]):
                return [row]
            row = await tx.row(BY_TITLE, name, owner)
            return [row] if row is not None else await tx.rows(BY_PREFIX, name, owner, len(name))

        rows = await self._engine.read(query) if name else []
        if len(rows) == 1:
            return session_of(rows[0])
        if rows:
            several = ", ".join(_label(row[0], row[4]) for row in rows)
            raise UnknownSession(f'Several sessions begin with "{name}": {several}. Give more of the id.')
        raise UnknownSession(await self._nobody(name, owner))

    async def rename(self, session: str, title: str, at: float | None = None) -> None:
        """Set the title, as of `at` (None: now). Raises `UnknownSession`."""
        now = self._clock.now() if at is None else at
        if not await self._engine.write(lambda tx: tx.run(RENAME, session, storable(title), now)):
            raise UnknownSession(await self._nobody(session, ""))

    async def delete(self, session: str, also: Callable[[Transaction], Awaitable[None]] | None = None) -> bool:
        """Delete the session's log, effects and mail, with what `also` changes; a current worker loses its lease. False
        where there is no such session."""
        now = self._clock.now()

        async def change(tx: Transaction) -> bool:
            if also is not None:
                await also(tx)
            return await _delete(tx, session, now)

        return await self._engine.write(change)

    async def prune(self, unused_since: float, principal: str | None = None) -> tuple[str, ...]:
        """Delete the sessions unused since that time that have no mail or run; returns their ids."""
        now = self._clock.now()

        async def change(tx: Transaction) -> tuple[str, ...]:
            rows = await tx.rows(IDLE, unused_since, principal or "")
            return tuple([row[0] for row in rows if await _delete(tx, row[0], now)])

        return await self._engine.write(change)

    async def stats(self) -> Stats:
        """Size of the whole store."""

        async def query(tx: Transaction) -> Stats:
            surfaces = {row[0]: row[1] for row in await tx.rows(COUNTS)}
            entries, size = await tx.rows(ENTRIES), await tx.rows(SIZE[tx.dialect])
            return Stats(sessions=sum(surfaces.values()), entries=entries[0][0], bytes=size[0][0], surfaces=surfaces)

        return await self._engine.read(query)

    async def _nobody(self, name: str, owner: str) -> str:
        rows = await self._engine.read(lambda tx: tx.rows(NAMES, owner))
        labels = {key: _label(row[0], row[1]) for row in rows for key in (row[1].lower(), row[0]) if key}
        near = list(dict.fromkeys(labels[key] for key in get_close_matches(name.lower(), labels, n=3, cutoff=0.5)))
        hint = f" Did you mean {' or '.join(near)}?" if near else " See: hermes sessions list"
        return f'No session has the id or title "{name}".{hint}'


async def _delete(tx: Transaction, session: str, now: float) -> bool:
    mark, *rest = DELETE
    if not await tx.run(mark, session, now):
        return False
    for sql in rest:
        await tx.run(sql, *((session, now) if "$2" in sql else (session,)))
    return True


def _label(session: str, title: str) -> str:
    return f'{session} ("{title}")' if title else session
