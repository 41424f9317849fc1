"""Event bus: delivers events of sessions to readers; a slow reader delays nobody."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import ParamSpec

from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Entry, Seen, is_live

log = logging.getLogger(__name__)

READER_ROOM = 2_000
"""Live events that a reader may be behind before it loses live ones (durable ones it reads from the log)."""

GLANCE = 0.5
"""Seconds between looks into the log of a session that another process may be working on, while somebody watches it."""

LATE = 5.0
"""Seconds after a failure in which whoever asked for what failed begins to listen."""

P = ParamSpec("P")
ReadLog = Callable[[str, int], Awaitable[Sequence[Entry]]]
Over = Callable[[], Awaitable[HermesError | None]]
"""Why nothing more comes, as an error; None where something may."""


async def never() -> None:
    """The default for `over`: the events never end by themselves."""


def notify(listener: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call a listener; its failure is logged and affects neither the run nor other listeners."""
    # Boundary: one event listener.
    try:
        listener(*args, **kwargs)
    except Exception:
        log.exception("a listener failed")


class Reader:
    """Queue of one reader. `lost` says that it overflowed and the reader must catch up from the log. Without `live`
    it gets durable events only."""

    def __init__(self, room: int, *, live: bool = True) -> None:
        self._room = room
        self._live = live
        self._waiting: deque[Seen] = deque()
        self._came = asyncio.Event()
        self._failure: HermesError | None = None
        self.lost = False

    def offer(self, seen: Seen) -> None:
        """Queue an event, or record an overflow."""
        if not self._live and is_live(seen.event):
            return
        if len(self._waiting) < self._room:
            self._waiting.append(seen)
        else:
            self.lost = True
        self._came.set()

    def fail(self, failure: HermesError) -> None:
        """End the events with this error, after all events before it."""
        self._failure = failure
        self._came.set()

    async def something(self, seconds: float) -> bool:
        """Whether an event is queued; waits at most `seconds` for one."""
        timer = asyncio.get_running_loop().call_later(seconds, self._came.set)
        try:
            await self._came.wait()
        finally:
            timer.cancel()
        if self._waiting or self._failure is not None:
            return True
        self._came.clear()
        return False

    def take(self) -> Seen:
        """The next event. Raises the error that ended the session's events."""
        if not self._waiting:
            raise self._failure or HermesError("The session's events ended.")
        seen = self._waiting.popleft()
        if not self._waiting and self._failure is None:
            self._came.clear()
        return seen

    @property
    def empty(self) -> bool:
        """Whether the queue is empty."""
        return not self._waiting


class EventBus:
    """Publishes events of sessions: those of runs in this process as they happen, others from the log. `is_here`
    tells which."""

    def __init__(
        self, read_log: ReadLog, is_here: Callable[[str], bool], *, room: int = READER_ROOM, glance: float = GLANCE
    ) -> None:
        self._readers: dict[str, set[Reader]] = defaultdict(set)
        self._failed: dict[str, tuple[float, HermesError]] = {}
        self._read_log = read_log
        self._is_here = is_here
        self._listeners: list[Callable[[Seen], None]] = []
        self._room = room
        self._glance = glance

    def overhear(self, listener: Callable[[Seen], None]) -> None:
        """Call `listener` with every event of every session of this process from now on; it must not block."""
        self._listeners.append(listener)

    def publish(self, seen: Seen) -> None:
        """Deliver an event to the session's readers; never blocks."""
        self._failed.pop(seen.session, None)
        for listener in self._listeners:
            notify(listener, seen)
        for reader in self._readers.get(seen.session, ()):
            reader.offer(seen)

    def fail(self, session: str, failure: HermesError) -> None:
        """End the events of the session's readers with an error: the log cannot be written any more. A reader that
        comes within seconds gets it too, unless another event happens before."""
        for reader in (readers := self._readers.get(session, ())):
            reader.fail(failure)
        now = asyncio.get_running_loop().time()
        self._failed = {each: known for each, known in self._failed.items() if now - known[0] < LATE}
        if not readers:
            self._failed[session] = now, failure

    def start_run(self, session: str) -> None:
        """Note a new request in a session: its readers do not get the failure of an earlier run."""
        self._failed.pop(session, None)

    async def watch(
        self, session: str, after: int = 0, over: Over = never, *, live: bool = True
    ) -> AsyncGenerator[Seen, None]:
        """Every durable event of the session with a number above `after`, each once and in order, and, where `live`,
        the live ones between them as long as the reader keeps up. Ends when the reader leaves, or with what `over` says
        once there is silence and no run here."""
        reader = Reader(self._room, live=live)
        self._readers[session].add(reader)
        at, failure = self._failed.pop(session, (0.0, None))
        if failure is not None and asyncio.get_running_loop().time() - at < LATE:
            reader.fail(failure)
        number = after
        try:
            for seen in await self._missed(session, number):
                number = seen.number
                yield seen
            while True:
                for seen in await self._next(reader, session, number, over):
                    number = seen.number
                    yield seen
        finally:
            self._readers[session].discard(reader)
            if not self._readers[session]:
                del self._readers[session]

    async def _next(self, reader: Reader, session: str, number: int, over: Over) -> list[Seen]:
        """What a reader that is at `number` is shown next; one that lost its place is led through the log first."""
        if reader.empty and not await reader.something(self._glance):
            return [] if self._is_here(session) else await self._looked(session, number, over)
        seen = reader.take()
        live, missed = is_live(seen.event), list[Seen]()
        if (reader.lost and reader.empty) or seen.number > (number if live else number + 1):
            reader.lost = False
            missed = await self._missed(session, number)
            number = missed[-1].number if missed else number
        is_new = seen.number == number if live else seen.number > number
        return [*missed, seen] if is_new else missed

    async def _looked(self, session: str, number: int, over: Over) -> list[Seen]:
        why = await over()  # Before the log is read: what ended it stands there by then.
        missed = await self._missed(session, number)
        if why is not None and not missed:
            raise why
        return missed

    async def _missed(self, session: str, after: int) -> list[Seen]:
        return [
            Seen(session=session, number=entry.number, run=entry.run, at=entry.at, event=entry.event)
            for entry in await self._read_log(session, after)
        ]
