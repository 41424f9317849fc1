"""A session's mailbox during a run: waiting mail, what the run took, how it was completed, what was deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field
from typing import Protocol

from hermes_agent.core.chat import Busy, Inbound
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Text
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending, Unreadable
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Transaction


def nobody() -> None:
    """No listener."""


@dataclass(slots=True, kw_only=True)
class Withdrawals:
    """Tracks which messages of a run were deleted on their platform. `words` maps the messages that the run took to
    their text. `gone` are those whose deletion it has read, `announced` those of which this process was notified;
    `overtaken` is called when all were deleted."""

    words: dict[str, Text | None] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    announced: set[str] = field(default_factory=set)
    overtaken: Callable[[], None] = nobody

    @property
    def lapsed(self) -> bool:
        """Whether every message of the run was deleted, as far as it has read."""
        return bool(self.gone) and self.words.keys() <= self.gone

    def took(self, inbound: Inbound) -> None:
        """Add a message of the run."""
        if not inbound.answers:
            self.words[inbound.identity] = next(
                (part for part in reversed(inbound.parts) if isinstance(part, Text)), None
            )

    def announce(self, withdrawn: str) -> None:
        """Note that the message with that identity was deleted; the mail about it is in the inbox."""
        self.announced.add(withdrawn)
        self.see()

    def read(self, withdrawn: Iterable[str]) -> None:
        """Restore the deletions that the run had read before an interruption."""
        self.gone.update(self.words.keys() & set(withdrawn))
        self.announced.update(self.gone)

    def see(self) -> None:
        """Call `overtaken` where nothing is left."""
        if self.words and self.words.keys() <= self.announced:
            self.overtaken()

    def next_run(self) -> None:
        """Reset for another run with other messages."""
        self.words.clear()
        self.gone.clear()
        self.announced.clear()


LATER = frozenset({Busy.QUEUE, Busy.ALONE})
"""What a message says that no run reads which is under way."""
Change = Callable[[Transaction], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A waiting message with the id of its inbox row."""

    id: int
    inbound: Inbound


def due(mail: Sequence[Mail], *, waits: bool, took: bool) -> Sequence[Mail]:
    """The mail to read now, with its edits. `alone` mail is read only by a run that `took` nothing yet; mail after
    it waits for the next look, except interruptions, which are read first."""
    now: list[Mail] = []
    closed, urgent = False, any(letter.inbound.busy is Busy.INTERRUPT for letter in mail)
    for letter in mail:
        inbound, alone = letter.inbound, letter.inbound.busy is Busy.ALONE
        if inbound.replaces in {each.inbound.identity for each in now}:
            now.append(letter)
        elif closed or (waits and inbound.busy in LATER) or (urgent and alone):
            continue
        elif alone and (took or now):
            closed = True
        else:
            now.append(letter)
            closed = alone
    return now


class Gate(Protocol):
    """Decides which mail a look at the inbox finds: a recording notes it, a replay repeats it.

    - `may_have` says whether to report mail, given whether there may be some;
    - `ready` returns when a look is worthwhile after a wake-up;
    - `accepted` gives the source ids of the mail that this look may find; None: all of it;
    - `found` gets what the look found.
    """

    def may_have(self, rung: bool) -> bool: ...

    async def ready(self) -> None: ...

    async def accepted(self) -> frozenset[str] | None: ...

    def found(self, source_ids: Sequence[str]) -> None: ...


class OpenGate:
    """The default `Gate`: every look finds all waiting mail."""

    def may_have(self, rung: bool) -> bool:
        """As `rung` says."""
        return rung

    async def ready(self) -> None:
        """Returns at once."""

    async def accepted(self) -> frozenset[str] | None:
        """All mail."""
        return None

    def found(self, source_ids: Sequence[str]) -> None:
        """Does nothing."""


