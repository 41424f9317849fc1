"""The front door: submits messages from every surface to a session; follows, stops and answers runs."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from hermes_agent.agent.agent import asks_approval
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.loop import TOO_LATE, loose_ends
from hermes_agent.agent.session import Session, folded
from hermes_agent.agent.stop import NEW_MESSAGE
from hermes_agent.core.chat import Busy, Conversation, Inbound, Principal, Standing, workspace_of
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, NothingMore, UnknownSession
from hermes_agent.core.events import Answered, Branched, Notice, Outcome, RunEnded, Seen
from hermes_agent.core.mandate import Mandate
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.one_run import BuildAgent, Service
from hermes_agent.runs.scheduler import Scheduler
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending
from hermes_agent.store.leases import Lease
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.transaction import Transaction

BRANCHED_OFF = RunEnded(outcome=Outcome.STOPPED, text="Stopped.", turns=0, reason="branched off in the middle of a run")
"""How an open run ends in a copy: it goes on in the original alone, so that nothing it was about to do is done
twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """Result of a submit: the session, and the inbox row (None: the message was already there)."""

    session: str
    inbox: int | None


async def nothing_beside(_tx: Transaction, _session: str) -> None:
    """The default of `Assignment.beside`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A session in which nobody types: its mandate, the job whose limits it shares, and the rows that `beside` writes
    in the commit that creates it. `queue` names who works on it (empty: the queue of this process)."""

    mandate: Mandate
    job: str = ""
    queue: str = ""
    beside: Callable[[Transaction, str], Awaitable[None]] = nothing_beside


class _Overtaken(Exception):
    """Another caller opened a session for the conversation first."""


class Receive(Protocol):
    """Checks and rewrites a message before it is accepted into a session (or a new one with that model). Raises
    `HermesError` to refuse it."""

    def __call__(self, inbound: Inbound, *, session: str = "", model: str = "") -> Awaitable[Inbound]: ...


