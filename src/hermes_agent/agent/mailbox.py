"""A session's mailbox: waiting mail, what this run took of it, and how each message was completed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field
from typing import Protocol

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Busy, Inbound
from hermes_agent.core.messages import Text
from hermes_agent.store.database import Store
from hermes_agent.store.inbox import Ending, Unreadable
from hermes_agent.store.leases import Lease
from hermes_agent.store.transaction import Transaction


def nobody() -> None:
    """Nobody is told."""


@dataclass(slots=True, kw_only=True)
class Withdrawals:
    """`words` maps the messages that a run took to their text. `gone` are those whose deletion the run has read,
    `announced` those of which this process was notified; `overtaken` is called when every message that the run
    took was deleted."""

    words: dict[str, Text | None] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    announced: set[str] = field(default_factory=set)
    overtaken: Callable[[], None] = nobody

    @property
    def lapsed(self) -> bool:
        """Whether all that the run was to answer was deleted, as far as it has read."""
        return bool(self.gone) and self.words.keys() <= self.gone

    def took(self, inbound: Inbound) -> None:
        """The run answers this."""
        if not inbound.answers:
            self.words[inbound.identity] = next(
                (part for part in reversed(inbound.parts) if isinstance(part, Text)), None
            )

    def announce(self, withdrawn: str) -> None:
        """The message of that identity was deleted; the mail that says so is in the inbox."""
        self.announced.add(withdrawn)
        self.see()

    def read(self, withdrawn: Iterable[str]) -> None:
        """The run had read, before it was interrupted, that these were deleted."""
        self.gone.update(self.words.keys() & set(withdrawn))
        self.announced.update(self.gone)

    def see(self) -> None:
        """Say so where nothing is left."""
        if self.words and self.words.keys() <= self.announced:
            self.overtaken()

    def next_run(self) -> None:
        """Another run begins, with other messages."""
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
    """The mail that is read now, with the new texts of it. What is to be `alone` is read by a run that `took` nothing
    yet; whatever came behind it waits until the next look, but for what interrupts: that is read before it."""
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
    """Lets every look at the inbox find all waiting mail."""

    def may_have(self, rung: bool) -> bool:
        """As the ring says."""
        return rung

    async def ready(self) -> None:
        """At once."""

    async def accepted(self) -> frozenset[str] | None:
        """All that is there."""
        return None

    def found(self, source_ids: Sequence[str]) -> None:
        """Nothing is kept."""


class Mailbox:
    """The mail of one lane under its lease. Queries the store only after a wake-up or when something was left over.

    `back` tracks which messages were deleted on their platform.
    """

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
        """From now on, find what this gate lets through."""
        self._gate = gate

    def ring(self, withdrawn: str = "") -> None:
        """Somebody put mail into the inbox; it takes the message `withdrawn` back."""
        self._rung.set()
        if withdrawn:
            self.back.announce(withdrawn)

    @property
    def last_taken(self) -> int:
        """The row of the last message that this run took; 0 where it took none."""
        return self._taken[-1] if self._taken else 0

    @property
    def has_mail(self) -> bool:
        """Whether there may be mail that was not taken."""
        return self._gate.may_have(self._left or self._rung.is_set())

    async def recall(self) -> None:
        """Learn what an interrupted run had taken, and what of that was taken back."""
        if self._taken:
            for inbound, taken in await self._store.inbox.open(self._lease):
                if inbound.withdraws:
                    self.back.announced.add(inbound.withdraws)
                elif taken:
                    self.back.took(inbound)
            self.back.read(await self._store.inbox.withdrawn(self._lease, min(self._taken)))
            self.back.see()

    async def model(self) -> str:
        """The model that the message wants which this run answers; empty: the session's."""
        found = await self._store.inbox.open(self._lease)
        gone = {each.withdraws for each, _ in found}
        left = [(each, took) for each, took in found if not (each.answers or each.withdraws or each.identity in gone)]
        taken = [Mail(id=0, inbound=each) for each, took in left if took]
        own = taken or due([Mail(id=0, inbound=each) for each, _ in left], waits=False, took=False)
        return next((letter.inbound.model for letter in own), "")

    async def wait(self) -> None:
        """Return when somebody rang since the last look."""
        await self._rung.wait()
        await self._gate.ready()

    async def read(self) -> tuple[Mail, ...]:
        """The mail that waits, in the order of arrival."""
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
        """Mail was read and not taken: it is looked at again at the next turn."""
        self._left = True

    def take(self, mail: Sequence[Mail]) -> Change:
        """Mark mail as taken by this run, as part of the commit of its messages."""
        ids = [letter.id for letter in mail]
        self._taken.extend(ids)
        for letter in mail:
            self.back.took(letter.inbound)
        self.back.see()
        return lambda tx: self._store.inbox.take(tx, self._lease, ids)

    def drop(self, mail: Sequence[Mail]) -> Change:
        """Mark as ended what was taken back and the mail that did so, as part of the commit that tells of it."""
        at = self._clock.now()
        ids = [letter.id for letter in mail]
        self._dropped.update(ids)
        self.back.gone.update(letter.inbound.withdraws for letter in mail if letter.inbound.withdraws)
        return lambda tx: self._store.inbox.drop(tx, self._lease, ids, at)

    def set_aside(self) -> tuple[list[str], Sequence[Change]]:
        """What the last look found that cannot be read, as sentences, and what ends it, as part of the next commit."""
        at, found = self._clock.now(), self._unreadable
        self._unreadable = []
        self._dropped.update(each.id for each in found)

        def change(each: Unreadable) -> Change:
            return lambda tx: self._store.inbox.drop(tx, self._lease, [each.id], at, str(each))

        return [str(each) for each in found], [change(each) for each in found]

    def complete(self, ending: Ending, reason: str = "", *, lapsed: bool = False) -> Change:
        """The end of every message that this run took, as part of the run's end; `released` tells afterwards whether
        the lane was given back or more mail waits. With `lapsed` also of the mail that took them back."""
        at, back = self._clock.now(), tuple(self.back.words) if lapsed else ()

        async def change(tx: Transaction) -> None:
            if back:
                await self._store.inbox.forget(tx, self._lease, back, at)
            self.released = await self._store.inbox.finish(tx, self._lease, self._taken, ending, reason=reason, at=at)

        return change

    def next_run(self) -> None:
        """The lane was kept because mail came too late for the run that ended: it is looked at anew."""
        self._taken = []
        self.back.next_run()
        self._rung.set()
