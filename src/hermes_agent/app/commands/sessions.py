"""Commands about which conversation this is and how far it goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Entry, MessageTaken, Undone
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.messages import File, Image, Role, Text
from hermes_agent.core.plural import plural
from hermes_agent.store.sessions import Session

LOOKED_AT = 200
"""Sessions of which those of one chat are listed."""


def local_time(at: float) -> datetime:
    """A moment of the log on this machine's clock."""
    return datetime.fromtimestamp(at, UTC).astimezone()


def counted(rest: str, otherwise: int) -> int:
    """The number that a line gives, at least 1; `otherwise` where it gives none."""
    return max(1, int(rest)) if rest.isdecimal() else otherwise


async def new(desk: Desk, rest: str) -> Done:
    """Begin another session in the same conversation."""
    record = await desk.hermes.open_session(
        desk.inbound.conversation,
        desk.inbound.principal,
        workspace=desk.record.workspace,
        model=desk.record.model,
        new=True,
    )
    if rest:
        await desk.hermes.rename(record.id, rest)
    return Done(text=f"New session {record.id}.", session=record.id)


async def resume(desk: Desk, rest: str) -> Done:
    """Go on with an earlier session, by id or title."""
    if not rest:
        return await sessions(desk, rest)
    record = await desk.hermes.store.sessions.find(rest, desk.inbound.principal.key)
    if not _belongs(desk, record):
        raise HermesError("That session is of another chat: go on with it there, where its replies go.")
    await desk.hermes.make_current(desk.inbound.conversation, record.id)
    await desk.hermes.resume(record.id)
    return Done(text=f"Resumed {record.id}{f' ({record.title})' if record.title else ''}.", session=record.id)


async def sessions(desk: Desk, rest: str) -> Done:
    """List the latest sessions of this principal."""
    wanted = counted(rest, 15)
    most = wanted if _is_elsewhere_too(desk) else LOOKED_AT
    records = await desk.hermes.store.sessions.list(principal=desk.inbound.principal.key, limit=most)
    records = [record for record in records if _is_elsewhere_too(desk) or _belongs(desk, record)][:wanted]
    lines = [
        f"{record.id}  {local_time(record.updated):%Y-%m-%d %H:%M}  {record.title or '(untitled)'}"
        for record in records
    ]
    return Done(text="\n".join(lines) or "No sessions yet.")


def _is_elsewhere_too(desk: Desk) -> bool:
    """Whether titles of a person's sessions elsewhere may be shown here: nobody else reads along."""
    return desk.inbound.conversation.is_private


def _belongs(desk: Desk, record: Session) -> bool:
    """Whether a session can be gone on with here: in a chat of the gateway those of the same chat, since a session's
    replies go where it is."""
    here = desk.inbound.conversation
    if here.platform not in desk.runtime.settings.gateway.channels:
        return True
    return Conversation.parse(record.conversation).place == here.place


async def branch(desk: Desk, rest: str) -> Done:
    """Copy this session up to now into a new one and go on there."""
    record = await desk.hermes.branch(desk.record, title=rest)
    return Done(text=f"Branched into {record.id}.", session=record.id)


async def title(desk: Desk, rest: str) -> Done:
    """Show or set the session's title."""
    if not rest:
        return Done(text=desk.record.title or "(untitled)")
    await desk.hermes.rename(desk.record.id, rest)
    return Done(text=f"Titled “{rest}”.")


async def undo(desk: Desk, rest: str) -> Done:
    """Take back the last exchange (or the last N)."""
    count = counted(rest, 1)
    said = await _said(desk)
    if not said:
        raise HermesError("There is nothing to undo.")
    async with desk.hermes.holding(desk.record.id) as journal:
        await journal.commit(Undone(to=said[-min(count, len(said))].number - 1))
    return Done(text=f"Took back {plural(min(count, len(said)), 'message')}; the log keeps all.")


async def retry(desk: Desk, rest: str) -> Done:
    """Take back the last reply and ask again, with other words where some are given."""
    said = await _said(desk)
    if not said:
        raise HermesError("There is nothing to retry.")
    last = said[-1]
    async with desk.hermes.holding(desk.record.id) as journal:
        await journal.commit(Undone(to=last.number - 1))
    if not rest and isinstance(last.event, MessageTaken):
        said_before = tuple(part for part in last.event.message.parts if isinstance(part, Text | Image | File))
        return Done(submit=replace(desk.inbound, parts=said_before))
    return Done(submit=desk.message(rest))


async def _said(desk: Desk) -> list[Entry]:
    """The person's messages that are still in view, oldest first."""
    said: list[Entry] = []
    async for page in desk.hermes.store.history.pages(desk.record.id):
        for entry in page:
            match entry.event:
                case MessageTaken(message=message, inbox=inbox) if message.role is Role.USER and inbox:
                    said.append(entry)
                case Undone(to=to):
                    said = [each for each in said if each.number <= to]
                case _:
                    pass
    return said


NEW = Command(name="new", summary="Begin a new session.", arguments="[title]", act=new)
RESUME = Command(name="resume", summary="Go on with an earlier session.", arguments="[id or title]", act=resume)
SESSIONS = Command(
    name="sessions", summary="List the latest sessions.", arguments="[how many]", act=sessions, while_running=True
)
BRANCH = Command(name="branch", summary="Copy this session and go on in the copy.", arguments="[title]", act=branch)
TITLE = Command(
    name="title", summary="Show or set the session's title.", arguments="[title]", act=title, while_running=True
)
UNDO = Command(name="undo", summary="Take back the last exchange.", arguments="[how many]", act=undo)
RETRY = Command(name="retry", summary="Ask again, with other words if given.", arguments="[words]", act=retry)