class Hermes:  # noqa: PLR0904  every surface asks for all of it here
    """Front door of the agent on one store: submit, follow, stop, answer.

    `queue` names the lanes of this process: a surface with a person in front of it runs only its own sessions
    (`own_only`), a gateway or worker every lane, as `service` says. `receive` checks each message.
    """

    def __init__(
        self,
        *,
        store: Store,
        build: BuildAgent,
        seam: Seam,
        queue: str = "cli",
        own_only: bool = True,
        service: Service | None = None,
    ) -> None:
        self.store = store
        self.receive: Receive | None = None
        self._seam = seam
        self.scheduler = self._scheduler = Scheduler(
            store=store, build=build, seam=seam, queue=queue, own_only=own_only, service=service
        )
        if not own_only:
            self._scheduler.wake()  # What waits in the queue is worked on, also before anybody says anything here.

    async def open_session(
        self,
        conversation: Conversation,
        principal: Principal,
        *,
        workspace: str,
        model: str = "",
        job: str = "",
        new: bool = False,
    ) -> SessionRecord:
        """The current session of a conversation, created where missing or where a `new` one is requested; `job`
        groups its runs."""
        if not new and (current := await self.store.sessions.current(conversation.key)):
            return current
        try:
            record = self._record(conversation, principal, workspace=workspace, model=model, job=job)
            await self._create(record, only=not new)
        except _Overtaken:
            return await self.open_session(conversation, principal, workspace=workspace, model=model, job=job)
        return record

    async def start_session(
        self, inbound: Inbound, *, workspace: str, model: str = "", work: Assignment | None = None
    ) -> Submitted:
        """Accept the first message of a new session and create both in one commit; for `work` with what belongs to it.
        A message accepted before creates nothing, and its session is returned."""
        if self.receive is not None:
            inbound = await self.receive(inbound, model=model)
        record = self._record(inbound.conversation, inbound.principal, workspace=workspace, model=model)
        record = record if work is None else replace(record, job=work.job)
        queue = work.queue if work is not None and work.queue else self._scheduler.queue
        at = self._seam.arrival()
        row = await _created(self.store, inbound, record, queue, at, work)
        if row is None:
            mail = await self.store.inbox.find(inbound.source, inbound.source_id)
            self._scheduler.enqueue(there := (mail.session if mail else "") or record.id)
            return Submitted(session=there, inbox=None)
        self._seam.made(record)
        if queue == self._scheduler.queue:
            self._scheduler.enqueue(record.id)
        self._seam.arrived(record.id, inbound, at)
        return Submitted(session=record.id, inbox=row)

    def _record(
        self, conversation: Conversation, principal: Principal, *, workspace: str, model: str, job: str = ""
    ) -> SessionRecord:
        now, workspace = self._seam.clock.now(), _made(workspace, workspace_of(workspace, principal, conversation))
        return SessionRecord(
            id=self._seam.ids.session(now),
            principal=principal.key,
            conversation=conversation.key,
            surface=conversation.platform,
            model=model,
            workspace=workspace,
            job=job,
            created=now,
            updated=now,
        )

    async def _create(self, record: SessionRecord, *, only: bool = False) -> None:
        """Raises `_Overtaken` where it is to be the `only` one of its conversation and is not."""

        async def change(tx: Transaction) -> None:
            await self.store.sessions.create(tx, record)
            if not await self.store.sessions.set_current(tx, record.conversation, record.id, only=only):
                raise _Overtaken

        await self.store.write(change)
        self._seam.made(record)

    async def make_current(self, conversation: Conversation, session: str) -> None:
        """Make the session the current one of a conversation."""
        await self.store.write(lambda tx: self.store.sessions.set_current(tx, conversation.key, session))

    async def choose(self, session: str, model: str) -> None:
        """Set the model of the session's requests."""
        await self.store.sessions.set_model(session, model)
        await self._seam.changed(session, self.store)

    async def rename(self, session: str, title: str) -> None:
        """Set the session's title. Raises `UnknownSession`."""
        await self.store.sessions.rename(session, title)
        await self._seam.changed(session, self.store)

    async def submit(self, inbound: Inbound, session: str) -> Submitted:
        """Accept a message: it is stored when this returns, and a run starts. The same message is accepted once.

        Raises `HermesError` for an answer to a question that was not put to this person.
        """
        if inbound.answers:
            await check_answer(self.store, inbound, session)
        if self.receive is not None and not inbound.withdraws:
            inbound = await self.receive(inbound, session=session)
        at = self._seam.arrival()
        self._scheduler.bus.start_run(session)
        row = await self.store.inbox.accept(inbound, session, self._scheduler.queue, at=at)
        self._seam.arrived(session, inbound, at)
        if inbound.busy is Busy.INTERRUPT:
            self._scheduler.stop(session, NEW_MESSAGE)
        self._scheduler.enqueue(session)
        return Submitted(session=session, inbox=row)

    async def withdraw(self, inbound: Inbound, *, moderated: bool = False) -> list[str]:
        """Withdraw the message `inbound.withdraws`, as `Inbox.withdraw`: a waiting message is not answered, a run
        with nothing else to answer ends silently, any other run is notified. Returns the lanes; stored when this
        returns."""
        at = self._seam.arrival()
        mail = await self.store.inbox.withdraw(inbound, self._scheduler.queue, moderated=moderated, at=at)
        for lane, back in mail.items():
            self._seam.arrived(lane, back, at)
            self._scheduler.enqueue(lane, back.withdraws)
        return list(mail)

    async def resume(self, session: str) -> bool:
        """Resume the run of a session that a crash interrupted. False where nothing is open."""
        if self._scheduler.runs(session):
            return True
        await self.store.workers.reap()
        self._scheduler.bus.start_run(session)
        if is_open := await self.store.lanes.insist(session):
            self._scheduler.enqueue(session)
        return is_open

    async def stop(self, session: str, reason: str = "stopped") -> bool:
        """Stop the session's run at once, in whichever process it is. False where there is none."""
        if ended := self._scheduler.stop(session, reason):
            await ended.wait()
            return True
        await self.store.workers.reap()
        return await self.store.lanes.stop(session)

    async def stop_run(self, session: str, run: str, mail: int) -> bool:
        """Stop that run, which took that mail; never a later one. False where it has ended."""
        journal = self._scheduler.journal_of(session)
        if journal is not None and journal.session.running and journal.session.run == run:
            return await self.stop(session)  # Begins at once: nothing happens between.
        await self.store.workers.reap()
        return await self.store.lanes.stop(session, mail)

    def stop_now(self, session: str, reason: str = "stopped") -> bool:
        """Stop the session's run in this process without waiting, for signal handlers. False where there is none."""
        return self._scheduler.stop(session, reason) is not None

    def runs(self, session: str, *, ended: bool = True) -> bool:
        """Whether a run of this session is in progress here; without `ended`, not one whose end is logged."""
        return self._scheduler.runs(session, ended=ended)

    async def idle(self) -> None:
        """Return when the current runs of this process have ended."""
        await self._scheduler.idle()

    def watch(self, session: str, after: int = 0, mail: int = 0, *, live: bool = True) -> AsyncGenerator[Seen, None]:
        """The session's events after number `after`; raises what `over` returns. See `EventBus.watch`."""
        return self._scheduler.bus.watch(session, after, partial(over, self.store, session, mail), live=live)

    async def follow(self, session: str, after: int) -> AsyncGenerator[Seen, None]:
        """The session's events after number `after`, up to the end of the current or next run."""
        async with aclosing(self.watch(session, after)) as events:
            async for seen in events:
                yield seen
                if isinstance(seen.event, RunEnded):
                    return

    @asynccontextmanager
    async def holding(self, session: str, *, beside_run: bool = False) -> AsyncIterator[Journal]:
        """Hold the right to write the log of a session without a run, for a command; with `beside_run` also during a
        run of this process, for writes that are allowed at any time. Raises `HermesError` if busy."""
        if beside_run and (running := self._scheduler.journal_of(session)):
            yield running
            return
        async with self._held(session) as lease:
            view = await self.view(session)
            since = view.number
            yield self._scheduler.journal(lease, view)
            await self._seam.changed(session, self.store, since)

    async def notify(self, record: SessionRecord, *events: Notice | Answered) -> None:
        """Log notices and answers to them in a session, on its surface too, also during a run. Raises `HermesError` if
        it is busy in another process."""
        async with self.holding(record.id, beside_run=True) as journal:
            self._scheduler.service.speaks(journal, record)
            await journal.commit(*events)

    async def branch(self, source: SessionRecord, title: str = "", upto: int | None = None) -> SessionRecord:
        """A new session that starts as a copy of another one up to event `upto` (None: all of it)."""
        number = min(await self.store.history.last_number(source.id), sys.maxsize if upto is None else upto)
        now = self._seam.clock.now()
        name = title or (f"{source.title} (branch)" if source.title else "")
        record = replace(source, id=self._seam.ids.session(now), title=name, created=now, updated=now, parent=source.id)
        await self._create(record)
        async with self._held(record.id) as lease:
            await self.store.write(lambda tx: self.store.history.copy(tx, lease, source.id, number))
            view = await self.view(record.id)
            ends = [*loose_ends(view), BRANCHED_OFF] if view.running else []
            await self._scheduler.journal(lease, view).commit(*ends, Branched(session=source.id, upto=number))
            await self._seam.changed(record.id, self.store, 0)
        return record

    async def close(self) -> None:
        """Shut down: runs in progress are left in the log for the next process, all leases are released."""
        await self._scheduler.close()
        await self.store.close()

    @asynccontextmanager
    async def _held(self, session: str) -> AsyncIterator[Lease]:
        lease = await self._scheduler.locks.acquire(session, self._scheduler.queue)
        if lease is None:
            raise HermesError("The session is busy. Stop the run first (`/stop`), or wait for its end.")
        try:
            yield lease
        finally:
            await self._scheduler.locks.release(lease)

    async def record(self, session: str) -> SessionRecord:
        """The session's row. Raises `UnknownSession`."""
        record = await self.store.sessions.get(session)
        if record is None:
            raise UnknownSession(f"There is no session {session}.")
        return record

    async def view(self, session: str) -> Session:
        """The session's state, folded from the log."""
        record = await self.record(session)
        return await folded(Session(id=session, workspace=record.workspace), self.store.history.pages(session))


