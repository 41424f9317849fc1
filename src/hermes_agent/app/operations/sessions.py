"""Operations on sessions: find, list, read, search, rename, copy and delete them, undo messages, resume runs, and show
prompts. Another person's session is reported as missing; the owner reaches all."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Literal

from hermes_agent.app.intake import without_files
from hermes_agent.app.operations.access import Access, HomeSystem
from hermes_agent.app.settings import SERVED
from hermes_agent.core.chat import Conversation, Inbound, Principal
from hermes_agent.core.clock import RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, UnknownSession
from hermes_agent.core.events import Delegated, Durable, Entry, MessageTaken, Outcome, Replied, RunEnded, Undone
from hermes_agent.core.messages import Message, Role, ToolSchema
from hermes_agent.core.section import Section, estimate_tokens, short_hash, tools_text
from hermes_agent.core.shown import words_of
from hermes_agent.core.tool import Quarantined
from hermes_agent.host.late import late
from hermes_agent.store.sessions import Session as SessionRecord, Stats
from hermes_agent.store.usage import GroupBy

if TYPE_CHECKING:
    from hermes_agent.app.operations.sessions import SessionRecord
    from hermes_agent.app.system import System
    from hermes_agent.store.inbox import Mail as Mail
    from hermes_agent.store.search import Hit as Hit
    from hermes_agent.store.transaction import Transaction

__all__ = ("Hit", "SessionRecord", "Stats")

SCOPE = "hermes_agent.store.search:Scope"
SESSION = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6}")
PAGE = 200
"""Sessions that are read at a time, and of which those of one chat are listed."""
FIRST_ENTRIES = 8
LONGEST_WORDS, LONGEST_TITLE = 200, 1_000
DELETED, UNDONE = "The session is deleted.", "What started it was undone."


async def get_session(access: Access[HomeSystem], session: str) -> SessionRecord:
    """The session of that id. Raises `UnknownSession`."""
    record = await access.system.store.sessions.get(session) if SESSION.fullmatch(session) else None
    if record is None or not (access.sees_all or record.principal == access.who.key):
        raise UnknownSession(f"There is no session {session[:80]} of yours.")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A session with the first words that were said in it, its number of messages, and its cost in US dollars (None:
    unknown)."""

    record: SessionRecord
    words: str
    messages: int
    calls: int
    cost: float | None

    @property
    def name(self) -> str:
        """Its title, or what was said first."""
        return self.record.title or self.words or "(nothing said)"

    @property
    def price(self) -> str:
        """The cost as text; empty where no model was asked or the cost is unknown."""
        return f"${self.cost:.2f}" if self.cost is not None and self.calls else ""


async def summarize_sessions(access: Access[HomeSystem], limit: int) -> list[SessionSummary]:
    """The person's sessions as `list_sessions` gives them, each with its first words and cost."""
    store = access.system.store
    totals = {each.key: each for each in await store.usage.totals(GroupBy.SESSION)}
    found = []
    for record in await list_sessions(access, limit):
        entries = await store.history.entries(record.id, 0, FIRST_ENTRIES)
        said = (words_of(each.event.message) for each in entries if isinstance(each.event, MessageTaken))
        words = " ".join(next(filter(None, said), "").split())[:LONGEST_WORDS]
        total = totals.get(record.id)
        cost = None if total is None or total.unpriced else total.cost
        count, calls = await store.history.count_messages(record.id), total.calls if total else 0
        found.append(SessionSummary(record=record, words=words, messages=count, calls=calls, cost=cost))
    return found


