"""The one front door: every message, from whatever surface, enters here; every run of this process is started here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.loop import give_up, loose_ends, run
from hermes_agent.agent.session import Session, fold
from hermes_agent.agent.stop import StopSwitch
from hermes_agent.app.bus import Bus
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError, LostLease, StoreError, UnknownSession
from hermes_agent.core.events import Branched, Durable, Outcome, RunEnded, Seen
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Busy, Conversation, Inbound, Principal
from hermes_agent.host.tasks import spawn
from hermes_agent.store.database import Store
from hermes_agent.store.leases import Lease
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.transaction import Transaction

log = logging.getLogger(__name__)

APOLOGY = "Something in this program broke; logs/hermes.log has the details. Nothing that was done is lost: try again."

SHORTEST_PAUSE = 0.01
"""Seconds; a lane that says "ready" and cannot be claimed is not asked about without end."""

BRANCHED_OFF = RunEnded(outcome=Outcome.STOPPED, text="Stopped.", turns=0, reason="branched off in the middle of a run")
"""How an open run ends in a copy: it goes on in the original alone, so that nothing it was about to do is done
twice."""

BuildAgent = Callable[[SessionRecord, Journal], Awaitable[Agent]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What became of a message: the session that it belongs to, and its row in the inbox (None: it was there
    already)."""

    session: str
    inbox: int | None


@dataclass(slots=True, kw_only=True)
class Running:
    """A run of this process, and its two controls."""

    lease: Lease
    journal: Journal
    switch: StopSwitch
    ended: asyncio.Event
    task: asyncio.Task[None] | None = None


