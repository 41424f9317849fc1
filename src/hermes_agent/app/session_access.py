"""What a surface that serves many people does with sessions: each person reaches their own, the owner all."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from hermes_agent.app.intake.session_files import without_files
from hermes_agent.app.system import System
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import StoreError, UnknownSession
from hermes_agent.core.events import Entry
from hermes_agent.core.inbound import Conversation, Principal, Standing
from hermes_agent.core.outbound import Letter
from hermes_agent.skills.occasion import Occasion
from hermes_agent.skills.skill import SkillHeader
from hermes_agent.store.inbox import Mail
from hermes_agent.store.search import Hit, Scope
from hermes_agent.store.sessions import Session as SessionRecord

__all__ = ["Entry", "Hit", "Mail", "SessionAccess", "SessionRecord", "SkillHeader", "deliver_once", "retried"]

STORE_PAUSE, MOST_FAILURES = 1.0, 600
"""Seconds until something is tried again for which the store failed, and how often it may in all."""
SESSION = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAccess:
    """One person at this system. Another person's session is told of like one that is not there."""

    runtime: System
    who: Principal

    @property
    def sees_all(self) -> bool:
        """Whether every session is theirs to see."""
        return self.who.standing is Standing.OWNER

    async def session(self, session: str) -> SessionRecord:
        """The session of that id. Raises `UnknownSession`."""
        record = await self.runtime.store.sessions.get(session) if SESSION.fullmatch(session) else None
        if record is None or not (self.sees_all or record.principal == self.who.key):
            raise UnknownSession(f"There is no session {session} of yours.")
        return record

    async def sessions(self, limit: int, before: str = "") -> list[SessionRecord]:
        """The most recently used first; `before` is the last one of the page before. Raises `UnknownSession`."""
        last = await self.session(before) if before else None
        return await self.runtime.store.sessions.list(None if self.sees_all else self.who.key, limit, last)

    async def entries(self, session: str, after: int = 0, limit: int | None = None) -> list[Entry]:
        """The log of a session from a number on. Raises `UnknownSession`."""
        await self.session(session)
        return await self.runtime.store.history.entries(session, after, limit)

    async def search(self, words: str, limit: int) -> list[Hit]:
        """Messages that hold these words, the best first."""
        scope = Scope(principal="" if self.sees_all else self.who.key)
        return await self.runtime.store.search.search(words, scope, limit)

    async def rename(self, session: str, title: str) -> SessionRecord:
        """Give a session another title. Raises `UnknownSession`."""
        await self.session(session)
        await self.runtime.hermes.rename(session, title)
        return await self.session(session)

    async def delete(self, session: str) -> None:
        """Remove a session with its log and files; a run of it is stopped first. Raises `UnknownSession`."""
        await self.session(session)
        await self.runtime.hermes.stop(session, "The session is deleted.")
        async with without_files(self.runtime.store, self.runtime.home, session):
            await self.runtime.store.sessions.delete(session)

    async def branch(self, session: str, title: str = "", upto: int | None = None) -> SessionRecord:
        """A copy of a session up to one of its events. Raises `UnknownSession`."""
        return await self.runtime.hermes.branch(await self.session(session), title, upto)

    async def skills(self, limit: int) -> Sequence[SkillHeader]:
        """The skills, by name: a guest is shown none, the owner all, others what is for where they speak."""
        if self.who.standing is Standing.GUEST:
            return ()
        here = None if self.sees_all else Occasion.at(Conversation(platform=self.who.platform, chat_kind="chat").key)
        return await self.runtime.skills.library.all(occasion=here, limit=limit)

    async def mail(self, row: int) -> Mail | None:
        """Where the message of that row of the inbox stands."""
        return await self.runtime.store.inbox.at(row)


async def deliver_once(runtime: System, letter: Letter) -> bool:
    """Have something said; False where it was said, or is to be, already."""
    if await runtime.store.outbox.find(letter.key) is not None:
        return False
    await runtime.store.write(lambda tx: runtime.store.outbox.put(tx, letter))
    return True


async def retried(work: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Do what nobody waits for any more, from its beginning where the store fails meanwhile. Raises `StoreError` where
    that does not pass."""
    failures = 0
    while True:
        try:
            return await work()
        except StoreError:
            failures += 1
            if failures == MOST_FAILURES:
                raise
        await clock.sleep(STORE_PAUSE)
