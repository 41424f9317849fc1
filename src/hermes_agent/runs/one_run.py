"""One run in this process: its builder, its controls, its life from start to end, and its replies, questions
and warnings, posted in the commit of their event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from hermes_agent.agent.agent import Agent, Closing, asks_approval
from hermes_agent.agent.journal import JoinedChanges, Journal
from hermes_agent.agent.loop import give_up, run
from hermes_agent.agent.mailbox import Change, Mailbox
from hermes_agent.agent.session import Session, folded
from hermes_agent.agent.stop import NEW_MESSAGE, WITHDRAWN, StopSwitch
from hermes_agent.core.chat import Button, Content, Conversation, Letter
from hermes_agent.core.clock import Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import DatabaseTooNew, HermesError, LimitReached, StoreError, UnknownSession
from hermes_agent.core.events import Answered, Asked, Entry, Notice, Outcome, RunEnded
from hermes_agent.core.quick_replies import replies_to
from hermes_agent.host.paths import sentence
from hermes_agent.store.database import Store
from hermes_agent.store.leases import Lease
from hermes_agent.store.outbox import Outbox
from hermes_agent.store.sessions import Session as SessionRecord

log = logging.getLogger(__name__)

APOLOGY = "Something in this program broke; logs/hermes.log has the details. Nothing that was done is lost: try again."


DEADLY = (
    "The program crashed {crashes} times during this run, so Hermes stopped retrying. Write again, or run "
    "`hermes sessions resume {session}`."
)


def told_of(error: Exception) -> HermesError:
    """The text of an error for people: a system error in its own words, anything else as a defect."""
    if isinstance(error, HermesError):
        return error
    return HermesError(sentence(error) if isinstance(error, OSError) and error.errno else APOLOGY)


def asked_in(view: Session) -> str:
    """The id of the open `clarify` question of a session's run; empty where there is none. Approvals are not
    answered by words."""
    return next((each for each in view.asked if each not in view.answers and not asks_approval(each)), "")


async def asked_elsewhere(store: Store, session: str) -> str:
    """The same for a run in another process, from its log."""
    if not await store.inbox.under_way(session):
        return ""
    return asked_in(await folded(Session(id=session), store.history.since_last_end(session)))


BuildAgent = Callable[[SessionRecord, Journal], AbstractAsyncContextManager[Agent]]
"""The agent of a run, as long as a block."""
ClosingsOf = Callable[[SessionRecord], Awaitable[tuple[Closing, ...]]]
"""What the end of a run adds to its commit where no agent could be built for it."""
Afterwards = Callable[[SessionRecord, Session, RunEnded], None]
"""Is told that a run of this session, with this view, has ended; what it begins goes on beside the next run."""


@dataclass(slots=True, kw_only=True)
class Running:
    """A run in progress in this process: its lease, journal, stop switch and task."""

    lease: Lease
    journal: Journal
    switch: StopSwitch
    ended: asyncio.Event
    task: asyncio.Task[None] | None = None

    def overtaken(self) -> None:
        """Stop the run: every message that it was to answer was deleted."""
        self.switch.stop(WITHDRAWN)

    async def lost(self) -> None:
        """Cancel the run, whose lane belongs to another worker now; returns when it has ended."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait((self.task,))

    @property
    def waits(self) -> bool:
        """Whether it only waits for a person or for other sessions."""
        return self.journal.in_hand.waits


async def no_closings(_: SessionRecord) -> tuple[Closing, ...]:
    """The default of `Service.closings`."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Settings of a process for its runs: `most` at a time (None: all that are ready; runs that wait for a person do
    not count), `posting` for messages that go to the outbox, and `afterwards`, which is called for each ended run.
    `redact` removes secrets from what runs say of themselves, `closings` is for runs without an agent."""

    most: int | None = None
    posting: Posting | None = None
    afterwards: tuple[Afterwards, ...] = ()
    redact: Callable[[str], str] = str
    closings: ClosingsOf = no_closings

    def speaks(self, journal: Journal, record: SessionRecord) -> None:
        """Redact the journal's messages, and post them to the outbox, where the session's surface uses it."""
        journal.redact = self.redact
        if self.posting is not None:
            journal.joined = self.posting.of(record, journal.mailbox, journal.session)


