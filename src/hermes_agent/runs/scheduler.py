"""Run scheduler: claims ready lanes, starts one run per lease, and reacts to wake-ups."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session
from hermes_agent.agent.stop import StopSwitch
from hermes_agent.core.activity import Activity, activity, while_there
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import DatabaseTooNew, HermesError, LostLease, StoreError, UnknownSession
from hermes_agent.host.tasks import cancelled, spawn
from hermes_agent.replay.seam import Seam
from hermes_agent.runs.activity_log import ActivityLog
from hermes_agent.runs.event_bus import EventBus, notify
from hermes_agent.runs.locks import Locks, refuse
from hermes_agent.runs.one_run import (
    BuildAgent,
    Running,
    Service,
    apply_signals,
    asked_elsewhere,
    asked_in,
    give_back,
    one_run,
    open_session,
    told_of,
)
from hermes_agent.store.database import Store
from hermes_agent.store.leases import Lease
from hermes_agent.store.workers import Workers

TRIAL = 10.0
"""Seconds that a suspect run has to itself; after that, the next suspect may start."""


class Waiting(Protocol):
    """The part of a run that `CrashIsolation` needs: whether it only waits for a person."""

    @property
    def waits(self) -> bool: ...


class CrashIsolation:
    """Starts suspect runs (whose mail was in hand when a worker died) one at a time, so that the next crash points
    at one of them. `running` are the runs of this process."""

    def __init__(self, clock: Clock, running: Mapping[str, Waiting]) -> None:
        self._clock = clock
        self._running = running
        self._until: dict[str, float] = {}

    def begun(self, lease: Lease) -> None:
        """Record the start of a run under this lease."""
        if lease.suspect and not (lease.poison or lease.deadly):
            self._until[lease.lane] = self._clock.monotonic() + TRIAL

    def open(self) -> bool:
        """Whether another suspect may start now."""
        if not self._until:
            return True
        now = self._clock.monotonic()
        self._until = {lane: until for lane, until in self._until.items() if lane in self._running and until > now}
        return all(self._running[lane].waits for lane in self._until)


log = logging.getLogger(__name__)

SHORTEST_PAUSE = 0.01
"""Seconds; a lane that says "ready" and cannot be claimed is not asked about without end."""

STORE_PAUSE, LONGEST_STORE_PAUSE = 0.25, 30.0
"""Seconds between two tries where the store fails, doubling."""

REST_LOOK = 0.25
"""Seconds between two looks whether a run has begun to wait for a person, while the others are waited for."""

KEPT_VIEWS = 4
"""Sessions that this process worked on last whose views it keeps, so that the next run reads only what is new of the
log; all others are rows alone."""


class Scheduler:
    """Runs sessions in this process. `queue` names the lanes that it claims: with `own_only` those of sessions
    passed to `enqueue`, otherwise every lane of the queue, as `service` says. `locks` are the named leases that
    are not runs."""

    def __init__(
        self,
        *,
        store: Store,
        build: BuildAgent,
        seam: Seam,
        queue: str,
        own_only: bool,
        service: Service | None = None,
    ) -> None:
        self.service = service or Service()
        self.bus = EventBus(store.history.entries, self.runs)
        self.bus.overhear(ActivityLog())
        self.queue = queue
        self._store = store
        self._build = build
        self._seam = seam
        self._own, self._expected = set[str]() if own_only else None, set[str]()
        self._full = self._resting = False
        self.locks = Locks(store, self.wake)
        self._subscribers: list[Callable[[], None]] = []
        self._running: dict[str, Running] = {}
        self._crash_isolation = CrashIsolation(seam.clock, self._running)
        self._views: OrderedDict[str, tuple[int, Session]] = OrderedDict()
        self._worker: asyncio.Task[None] | None = None
        self.outdated: asyncio.Future[DatabaseTooNew] = asyncio.get_running_loop().create_future()
        self._wanted = asyncio.Event()

    def runs(self, session: str, *, ended: bool = True) -> bool:
        """Whether a run of this session is in progress here; without `ended`, not one that has released its lane."""
        running = self._running.get(session)
        return running is not None and (ended or not running.journal.mailbox.released)

    def enqueue(self, session: str, withdrawn: str = "") -> None:
        """Note that this session has, or may have, mail; `withdrawn` is the id of a message that its sender deleted."""
        if self._own is not None:
            self._own.add(session)
        if running := self._running.get(session):
            running.journal.mailbox.ring(withdrawn)
        self.wake()

    def expect(self, session: str) -> None:
        """Go on looking for mail of this session after the end of its runs: another session will send some."""
        self._expected.add(session)
        self.enqueue(session)

    def stop(self, session: str, reason: str = "stopped") -> asyncio.Event | None:
        """Stop the session's run; an event that is set when it has ended, None where there is no run here."""
        if (running := self._running.get(session)) is None:
            return None
        running.switch.stop(reason)
        return running.ended

    def wake(self) -> None:
        """Start the worker task if need be, and have it claim ready lanes."""
        self._wanted.set()
        if self._worker is None or self._worker.done():
            self._worker = spawn(self._work(), name="worker")

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each wake-up from another process: what it waits for may have changed."""
        self._subscribers.append(listener)

    async def question(self, session: str) -> str:
        """The id of the question that a text answers, in the session's run in any process; empty where there is
        none."""
        running = self._running.get(session)
        return asked_in(running.journal.session) if running else await asked_elsewhere(self._store, session)

    def overdue(self) -> list[float]:
        """For each run, the seconds since it should have ended; 0 where it is not overdue."""
        return [running.switch.overdue for running in self._running.values()]

    async def idle(self) -> None:
        """Return when the current runs of this process have ended."""
        for running in list(self._running.values()):
            await running.ended.wait()

    def journal_of(self, session: str) -> Journal | None:
        """The journal of the session's run in this process; None without a run that holds its lane."""
        running = self._running.get(session)
        return running.journal if running and not running.journal.mailbox.released else None

    def journal(self, lease: Lease, view: Session) -> Journal:
        """The journal of a session under a lease, for a command."""
        return Journal(self._store, lease, view, clock=self._seam.clock, show=self.bus.publish, spawn=spawn)

    async def rest(self) -> None:
        """Stop claiming, and return when the only runs left wait for a person."""
        self._resting = True
        while tasks := [each.task for each in self._running.values() if each.task and not each.waits]:
            await asyncio.wait(tasks, timeout=REST_LOOK)

    async def close(self) -> None:
        """Stop; runs in progress are left in the log for another process."""
        left = list(self._running.values())
        await cancelled([task for task in (self._worker, *(running.task for running in left)) if task is not None])
        for running in left:
            with suppress(StoreError):
                await running.journal.settled()

    # 1. Claim what is ready

    async def _work(self) -> None:
        """Claim what is ready, start it, sleep until somebody rings; where the store fails, whoever watches is told,
        and who works on all of the queue tries again."""
        pause = STORE_PAUSE
        while True:
            began = self._seam.clock.monotonic()
            # Boundary: one job.
            try:
                await self._claim_ready()
            except Exception as error:  # noqa: BLE001  `noted` logs it.
                failed = noted(error)
                for session in self._own or self._running:
                    self.bus.fail(session, failed)
                if isinstance(error, DatabaseTooNew) and not self.outdated.done():
                    self.outdated.set_result(error)
            if self._own is not None or self.outdated.done():
                return
            lasted = self._seam.clock.monotonic() - began
            pause = STORE_PAUSE if lasted > LONGEST_STORE_PAUSE else min(2 * pause, LONGEST_STORE_PAUSE)
            await self._seam.clock.sleep(pause)

    async def _claim_ready(self) -> None:
        while True:
            self._wanted.clear()
            pause = await self._store.workers.tend(self._running.keys() | self.locks.names)
            while self._has_room() and (lease := await self._next_lease()) is not None:
                self._start(lease)
            if self._has_room():  # Where there is none, the end of a run says so.
                suspects = self._crash_isolation.open()
                ready = await self._store.lanes.next_ready([self.queue], self._idle(), suspects=suspects)
                pause = pause if ready is None else min(pause, max(ready, SHORTEST_PAUSE))
            if await rung(self._store.workers, self._wanted, pause) or (self._running and not self._wanted.is_set()):
                await self._on_ring()

    async def _on_ring(self) -> None:
        """After a ring: there may be mail for a run under way, or an order to stop one."""
        for listener in self._subscribers:
            notify(listener)
        await apply_signals(self._store, self._running)

    async def _next_lease(self) -> Lease | None:
        if self._own is None:
            return await self._store.lanes.claim([self.queue], suspects=self._crash_isolation.open())
        for session in self._idle() or ():
            if lease := await self._store.lanes.claim([self.queue], session):
                return lease.retried()  # A person is there, and wants it tried.
        return None

    def _idle(self) -> list[str] | None:
        """The sessions of this process's own that have no run here; None where it works on all of the queue."""
        return None if self._own is None else sorted(self._own - self._running.keys())

    def _has_room(self) -> bool:
        """Whether one more run may be under way here."""
        if self._resting:
            return False
        most, runs = self.service.most, self._running.values()
        self._full = most is not None and len(runs) >= most and sum(not running.waits for running in runs) >= most
        return not self._full

    def _made_room(self) -> None:
        """A run that begins to wait for a person or for other sessions makes room for another one."""
        if self._full:
            self.wake()

    def _start(self, lease: Lease) -> None:
        earlier = self._running.get(lease.lane)
        own = self._seam.own(lease.lane)
        view = kept(self._views, lease)
        journal = Journal(self._store, lease, view, clock=own.clock, show=self.bus.publish, spawn=spawn)
        journal.mailbox.behind(own.gate)
        journal.in_hand.changed = self._made_room
        running = Running(lease=lease, journal=journal, switch=StopSwitch(own.when), ended=asyncio.Event())
        journal.mailbox.back.overtaken = running.overtaken
        self._running[lease.lane] = running
        self._crash_isolation.begun(lease)
        running.task = spawn(self._run(running, earlier), name=f"run {lease.lane}")

    # 2. Run what the lane holds

    async def _run(self, running: Running, earlier: Running | None) -> None:
        """Run until the lane was given back; mail that came too late for one run begins the next. An `earlier` run
        there has lost its lease, and may not know it yet.

        After a stop the lane is given back with its mail: the stop is for this epoch, and the next run has its own.
        """
        lane, journal = running.lease.lane, running.journal
        activity.set(Activity(name=f"session {lane}", notify=while_there(journal.notify)))
        # Boundary: one conversation.
        try:
            if earlier is not None:
                await earlier.lost()
            record = await open_session(self._store, running, self.service)
            while not journal.mailbox.released:
                ended = await one_run(self._build, record, running, self._seam.own(lane).ids, self.service)
                view, released = journal.session, journal.mailbox.released
                await self._seam.ended(lane, ended.outcome, view.number, released=released)
                for listener in self.service.afterwards:
                    notify(listener, record, view, ended)
                if running.switch.stopped and not released:
                    await self._store.lanes.release(running.lease)
                    break
                running.switch = StopSwitch(self._seam.own(lane).when)
                journal.mailbox.next_run()
            else:
                keep(self._views, journal.session, running.lease)
        except LostLease as error:
            log.warning("%s", error)
        except UnknownSession as error:
            log.warning("mail is refused: %s", error)
            await refuse(self._store, running.lease, str(error))  # No other try would find one.
            self.bus.fail(lane, error)
        except StoreError as error:
            log.exception("session %s cannot be written", lane)
            self.bus.fail(lane, error)  # First: giving the lane back waits for the same database.
            await give_back(self._store, running.lease, error)
        except Exception as error:
            log.exception("session %s: the run could not be ended", lane)
            await give_back(self._store, running.lease, error)
            self.bus.fail(lane, told_of(error))
        finally:
            if self._running.get(lane) is running:
                del self._running[lane]
            running.ended.set()
        await self._end(running)

    # 3. End: make room for the next

    async def _end(self, running: Running) -> None:
        """Think no more of a session that is done, unless mail came while its run was ending."""
        released, lane = running.journal.mailbox.released, running.lease.lane
        if not released or self._full or running.lease.suspect:
            self.wake()
        if released and self._own is not None:
            self._own -= {lane} - self._expected
            if lease := await self._store.lanes.claim([self.queue], lane):
                self._own.add(lane)
                self._start(lease.retried())


