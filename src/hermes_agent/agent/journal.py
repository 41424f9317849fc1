"""Journal of a run: numbers its events, commits them to the session's log under the lease, then publishes them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import Any, Protocol, TypeVar

from hermes_agent.agent.mailbox import Change, Mailbox
from hermes_agent.agent.session import Session
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Location
from hermes_agent.core.errors import DatabaseUnreachable, LogBehind, StoreError
from hermes_agent.core.events import (
    Asked,
    Durable,
    Entry,
    Event,
    Live,
    Notice,
    RunEnded,
    Seen,
    ToolProgress,
    ToolStarted,
)
from hermes_agent.core.messages import Prefix
from hermes_agent.core.section import Section
from hermes_agent.store.database import Store
from hermes_agent.store.effects import Intent
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Transaction


@dataclass(slots=True, kw_only=True)
class InHand:
    """Tool calls of a run that are in progress. `begun` maps each call to the call that made it (empty: the model);
    `asking` are those that wait for a person or for other sessions. `told` is the last value of `waits` that the store
    was given; `changed` is called with each new one."""

    begun: dict[str, str] = field(default_factory=dict)
    asking: set[str] = field(default_factory=set)
    told: bool = False
    changed: Callable[[], None] = lambda: None

    @property
    def waits(self) -> bool:
        """Whether all calls wait for a person or for other sessions."""
        return bool(self.asking) and not self.begun.keys() - self.asking - set(self.begun.values())


log = logging.getLogger(__name__)
E = TypeVar("E", bound=Event)

LINGER = 0.02
"""Seconds that something posted waits for company: a reply, quick reads and the next request share one commit."""

LAST_WORDS = 1.0
"""Seconds that a stopped run waits for another program before its end is left to whoever takes it up."""


class Spawn(Protocol):
    """Starts a background task and keeps a reference until it ends (`host.tasks.spawn`)."""

    def __call__(self, work: Coroutine[Any, Any, None], *, name: str) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The events of one `Journal.commit` or `Journal.post` with the changes to commit together, or a live event
    that follows them."""

    entries: tuple[Entry, ...] = ()
    changes: tuple[Change, ...] = ()
    live: Live | None = None
    durable: bool = False


REMEMBERED = 64
"""Commits of a run that are put back where a promoted standby has lost them."""

JoinedChanges = Callable[[Sequence[Entry]], Sequence[Change]]
"""What else belongs into the commit of these entries."""