async def open_session(store: Store, running: Running, service: Service) -> SessionRecord:
    """Load the session of a lease; updates its view and mailbox from the log. Raises `UnknownSession`, `StoreError`."""
    view, journal = running.journal.session, running.journal
    record = await store.sessions.get(view.id)
    if record is None:
        raise UnknownSession(f"There is no session {view.id}.")
    view.workspace = record.workspace
    await folded(view, store.history.pages(view.id, view.number))
    service.speaks(journal, record)
    await journal.mailbox.recall()
    return record


async def one_run(
    build: BuildAgent, record: SessionRecord, running: Running, ids: Ids, service: Service | None = None
) -> RunEnded:
    """Run a session from start to end; also records an end where the run could not start. Raises `StoreError`."""
    view, journal = running.journal.session, running.journal
    lease, running.lease = running.lease, running.lease.retried()  # What comes behind this run is not to blame.
    # Boundary: one conversation.
    try:
        if lease.poison:
            raise HermesError(lease.poison)
        if lease.deadly:
            raise LimitReached(DEADLY.format(crashes=lease.crashes, session=view.id), limit="deaths")
        if model := await journal.mailbox.model():
            record = replace(record, model=model)
        async with build(record, journal) as agent:
            return await run(agent, view, journal, running.switch)
    except StoreError:
        raise
    except Exception as error:
        if not isinstance(error, HermesError):
            log.exception("session %s: the run failed", view.id)
            error = told_of(error)
        closing = await service.closings(record) if service else ()
        return await give_up(view, journal, ids, error, closing)


async def apply_signals(store: Store, running: Mapping[str, Running]) -> None:
    """Pass signals of other processes to the runs in `running`: new mail, a stop, a deleted message.

    A stop applies to the run that was in progress before the store was asked; one for a later run causes another
    wake-up.
    """
    switches = {session: each.switch for session, each in running.items()}
    for each in running.values():
        each.journal.mailbox.ring()
    for session, withdrawn in await store.lanes.stops():
        if (told := running.get(session)) is None:
            continue
        if withdrawn:
            told.journal.mailbox.ring(withdrawn)
        elif told.switch is switches.get(session):
            told.switch.stop()


LATER = 30.0
"""Seconds after which it is seen whether a later version has come that can read what this one cannot."""


async def give_back(store: Store, lease: Lease, error: Exception | None = None) -> bool:
    """Release a lane with its mail (see `Lanes.release`); False where that cannot be written: then the sweep does it
    later."""
    try:
        if isinstance(error, DatabaseTooNew):  # That is no failed attempt.
            await store.lanes.release(lease, delay=LATER)
        else:
            named = "" if isinstance(error, HermesError) else f"{type(error).__name__}: "
            await store.lanes.release(lease, error=f"{named}{error}" if error else "")
    except StoreError:
        store.workers.recheck()
        return False
    return True


SILENT = frozenset({"[SILENT]", "NO_REPLY"})
"""A reply that is one of these is not delivered: the model was told that it need not speak."""
HOW_TO_ANSWER = "`/approve [once|session|always]` or `/deny [why]`"
NOT_ANSWERED = "(Nobody answered.)"
LABELS = {"once": "Once", "session": "This session", "always": "Always", "rule": "By rule", "deny": "No"}
Surface = Callable[[str], bool]


def own_conversation(record: SessionRecord) -> tuple[Conversation, ...]:
    """The default for `told_to`: a session posts to its own conversation."""
    return (Conversation.parse(record.conversation),)