def noted(error: Exception) -> HermesError:
    """The message about an error that kept a run from starting; logs details that it lacks."""
    if isinstance(error, StoreError):
        log.error("no run can begin: %s", error, exc_info=error if type(error) is StoreError else None)
        return error
    log.error("no run can begin", exc_info=error)
    return told_of(error)


def kept(views: OrderedDict[str, tuple[int, Session]], lease: Lease) -> Session:
    """The cached view of the lease's session; an empty one where there is none, or where a promoted standby may have
    lost part of it."""
    era, view = views.pop(lease.lane, (lease.era, Session(id=lease.lane)))
    return view if era == lease.era else Session(id=lease.lane)


def keep(views: OrderedDict[str, tuple[int, Session]], view: Session, lease: Lease) -> None:
    """Cache the view of a session that is fully logged."""
    views[view.id] = (lease.era, view)
    if len(views) > KEPT_VIEWS:
        views.popitem(last=False)


async def rung(workers: Workers, wanted: asyncio.Event, seconds: float) -> bool:
    """Wait for a wake-up from outside, at most `seconds`, or until a look is `wanted`; whether one came. A lost
    wake-up is made up for by the look after the wait."""
    try:
        async with asyncio.TaskGroup() as group:
            outside = group.create_task(workers.wait(seconds))
            inside = group.create_task(wanted.wait())
            await asyncio.wait((outside, inside), return_when=asyncio.FIRST_COMPLETED)
            heard = outside.done() and outside.result()
            outside.cancel()
            inside.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return heard