class Journal:
    """Commits the events of one run to its session's log.

    A posted event joins the view at once, and the log in the same order within `LINGER`; events posted in that time
    or during a commit share the next commit. The events and changes of one `commit` or `post` are in one
    transaction with the check of the lease. Events are published in order, durable ones after their commit. A
    started commit completes even if its caller is cancelled, so that view and log never disagree; after a failure
    (`LostLease`, a full disk) every further commit raises it. `redact` removes secrets from notices, questions,
    summaries and ends before anybody sees or stores them.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        session: Session,
        *,
        clock: Clock,
        show: Callable[[Seen], None],
        spawn: Spawn,
    ) -> None:
        self.session = session
        self.mailbox = Mailbox(store, lease, clock)
        self.in_hand = InHand(told=lease.waits)
        self._store = store
        self._lease = lease
        self._clock = clock
        self._show = show
        self.spawn = spawn
        self._pending: list[Batch] = []
        self._flushing: Awaitable[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure: StoreError | None = None
        self._shown = 0
        self._written: deque[Batch] = deque(maxlen=REMEMBERED)
        self.joined: JoinedChanges | None = None
        self.redact: Callable[[str], str] = str
        self.ends: Callable[[], bool] = bool
        """Whether the run is being ended, and not left to another process."""

    async def commit(self, *events: Durable, changes: Sequence[Change] = (), durable: bool = True) -> None:
        """Commit the events with their changes, and everything posted before. With `durable` False a power failure
        may lose them (the death of the process never does)."""
        self.post(*events, changes=changes, durable=durable)
        await self.settled()

    def post(self, *events: Durable, changes: Sequence[Change] = (), durable: bool = False) -> None:
        """Commit the events soon, in order. No effect may rely on them before `settled`."""
        if self._failure is not None:
            raise self._failure
        now, first, session = self._clock.now(), self.session.number + 1, self.session
        entries = tuple(
            Entry(number=first + offset, run=session.run, at=now, event=self.clean(event))
            for offset, event in enumerate(events)
        )
        for entry in entries:
            session.apply(entry)
        self._add(Batch(entries=entries, changes=tuple(changes), durable=durable))

    def live(self, event: Live) -> None:
        """Publish an event that is not logged, after those posted before it."""
        event = self.clean(event)
        if self._flushing is None and not self._pending:
            self._show_live(event)
        else:
            self._pending.append(Batch(live=event))

    def notify(self, text: str) -> None:
        """Publish a live notice at once, also while the log cannot be written."""
        self._show_live(Notice(text=self.redact(text), level="warning", live=True))

    def clean(self, event: E) -> E:
        """The event without secrets in the program's own words; replies and results come without any."""
        match event:
            case Asked():
                choices = tuple(map(self.redact, event.choices))
                fields = tuple(replace(each, title=self.redact(each.title)) for each in event.fields)
                return replace(event, text=self.redact(event.text), choices=choices, fields=fields)
            case Notice() | RunEnded() | ToolProgress():
                return replace(event, text=self.redact(event.text))
            case ToolStarted():
                return replace(event, summary=self.redact(event.summary))
            case _:
                return event

    @asynccontextmanager
    async def last_words(self) -> AsyncIterator[None]:
        """Time limit for writing the end of a stopped run. Raises `DatabaseUnreachable` where another program has
        blocked the log for `LAST_WORDS` seconds; the run can be resumed."""
        loop = asyncio.get_running_loop()

        def glance() -> None:
            if self._store.engine.blocked:
                scope.reschedule(loop.time())
            else:
                timers.append(loop.call_later(LAST_WORDS, glance))

        timers = [loop.call_later(LAST_WORDS, glance)]
        try:
            async with asyncio.timeout(None) as scope:
                yield
        except TimeoutError as error:
            raise DatabaseUnreachable(
                f"The end of the run could not be written. {self._store.engine.blocked}"
            ) from error
        finally:
            timers[-1].cancel()

    async def settled(self) -> None:
        """Return when everything posted is committed. Raises the failure of that."""
        self._begin()
        if self._flushing is not None:
            await asyncio.shield(self._flushing)
        if self._failure is not None:
            raise self._failure

    async def tell_waiting(self) -> None:
        """Record in the store whether the run only waits (for a person, for other sessions), where that changed: such a
        run is no crash suspect, and makes room for another one."""
        waits = self.in_hand.waits
        if waits is self.in_hand.told:
            return
        self.in_hand.told = waits
        self.in_hand.changed()
        await self.commit(changes=[lambda tx: self._store.lanes.waits(tx, self._lease, waits)], durable=False)

    def alive(self) -> None:
        """Raise `LostLease` where this process was suspended for too long; called right before an effect."""
        self._store.workers.alive(self._lease)

    def intend(self, intent: Intent) -> Change:
        """The effect record of a call, as a change of a commit."""
        at, intent = self._clock.now(), replace(intent, summary=self.redact(intent.summary))
        return lambda tx: self._store.effects.intend(tx, self._lease, intent, at)

    async def begun_at(self, call_id: str) -> Location:
        """The location of an open call."""
        records = await self._store.effects.open(self.session.id)
        return next((each.intent.location for each in records if each.intent.call_id == call_id), NOWHERE)

    def hold_effect(self, call_id: str, handle: str) -> Change:
        """The handle of a call, as a change of a commit."""
        return lambda tx: self._store.effects.hold(tx, self._lease, call_id, handle)

    def finish_effect(self, call_id: str) -> Change:
        """The end of the effect, as a change of the commit of its result."""
        return lambda tx: self._store.effects.finish(tx, self._lease, call_id)

    def keep_prefix(self, prefix: Prefix, sections: tuple[Section, ...], eligible: Sequence[str] = ()) -> Change:
        """The change that stores the prefix, sets it for the session, and records the skills that it names."""

        async def change(tx: Transaction) -> None:
            await self._store.prefixes.put(tx, prefix, sections)
            await self._store.sessions.set_prefix(tx, self.session.id, prefix.hash)
            await self._store.exposures.draw(tx, self.session.id, eligible)

        return change

    def _add(self, batch: Batch) -> None:
        self._pending.append(batch)
        if self._flushing is None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._begin)

    def _begin(self) -> None:
        """Write what is pending, if nobody does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending and self._flushing is None:
            self._flushing = self.spawn(self._flush(), name=f"journal {self.session.id}")

    async def _flush(self) -> None:
        written = False
        try:
            while self._pending:
                batches, self._pending = self._pending, []
                await self._write(batches)
                for batch in batches:
                    self._show_batch(batch)
            written = True
        except StoreError as failure:
            self._failure = failure
        finally:
            self._flushing = None
            if not written and self._failure is None:
                self._failure = StoreError("The log could not be written: logs/hermes.log says why.")

    async def _write(self, batches: list[Batch]) -> None:
        entries = [entry for batch in batches for entry in batch.entries]
        changes = [change for batch in batches for change in batch.changes]
        if self.joined is not None:
            changes += self.joined(entries)

        if not (entries or changes):
            return
        batch = Batch(entries=tuple(entries), changes=tuple(changes), durable=any(batch.durable for batch in batches))
        try:
            await self._commit((batch,))
        except LogBehind as behind:
            if not (lost := self._lost(behind.last)):
                raise
            await self._commit((*lost, batch))
            said = f"The database had lost the log from entry {behind.last + 1} on; what this run wrote was put back."
            log.warning("session %s: %s", self.session.id, said)
            self.post(Notice(text=said))
        self._written.append(batch)

    async def _commit(self, batches: Sequence[Batch]) -> None:
        async def write(tx: Transaction) -> None:
            await self._store.history.append(tx, self._lease, [entry for batch in batches for entry in batch.entries])
            for batch in batches:
                for change in batch.changes:
                    await change(tx)

        await self._store.write(write, durable=any(batch.durable for batch in batches))

    def _lost(self, last: int) -> list[Batch]:
        """The commits of this run after entry `last`; none where not all of them are known."""
        lost: list[Batch] = []
        for batch in reversed(self._written):
            if batch.entries and batch.entries[-1].number <= last:
                break
            lost.insert(0, batch)
        first = next((batch.entries[0].number for batch in lost if batch.entries), 0)
        return lost if first == last + 1 else []

    def _show_batch(self, batch: Batch) -> None:
        for entry in batch.entries:
            self._shown = entry.number
            self._show(
                Seen(session=self.session.id, number=entry.number, run=entry.run, at=entry.at, event=entry.event)
            )
        if batch.live is not None:
            self._show_live(batch.live)

    def _show_live(self, event: Live) -> None:
        session, number = self.session, self._shown or self.session.number
        self._show(Seen(session=session.id, number=number, run=session.run, at=self._clock.now(), event=event))
