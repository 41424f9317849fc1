"""Operations on sessions: find, list, read, search, rename, branch, resume and delete. Sessions of other people are
reported as missing; the owner reaches all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_agent.app.intake import without_files
from hermes_agent.core.errors import HermesError, UnknownSession
from hermes_agent.core.events import Entry
from hermes_agent.core.inbound import Conversation
from hermes_agent.host.late import late
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.sessions import Stats

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem
    from hermes_agent.app.system import System
    from hermes_agent.store.search import Hit as Hit

__all__ = ("Hit", "SessionRecord", "Stats")

SCOPE = "hermes_agent.store.search:Scope"
SESSION = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6}")
PAGE = 200
"""Sessions that are read at a time, and of which those of one chat are listed."""


async def get_session(access: Access[HomeSystem], session: str) -> SessionRecord:
    """The session of that id. Raises `UnknownSession`."""
    record = await access.system.store.sessions.get(session) if SESSION.fullmatch(session) else None
    if record is None or not (access.sees_all or record.principal == access.who.key):
        raise UnknownSession(f"There is no session {session} of yours.")
    return record


async def find_session(access: Access[HomeSystem], name: str) -> SessionRecord:
    """The session with this id, title or unique prefix; from a conversation, only the person's own. Raises
    `UnknownSession` with suggestions."""
    own = access.where is not None or not access.sees_all
    return await access.system.store.sessions.find(name, access.who.key if own else None)


async def current_session(system: HomeSystem, conversation: Conversation) -> SessionRecord | None:
    """The session that a conversation's next message goes to. No access check."""
    return await system.store.sessions.current(conversation.key)


async def list_sessions(access: Access[HomeSystem], limit: int, before: str = "") -> list[SessionRecord]:
    """Sessions, most recently used first; `before` is the last one of the previous page. From a conversation: the
    person's own, and if others read along, those of that chat. Raises `UnknownSession`."""
    last = await get_session(access, before) if before else None
    own = access.where is not None or not access.sees_all
    is_read_by_others = access.where is not None and not access.where.is_private
    most = PAGE if is_read_by_others else limit
    records = await access.system.store.sessions.list(access.who.key if own else None, most, last)
    return [record for record in records if not is_read_by_others or is_of(access, record)][:limit]


def is_of(access: Access[HomeSystem], record: SessionRecord) -> bool:
    """Whether a session can be continued from here: in a gateway chat only those of that chat, where their replies
    go."""
    where = access.where
    if where is None or where.platform not in access.system.settings.gateway.channels:
        return True
    return Conversation.parse(record.conversation).place == where.place


async def read_log(access: Access[HomeSystem], session: str, after: int = 0, limit: int | None = None) -> list[Entry]:
    """The log of a session after a number. Raises `UnknownSession`."""
    await get_session(access, session)
    return await access.system.store.history.entries(session, after, limit)


async def read_session(access: Access[HomeSystem], name: str) -> tuple[SessionRecord, list[Entry]]:
    """Find a session by name and read its log. Raises `UnknownSession`."""
    found = await find_session(access, name)
    return found, await access.system.store.history.entries(found.id)


async def search_messages(access: Access[HomeSystem], words: str, limit: int) -> list[Hit]:
    """Full-text search over messages, best match first."""
    scope = late(SCOPE)(principal="" if access.sees_all else access.who.key)
    return await access.system.store.search.search(words, scope, limit)


async def rename_session(access: Access[HomeSystem], session: str, title: str) -> SessionRecord:
    """Change the title of a session. Raises `UnknownSession`."""
    await get_session(access, session)
    await (access.system.hermes or access.system.store.sessions).rename(session, title)
    return await get_session(access, session)


async def delete_session(access: Access[HomeSystem], session: str) -> None:
    """Delete a session with its log and files; a running run is stopped first. Raises `UnknownSession`."""
    await get_session(access, session)
    store, hermes = access.system.store, access.system.hermes
    if hermes is not None:
        await hermes.stop(session, "The session is deleted.")
    async with without_files(store, access.system.home, session):
        await store.sessions.delete(session)


async def count_unused(access: Access[HomeSystem], before: float) -> int:
    """Number of sessions last used before that time."""
    last, count = None, 0
    while page := await access.system.store.sessions.list(limit=PAGE, before=last):
        count += sum(record.updated < before for record in page)
        last = page[-1]
    return count


async def prune_sessions(access: Access[HomeSystem], before: float) -> tuple[str, ...]:
    """Delete idle sessions last used before that time. Returns their ids. Owner only."""
    access.check_owner("Only the owner deletes everybody's sessions.")
    async with without_files(access.system.store, access.system.home):
        return await access.system.store.sessions.prune(before)


async def session_stats(access: Access[HomeSystem]) -> Stats:
    """Numbers and sizes of stored data. Owner only."""
    access.check_owner("Only the owner sees how much is kept.")
    return await access.system.store.sessions.stats()


async def branch_session(
    access: Access[System], session: str, title: str = "", upto: int | None = None
) -> SessionRecord:
    """Copy a session up to one of its events. Raises `UnknownSession`."""
    return await access.system.hermes.branch(await get_session(access, session), title, upto)


async def start_session(
    access: Access[System], where: Conversation, like: SessionRecord, title: str = ""
) -> SessionRecord:
    """Start a session in a conversation, with the folder and model of another one."""
    hermes = access.system.hermes
    record = await hermes.open_session(where, access.who, workspace=like.workspace, model=like.model, new=True)
    if title:
        await hermes.rename(record.id, title)
    return record


async def resume_session(access: Access[System], where: Conversation, name: str) -> SessionRecord:
    """Make an earlier session current in a conversation and resume it. Raises `HermesError` for one of another chat."""
    record, hermes = await find_session(access, name), access.system.hermes
    if not is_of(access, record):
        raise HermesError("That session belongs to another chat, where its replies go. Continue it there.")
    await hermes.make_current(where, record.id)
    await hermes.resume(record.id)
    return record