async def _created(
    store: Store, inbound: Inbound, record: SessionRecord, queue: str, at: float, work: Assignment | None
) -> int | None:
    """Create a session with its first message, and what belongs to its work, in one commit; the message's row, None
    where it was accepted before."""

    async def change(tx: Transaction) -> int | None:
        row = await store.inbox.accept(inbound, record.id, queue, tx=tx, at=at)
        if row is not None:
            await store.sessions.create(tx, record)
            await store.sessions.set_current(tx, record.conversation, record.id)
            if work is not None:
                await store.mandates.put(tx, record.id, work.mandate)
                await work.beside(tx, record.id)
        return row

    return await store.write(change)


async def check_answer(store: Store, inbound: Inbound, session: str) -> None:
    """Raise `HermesError` for an answer that does not count: only the session's person and the owner may answer, a
    guest may not approve calls, and the question must still be open."""
    record = await store.sessions.get(session)
    owner = inbound.principal.standing is Standing.OWNER
    if record is not None and not owner and record.principal != inbound.principal.key:
        raise HermesError("Only the person whose session it is, or the owner, may answer that.")
    if inbound.principal.standing is Standing.GUEST and asks_approval(inbound.answers):
        raise HermesError("Guests cannot approve calls. The owner has been asked.")
    view = await folded(Session(id=session), store.history.since_last_end(session))
    is_open = inbound.answers in view.asked and inbound.answers not in view.answers
    if not is_open and await store.inbox.find(inbound.source, inbound.source_id) is None:
        raise HermesError(TOO_LATE)


async def over(store: Store, session: str, mail: int) -> HermesError | None:
    """Why no more events come: `UnknownSession` where the session is deleted, `NothingMore` where the given mail has
    ended. None where more may come."""
    if await store.sessions.get(session) is None:
        return UnknownSession(f"There is no session {session} any more.")
    found = await store.inbox.at(mail) if mail else None
    if found is None or found.state not in (Ending.ANSWERED, Ending.REFUSED):
        return None
    return NothingMore(found.reason or "Nothing more comes of this message.")


def _made(shared: str, own: str) -> str:
    """The person's own workspace, created where it is not the shared one."""
    if own != shared:
        Path(own).mkdir(mode=0o700, parents=True, exist_ok=True)
    return own
