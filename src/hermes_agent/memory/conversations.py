"""Searches, lists and pages past conversations for the model, only those that the current person may see."""

from __future__ import annotations

from collections.abc import Iterable

from hermes_agent.core.chat import Conversation
from hermes_agent.core.clock import moment
from hermes_agent.core.errors import UnknownSession
from hermes_agent.store.database import Store
from hermes_agent.store.finding.ranking import Spoken, marked
from hermes_agent.store.search import Found, Scope
from hermes_agent.store.sessions import Session

EACH = 3
BEFORE = 3
PAGE_MESSAGES = 60
PAGE_CHARACTERS = 8000
LONGEST_MESSAGE = 1500
OPENING = 120


class Conversations:
    """Past conversations that one session may search: in a private conversation all sessions of its principal, in a
    shared one only the sessions of that conversation."""

    def __init__(self, store: Store, session: str, speaker: str) -> None:
        self._store, self._session, self._speaker = store, session, speaker

    async def discover(self, query: str, limit: int) -> str:
        """The best sessions for these words; the latest ones where none matches."""
        found = await self._store.search.discover(query, await self._scope(), limit=limit, each=EACH)
        if found:
            return "\n\n".join([await self._found(each) for each in found])
        return f"No message contains these words. The latest conversations:\n\n{await self.browse(limit)}"

    async def browse(self, limit: int) -> str:
        """The latest sessions with their first words."""
        lines = []
        for name in await self._store.search.recent(await self._scope(), limit):
            opening = await self._store.search.read(name, 1, 0, 1)
            said = "".join(f"\n  {_line(each, OPENING)}" for each in opening)
            lines.append(await self._head(name) + said)
        return "\n".join(lines) or "There are no conversations yet."

    async def read(self, session: str, around: int) -> str:
        """A page of a session: from its start, or from a little before message `around`. Raises `UnknownSession` for
        a session that does not exist or is out of scope."""
        record = await self._own(session)
        spoken = await self._store.search.read(record.id, around, BEFORE if around else 0, PAGE_MESSAGES)
        page, rest = _page(spoken, around)
        head = await self._head(record.id)
        if not page:
            return f"{head}\nNothing was said in it."
        more = len(spoken) >= PAGE_MESSAGES or bool(rest)
        onward = f"\nMore follows: around={page[-1].number + 1}." if more else "\nThe end."
        lines = [_line(each, PAGE_CHARACTERS if each.number == around else LONGEST_MESSAGE) for each in page]
        return "\n".join([head, *lines]) + onward

    async def _scope(self) -> Scope:
        record = await self._store.sessions.get(self._session)
        if record is None:
            return Scope(principal=self._speaker or "nobody")
        if Conversation.parse(record.conversation).is_private and self._speaker in ("", record.principal):
            return Scope(principal=record.principal)
        return Scope(conversation=record.conversation)

    async def _own(self, session: str) -> Session:
        scope = await self._scope()
        record = await self._store.sessions.find(session, scope.principal or None)
        if scope.conversation and record.conversation != scope.conversation:
            raise UnknownSession(f'No session of this conversation has the id or title "{session}".')
        return record

    async def _found(self, found: Found) -> str:
        hits = "".join(
            f"\n  #{hit.number} {moment(hit.at)} {hit.role.value}: {marked(hit.snippet, hit.marks)}"
            for hit in found.hits
        )
        return await self._head(found.session) + hits

    async def _head(self, session: str) -> str:
        record = await self._store.sessions.get(session)
        if record is None:
            return f"session {session}"
        title = f" “{record.title}”" if record.title else ""
        here = " (this conversation)" if session == self._session else ""
        return f"session {session}{title}{here}, {moment(record.created)} to {moment(record.updated)}"


def _page(spoken: Iterable[Spoken], around: int) -> tuple[list[Spoken], list[Spoken]]:
    page: list[Spoken] = []
    rest: list[Spoken] = []
    room = PAGE_CHARACTERS
    for each in spoken:
        room -= min(len(each.text), LONGEST_MESSAGE)
        # What was asked for is on the page, however long the messages before it are.
        (page if room >= 0 or not page or each.number <= around else rest).append(each)
    return page, rest


def _line(spoken: Spoken, longest: int) -> str:
    left_out = len(spoken.text) - longest
    text = f"{spoken.text[:longest]} [{left_out:,} characters more]" if left_out > 0 else spoken.text
    return f"#{spoken.number} {moment(spoken.at)} {spoken.role.value}: {text}"
