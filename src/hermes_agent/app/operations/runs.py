"""Operations on runs: read their logs and results, undo messages, and resume."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from hermes_agent.app.settings import SERVED
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Durable, Entry, MessageTaken, Outcome, RunEnded, Undone
from hermes_agent.core.ids import RandomIds
from hermes_agent.core.inbound import Conversation, Inbound, Principal
from hermes_agent.core.messages import Role

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem
    from hermes_agent.app.operations.sessions import SessionRecord
    from hermes_agent.app.system import System
    from hermes_agent.store.inbox import Mail as Mail


async def was_cut_short(system: HomeSystem, session: str) -> bool:
    """Whether the session's last run ended without an answer: stopped, failed, or at a limit."""
    entries = await system.store.history.entries(session)
    ends = [entry.event for entry in entries if isinstance(entry.event, RunEnded)]
    return bool(ends) and ends[-1].outcome is not Outcome.ANSWERED


async def run_cost(system: HomeSystem, session: str, run: str) -> float | None:
    """A run's cost in US dollars; None if a price is unknown."""
    costs = [row.cost for row in await system.store.usage.rows(session) if row.run == run]
    return None if None in costs else sum(filter(None, costs))


async def resume_run(access: Access[HomeSystem], record: SessionRecord) -> bool:
    """Hand a session back to the gateway to continue; False if its last run ended normally."""
    store = access.system.store
    if await store.lanes.insist(record.id):
        return True
    if not await was_cut_short(access.system, record.id):
        return False
    platform, _, user = record.principal.partition(":")
    inbound = Inbound(
        source="cli",
        source_id=RandomIds().short(),
        principal=Principal(platform=platform, user=user),
        conversation=Conversation.parse(record.conversation),
        parts=(),
        received=access.system.clock.now(),
        resumes=True,
    )
    return await store.inbox.accept(inbound, record.id, SERVED) is not None


async def undo_messages(access: Access[System], session: str, count: int = 1) -> list[Entry]:
    """Undo a person's last messages with everything after them. Returns the undone entries, oldest first; the log
    keeps all. Raises `HermesError` if there are none, or during a run."""
    said: list[Entry] = []
    async for page in access.system.store.history.pages(session):
        for entry in page:
            match entry.event:
                case MessageTaken(message=message, inbox=inbox) if message.role is Role.USER and inbox:
                    said.append(entry)
                case Undone(to=to):
                    said = [each for each in said if each.number <= to]
                case _:
                    pass
    if not (undone := said[-count:]):
        raise HermesError("There is nothing to undo.")
    async with access.system.hermes.holding(session) as journal:
        await journal.commit(Undone(to=undone[0].number - 1))
    return undone


async def log_of(system: HomeSystem, session: str, after: int = 0) -> list[Entry]:
    """The log of a session after a number. The caller has checked access."""
    return await system.store.history.entries(session, after)


async def run_log(system: HomeSystem, session: str, run: str, after: int = 0) -> AsyncIterator[Entry]:
    """Iterate the events of one run after a number, without reading the rest of the log."""
    async for page in system.store.history.of_run(session, run, after):
        for entry in page:
            if entry.run == run:
                yield entry


def mail_log(system: HomeSystem, session: str, row: int) -> AsyncIterator[Sequence[Entry]]:
    """The part of a log, in pages, that can hold the run which handled this inbox row."""
    return system.store.history.of_mail(session, row)


async def last_number(system: HomeSystem, session: str) -> int:
    """The number of the last event of a log; 0 where there is none."""
    return await system.store.history.last_number(session)


async def begin_with(system: System, session: str, events: Sequence[Durable]) -> None:
    """Write earlier messages into a session that has no log yet."""
    async with system.hermes.holding(session) as journal:
        if not journal.session.number:  # Another process may have begun it meanwhile.
            await journal.commit(*events)


async def mail_at(system: HomeSystem, row: int) -> Mail | None:
    """The state of an inbox row."""
    return await system.store.inbox.at(row)


async def find_mail(system: HomeSystem, source: str, source_id: str) -> tuple[Mail | None, str]:
    """The state of the message with this source id (None: unknown), and its content digest."""
    mail = await system.store.inbox.find(source, source_id)
    return mail, "" if mail is None else await system.store.inbox.digest(mail.id)


async def has_other_mail(system: HomeSystem, session: str, row: int) -> bool:
    """Whether the session has other unfinished inbox rows."""
    return await system.store.inbox.has_other(session, row)