class Mailbox:
    """Reads and completes the mail of one session under its lease. It asks the store for new mail after a wake-up, or
    when something was left over. `back` tracks which messages were deleted on their platform."""

    def __init__(self, store: Store, lease: Lease, clock: Clock) -> None:
        self._clock = clock
        self._gate: Gate = OpenGate()
        self._store = store
        self._lease = lease
        self._rung = asyncio.Event()
        self._rung.set()
        self._left = False
        self._taken: list[int] = list(lease.taken)
        self._dropped: set[int] = set()
        self._unreadable: list[Unreadable] = []
        self.back = Withdrawals()
        self.released = False

    def behind(self, gate: Gate) -> None:
        """Use this gate from now on."""
        self._gate = gate

    def ring(self, withdrawn: str = "") -> None:
        """Note new mail in the inbox; `withdrawn` is the message that it withdraws."""
        self._rung.set()
        if withdrawn:
            self.back.announce(withdrawn)

    @property
    def last_taken(self) -> int:
        """The row of the last message that this run took; 0 where it took none."""
        return self._taken[-1] if self._taken else 0

    @property
    def has_mail(self) -> bool:
        """Whether there may be unread mail."""
        return self._gate.may_have(self._left or self._rung.is_set())

    async def recall(self) -> None:
        """Load what an interrupted run had taken, and which of that was deleted."""
        if self._taken:
            for inbound, taken in await self._store.inbox.open(self._lease):
                if inbound.withdraws:
                    self.back.announced.add(inbound.withdraws)
                elif taken:
                    self.back.took(inbound)
            self.back.read(await self._store.inbox.withdrawn(self._lease, min(self._taken)))
            self.back.see()

    async def model(self) -> str:
        """The model that this run's message requests; empty: the session's."""
        found = await self._store.inbox.open(self._lease)
        gone = {each.withdraws for each, _ in found}
        left = [(each, took) for each, took in found if not (each.answers or each.withdraws or each.identity in gone)]
        taken = [Mail(id=0, inbound=each) for each, took in left if took]
        own = taken or due([Mail(id=0, inbound=each) for each, _ in left], waits=False, took=False)
        return next((letter.inbound.model for letter in own), "")

    async def wait(self) -> None:
        """Return when there was a wake-up since the last look."""
        await self._rung.wait()
        await self._gate.ready()

    async def read(self) -> tuple[Mail, ...]:
        """The waiting mail, in order of arrival."""
        if not self.has_mail:
            return ()
        wanted = await self._gate.accepted()
        self._rung.clear()
        self._left = True  # Until it is read: whoever is stopped in the middle of this look has to look again.
        waiting = await self._store.inbox.waiting(self._lease)
        known = self._dropped.union(self._taken)  # which may not be committed yet
        fresh = [(row, each) for row, each in waiting if row not in known]
        self._unreadable = [each for _, each in fresh if isinstance(each, Unreadable)]
        mail = [
            Mail(id=row, inbound=each)
            for row, each in fresh
            if isinstance(each, Inbound) and (wanted is None or each.source_id in wanted)
        ]
        self._left = len(mail) < len(fresh)
        if mail:
            self._gate.found([letter.inbound.source_id for letter in mail])
        return tuple(mail)

    def leave(self) -> None:
        """Leave read mail for the next turn."""
        self._left = True

    def take(self, mail: Sequence[Mail]) -> Change:
        """The change that marks mail as taken by this run, for the commit of its messages."""
        ids = [letter.id for letter in mail]
        self._taken.extend(ids)
        for letter in mail:
            self.back.took(letter.inbound)
        self.back.see()
        return lambda tx: self._store.inbox.take(tx, self._lease, ids)

    def drop(self, mail: Sequence[Mail]) -> Change:
        """The change that ends withdrawn mail and the mail that withdrew it, for the commit that records it."""
        at = self._clock.now()
        ids = [letter.id for letter in mail]
        self._dropped.update(ids)
        self.back.gone.update(letter.inbound.withdraws for letter in mail if letter.inbound.withdraws)
        return lambda tx: self._store.inbox.drop(tx, self._lease, ids, at)

    def set_aside(self) -> tuple[list[str], Sequence[Change]]:
        """The unreadable mail of the last look as sentences, and the change that ends it."""
        at, found = self._clock.now(), self._unreadable
        self._unreadable = []
        self._dropped.update(each.id for each in found)

        def change(each: Unreadable) -> Change:
            return lambda tx: self._store.inbox.drop(tx, self._lease, [each.id], at, str(each))

        return [str(each) for each in found], [change(each) for each in found]

    def complete(self, ending: Ending, reason: str = "", *, lapsed: bool = False) -> Change:
        """The change that ends every message of this run, for the commit of the run's end; `released` then says
        whether the lane was released or more mail waits. With `lapsed` also the mail that withdrew them."""
        at, back = self._clock.now(), tuple(self.back.words) if lapsed else ()

        async def change(tx: Transaction) -> None:
            if back:
                await self._store.inbox.forget(tx, self._lease, back, at)
            self.released = await self._store.inbox.finish(tx, self._lease, self._taken, ending, reason=reason, at=at)

        return change

    def next_run(self) -> None:
        """Start another run on the same lease, because mail came too late for the one that ended."""
        self._taken = []
        self.back.next_run()
        self._rung.set()