def reply_key(session: str, run: str) -> str:
    """The key of the slot for a run's draft and reply."""
    return f"{session}:{run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """Builds the outbox changes of a run. `delivers` tells which surfaces use the outbox, `here` those that this
    process delivers itself, so that nobody has to be woken; `told_to` gives the conversations that a session
    posts to."""

    outbox: Outbox
    delivers: Surface
    here: Surface
    told_to: Callable[[SessionRecord], tuple[Conversation, ...]] = own_conversation

    def of(self, record: SessionRecord, mailbox: Mailbox, view: Session) -> JoinedChanges | None:
        """The changes to add to the commits of a run of this session; None where there are none. A question that is
        still open when its run ends loses its buttons."""
        told = [each for each in self.told_to(record) if self.delivers(each.platform)]
        if not told:
            return None
        open_ = set(view.asked - view.answers.keys())  # Also what an interrupted run had asked.

        def joined(entries: Sequence[Entry]) -> Sequence[Change]:
            open_.update(view.asked - view.answers.keys())
            changes = [
                change for entry in entries for to in told if (change := self._change(record, to, entry, mailbox))
            ]
            if any(isinstance(entry.event, RunEnded) for entry in entries):
                left = sorted(open_ - view.answers.keys())
                changes += [self._answered(record, to, each, NOT_ANSWERED) for each in left for to in told]
                open_.clear()
            return changes

        return joined

    def _change(self, record: SessionRecord, to: Conversation, entry: Entry, mailbox: Mailbox) -> Change | None:
        if isinstance(entry.event, Answered):
            return self._answered(record, to, entry.event.question, f"→ {entry.event.answer}")
        said = said_by(record.id, entry)
        if said is None:
            return None
        key, inbox = key_in(record, to, said[0]), mailbox.last_taken if to.key == record.conversation else 0
        letter = Letter(key=key, to=to, content=said[1], session=record.id, inbox=inbox)
        return lambda tx: self.outbox.put(tx, letter, at=entry.at, wake=not self.here(to.platform))

    def _answered(self, record: SessionRecord, to: Conversation, question: str, answer: str) -> Change:
        """What became of a question, in its place."""
        key = key_in(record, to, f"{record.id}:{question}")
        return lambda tx: self.outbox.answered(tx, key, answer, wake=not self.here(to.platform))


def key_in(record: SessionRecord, to: Conversation, key: str) -> str:
    """The key of a slot in one of several conversations."""
    return key if to.key == record.conversation else f"{key}@{to.key}"


def said_by(session: str, entry: Entry) -> tuple[str, Content] | None:
    """The key and content of the message for an event; None where it has none."""
    match entry.event:
        case RunEnded() as ended:
            text = _ending(ended)
            if ended.reason == WITHDRAWN:  # What was shown of a reply goes away.
                return reply_key(session, entry.run), Content(text="")
            return (reply_key(session, entry.run), Content(text=text)) if text else None
        case Asked() as asked:
            return f"{session}:{asked.question}", asking(asked)
        case Notice(level="news" | "warning" | "error", question=question) as notice if question:
            return f"{session}:{question}", offering(notice)
        case Notice(level="news" | "warning" | "error", text=text):
            return f"{session}:{entry.run}:{entry.number}", Content(text=text)
        case _:
            return None


def asking(asked: Asked) -> Content:
    """A question with buttons, and instructions for surfaces without buttons."""
    buttons = tuple(Button(label=LABELS.get(choice, choice), value=choice) for choice in asked.choices)
    how = f"\n\n{HOW_TO_ANSWER}" if asked.purpose == "approval" else ""
    if asked.purpose == "clarify" and asked.choices:
        how = "".join(f"\n{number}. {choice}" for number, choice in enumerate(asked.choices, 1))
    return Content(text=f"{asked.text}{how}", buttons=buttons, question=asked.question)


def offering(notice: Notice) -> Content:
    """A question that no run waits for, with a button for each quick reply."""
    words = [each.word for each in replies_to(notice.question)]
    buttons = tuple(Button(label=word.capitalize(), value=word) for word in words)
    return Content(text=f"{notice.text} {' / '.join(words)}?", buttons=buttons, question=notice.question)


def _ending(ended: RunEnded) -> str:
    if ended.outcome is Outcome.STOPPED and ended.reason == NEW_MESSAGE:
        return "Interrupted by your new message."
    if ended.outcome is Outcome.ANSWERED and ended.text.strip() in SILENT:
        return ""
    return ended.text or "(The reply is empty.)"