class Hermes:
    """One agent on one store.

    `queue` names the lanes that this process works on: a surface with a person in front of it works on its own sessions
    alone (`own_only`), a gateway or worker on every lane of its queue.
    """

    def __init__(
        self,
        *,
        store: Store,
        build: BuildAgent,
        clock: Clock,
        ids: Ids,
        queue: str = "cli",
        own_only: bool = True,
    ) -> None:
        self.store = store
        self.bus = Bus(store.history.entries, lambda session: session in self._running)
        self._build = build
        self._clock = clock
        self._ids = ids
        self._queue = queue
        self._own: set[str] | None = set() if own_only else None
        self._running: dict[str, Running] = {}
        self._worker: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()

    async def open_session(
        self, conversation: Conversation, principal: Principal, *, workspace: str, model: str = "", new: bool = False
    ) -> SessionRecord:
        """The conversation's current session, made where there is none or where a `new` one is wanted."""
        if not new and (current := await self.store.sessions.current(conversation.key)):
            return current
        now = self._clock.now()
        record = SessionRecord(
            id=self._ids.session(now),
            principal=principal.key,
            conversation=conversation.key,
            surface=conversation.platform,
            model=model,
            workspace=workspace,
            created=now,
            updated=now,
        )
        await self._create(record)
        return record

    async def _create(self, record: SessionRecord) -> None:
        async def change(tx: Transaction) -> None:
            await self.store.sessions.create(tx, record)
            await self.store.sessions.set_current(tx, record.conversation, record.id)

        await self.store.write(change)

    async def make_current(self, conversation: Conversation, session: str) -> None:
        """The next message of this conversation belongs to that session."""
        await self.store.write(lambda tx: self.store.sessions.set_current(tx, conversation.key, session))

    async def submit(self, inbound: Inbound, session: str) -> Submitted:
        """Take a message in: durable when this returns, and worked on from then. The same message twice counts once."""
        row = await self.store.inbox.accept(inbound, session, self._queue)
        if self._own is not None:
            self._own.add(session)
        running = self._running.get(session)
        if running is None:
            self._look()
        elif inbound.busy is Busy.INTERRUPT:
            running.switch.stop("interrupted by a new message")
        else:
            running.journal.mailbox.ring()
        return Submitted(session=session, inbox=row)

    async def resume(self, session: str) -> bool:
        """Work on a session that a crash left in the middle of a run, at once. False where nothing is open."""
        if session in self._running:
            return True
        await self.store.workers.reap()
        if not await self.store.lanes.insist(session):
            return False
        if self._own is not None:
            self._own.add(session)
        self._look()
        return True

    async def stop(self, session: str, reason: str = "stopped") -> bool:
        """End the session's run at once, in whichever process it is. False where none is under way."""
        if running := self._running.get(session):
            ended = running.ended
            self.stop_now(session, reason)
            await ended.wait()
            return True
        await self.store.workers.reap()
        return await self.store.lanes.stop(session)

    def watch(self, session: str, after: int = 0) -> AsyncGenerator[Seen, None]:
        """The session's events from a number on; see `Bus.watch`."""
        return self.bus.watch(session, after)

    async def follow(self, session: str, after: int) -> AsyncGenerator[Seen, None]:
        """The session's events from a number on, up to the end of the run that is under way or comes next."""
        async with aclosing(self.bus.watch(session, after)) as events:
            async for seen in events:
                yield seen
                if isinstance(seen.event, RunEnded):
                    return

    def stop_now(self, session: str, reason: str = "stopped") -> bool:
        """End the session's run in this process without waiting for its end; for signal handlers. False where there is
        none."""
        running = self._running.get(session)
        if running is not None:
            running.switch.stop(reason)
        return running is not None

    @asynccontextmanager
    async def holding(self, session: str) -> AsyncIterator[Journal]:
        """The right to write the log of a session where no run is under way, for a command. Raises `HermesError` if
        busy."""
        lease = await self._hold(session)
        try:
            yield self._journal(lease, await self.view(session))
        finally:
            await self.store.lanes.release(lease)
            self._look()

    async def log(self, session: str, *events: Durable) -> None:
        """Append events to a session where no run is under way."""
        async with self.holding(session) as journal:
            await journal.commit(*events)

    async def branch(self, source: SessionRecord, title: str = "", upto: int | None = None) -> SessionRecord:
        """A new session that begins as a copy of another one, up to its event `upto` (None: all of it)."""
        number = await self.store.history.last_number(source.id) if upto is None else upto
        now = self._clock.now()
        name = title or (f"{source.title} (branch)" if source.title else "")
        record = replace(source, id=self._ids.session(now), title=name, created=now, updated=now, parent=source.id)
        await self._create(record)
        lease = await self._hold(record.id)
        try:
            await self.store.write(lambda tx: self.store.history.copy(tx, lease, source.id, number))
            view = await self.view(record.id)
            ends = [*loose_ends(view), BRANCHED_OFF] if view.running else []
            await self._journal(lease, view).commit(*ends, Branched(session=source.id, upto=number))
        finally:
            await self.store.lanes.release(lease)
        return record

    async def close(self) -> None:
        """Leave: runs under way are left in the log for the next process, everything else is given back."""
        tasks = [self._worker, *(running.task for running in self._running.values())]
        for task in tasks:
            if task is not None:
                task.cancel()
        for task in tasks:
            if task is not None:
                await asyncio.wait((task,))
        await self.store.close()

    async def _hold(self, session: str) -> Lease:
        lease = await self.store.lanes.hold(session, self._queue)
        if lease is None:
            await self.store.workers.reap()  # Who holds it may have died.
            lease = await self.store.lanes.hold(session, self._queue)
        if lease is None:
            raise HermesError("The session is busy. Stop the run first (`/stop`), or wait for its end.")
        return lease

    def _look(self) -> None:
        """See to it that ready lanes are claimed."""
        self._wanted.set()
        if self._worker is None or self._worker.done():
            self._worker = spawn(self._work(), name="worker")

    async def _work(self) -> None:
        """Claim what is ready, start it, sleep until somebody rings; where the store fails, whoever watches is told."""
        try:
            await self._serve()
        except StoreError as error:
            log.exception("the store failed")
            for session in self._own or self._running:
                self.bus.fail(session, error)

    async def _serve(self) -> None:
        while True:
            self._wanted.clear()
            pause = await self.store.workers.tend(self._running.keys())
            while (lease := await self._claim()) is not None:
                self._start(lease)
            next_ready = await self.store.lanes.next_ready([self._queue], self._idle())
            if await self._rung(pause if next_ready is None else min(pause, max(next_ready, SHORTEST_PAUSE))):
                await self._heed()

    async def _rung(self, seconds: float) -> bool:
        """Whether a ring came from outside within that time; a look that is wanted in here ends the wait too."""
        async with asyncio.TaskGroup() as group:
            outside = group.create_task(self.store.workers.wait(seconds))
            inside = group.create_task(self._wanted.wait())
            await asyncio.wait((outside, inside), return_when=asyncio.FIRST_COMPLETED)
            rung = outside.done() and outside.result()
            outside.cancel()
            inside.cancel()
        return rung

    async def _heed(self) -> None:
        """After a ring: there may be mail for a run under way, or an order to stop one."""
        for running in self._running.values():
            running.journal.mailbox.ring()
        for session in await self.store.lanes.stops():
            self.stop_now(session)

    async def _claim(self) -> Lease | None:
        """The next lane that is ready, of all of the queue or of the sessions that are this process's own."""
        if self._own is None:
            return await self.store.lanes.claim([self._queue])
        for session in self._idle() or ():
            if lease := await self.store.lanes.claim([self._queue], session):
                return replace(lease, poison="")  # A person is there, and wants it tried.
        return None

    def _idle(self) -> list[str] | None:
        """The sessions of this process's own that have no run here; None where it works on all of the queue."""
        return None if self._own is None else sorted(self._own - self._running.keys())

    def _journal(self, lease: Lease, view: Session) -> Journal:
        return Journal(self.store, lease, view, clock=self._clock, show=self.bus.publish, spawn=spawn)

    def _start(self, lease: Lease) -> None:
        view = Session(id=lease.lane)
        journal = self._journal(lease, view)
        running = Running(lease=lease, journal=journal, switch=StopSwitch(), ended=asyncio.Event())
        self._running[lease.lane] = running
        running.task = spawn(self._run(running), name=f"run {lease.lane}")

    async def _run(self, running: Running) -> None:
        """Everything that happens under one lease."""
        lane = running.lease.lane
        # Boundary: one conversation.
        try:
            await self._rounds(running)
        except LostLease:
            log.warning("session %s was taken over by another process", lane)
        except StoreError as error:
            log.exception("session %s cannot be written", lane)
            with suppress(StoreError):
                await self.store.lanes.release(running.lease, error=str(error))
            self.bus.fail(lane, error)
        except Exception:
            log.exception("session %s: the run could not be ended", lane)
            self.bus.fail(lane, HermesError(APOLOGY))
        finally:
            del self._running[lane]
            running.ended.set()
        self._look()  # More mail may have come, which nobody here could claim so far.

    async def _rounds(self, running: Running) -> None:
        """Run until the lane was given back; mail that came too late for one run begins the next.

        After a stop the lane is given back with its mail: the next run has an epoch of its own, and the stop, which
        names the old one, does not end it too.
        """
        view, journal = running.journal.session, running.journal
        record = await self.record(view.id)
        view.workspace = record.workspace
        fold(view, await self.store.history.entries(view.id))
        while not journal.mailbox.released:
            # Boundary: one conversation.
            try:
                if running.lease.poison:
                    raise HermesError(running.lease.poison)
                await run(await self._build(record, journal), view, journal, running.switch)
            except StoreError:
                raise
            except Exception as error:
                if not isinstance(error, HermesError):
                    log.exception("session %s: the run failed", view.id)
                    error = HermesError(APOLOGY)
                await give_up(view, journal, self._ids, error)
            if running.switch.stopped and not journal.mailbox.released:
                await self.store.lanes.release(running.lease)
                return
            running.switch = StopSwitch()
            journal.mailbox.next_run()

    async def record(self, session: str) -> SessionRecord:
        """The session's row. Raises `UnknownSession`."""
        record = await self.store.sessions.get(session)
        if record is None:
            raise UnknownSession(f"There is no session {session}.")
        return record

    async def view(self, session: str) -> Session:
        """The session as the log has it."""
        record = await self.record(session)
        return fold(Session(id=session, workspace=record.workspace), await self.store.history.entries(session))