async def read_log(access: Access[HomeSystem], session: str, after: int = 0, limit: int | None = None) -> list[Entry]:
    """The log of a session after a number. Raises `UnknownSession`."""
    await get_session(access, session)
    return await access.system.store.history.entries(session, after, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidMessage:
    """A message of a session, by its number in the log."""

    number: int
    at: float
    run: str
    role: Literal["user", "assistant"]
    message: Message


def messages_in(entries: Sequence[Entry]) -> list[SaidMessage]:
    """What people and the agent said in these entries."""
    found: list[SaidMessage] = []
    for each in entries:
        match each.event:
            case MessageTaken(message=message, principal=principal) if principal:
                found.append(SaidMessage(number=each.number, at=each.at, run=each.run, role="user", message=message))
            case Replied(message=message) if message.text:
                said = SaidMessage(number=each.number, at=each.at, run=each.run, role="assistant", message=message)
                found.append(said)
            case _:
                pass
    return found


async def read_session(access: Access[HomeSystem], name: str) -> tuple[SessionRecord, list[Entry]]:
    """Find a session by name and read its log. Raises `UnknownSession`."""
    found = await find_session(access, name)
    return found, await access.system.store.history.entries(found.id)


async def search_messages(access: Access[HomeSystem], words: str, limit: int) -> list[Hit]:
    """Full-text search over messages, best match first."""
    scope = late(SCOPE)(principal="" if access.sees_all else access.who.key)
    return await access.system.store.search.search(words, scope, limit)


async def rename_session(access: Access[HomeSystem], session: str, title: str) -> SessionRecord:
    """Change the title of a session. Raises `UnknownSession`, `HermesError` for one that is too long."""
    if len(title) > LONGEST_TITLE:
        raise HermesError(f"A title has at most {LONGEST_TITLE:,} characters.")
    await get_session(access, session)
    await (access.system.hermes or access.system.store.sessions).rename(session, title)
    return await get_session(access, session)


async def delete_session(access: Access[HomeSystem], session: str) -> None:
    """Delete a session with its log and files; its run and its agents are stopped. Raises `UnknownSession`."""
    await get_session(access, session)
    store, hermes, now = access.system.store, access.system.hermes, access.system.clock.now()
    if hermes is not None:
        await hermes.stop(session, DELETED)
    await store.workers.reap()  # What a dead worker holds could not be told to stop.
    async with without_files(store, access.system.home, session):
        await store.sessions.delete(session, lambda tx: store.children.abandon_all(tx, session, DELETED, now))


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
    """Undo a person's last messages with everything after them; agents that were started there are stopped. Returns the
    undone entries, oldest first; the log keeps all. Raises `HermesError` if there are none, or during a run."""
    said: list[Entry] = []
    agents: list[Entry] = []
    async for page in access.system.store.history.pages(session):
        for entry in page:
            match entry.event:
                case MessageTaken(message=message, inbox=inbox) if message.role is Role.USER and inbox:
                    said.append(entry)
                case Delegated():
                    agents.append(entry)
                case Undone(to=to):
                    said = [each for each in said if each.number <= to]
                case _:
                    pass
    if not (undone := said[-count:]):
        raise HermesError("There is nothing to undo.")
    to, store, now = undone[0].number - 1, access.system.store, access.system.clock.now()
    await store.workers.reap()

    async def stop_agents(tx: Transaction) -> None:
        for entry in agents:
            if entry.number > to and isinstance(entry.event, Delegated):
                await store.children.abandon(tx, entry.event.session, UNDONE, now)

    async with access.system.hermes.holding(session) as journal:
        await journal.commit(Undone(to=to), changes=[stop_agents])
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


TOOLS = "tools"
"""The name of the last section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One section of a session's prompt: name, size in bytes and estimated tokens, hash and text."""

    name: str
    bytes: int
    tokens: int
    hash: str
    text: str


async def session_prompt(access: Access[HomeSystem], name: str) -> list[Part]:
    """The prompt that a session started with. Raises `UnknownSession` if it has none."""
    session = await find_session(access, name)
    prefix = await access.system.store.prefixes.get(session.prefix) if session.prefix else None
    if prefix is None:
        raise UnknownSession(f"Session {session.id} has no prompt yet: nothing was asked in it.")
    return parts_of(prefix.sections, prefix.prefix.tools)


async def new_prompt(access: Access[System]) -> tuple[list[Part], tuple[Quarantined, ...]]:
    """The prompt of a new session in this folder, and the tools not offered to its model."""
    system = access.system
    record = SessionRecord(
        id="",
        principal=access.who.key,
        conversation=Conversation(platform="cli", chat_kind="folder", chat=access.folder).key,
        surface="cli",
        model=system.model,
        workspace=access.folder,
        created=0.0,
        updated=0.0,
    )
    sections, tools = await system.snapshots.prompt(record)
    return parts_of(sections, tools), system.not_offered()


def parts_of(sections: Sequence[Section], tools: Sequence[ToolSchema]) -> list[Part]:
    """The sections in order, the tools last."""
    texts = [(section.name, section.text) for section in sections]
    texts.append((TOOLS, tools_text(tuple(tools))))
    return [
        Part(name=name, bytes=len(text.encode()), tokens=estimate_tokens(text), hash=short_hash(text), text=text)
        for name, text in texts
    ]
