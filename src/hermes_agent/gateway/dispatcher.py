"""Event dispatcher of a channel: processes each chat's events in order and chats in parallel; an urgent command
overtakes earlier events that take long. Cursors record up to where all are processed."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from hermes_agent.app.command_queue import bypasses_queue, parse_command
from hermes_agent.gateway.channel import Kept
from hermes_agent.host.tasks import first_of

MOST = 500
"""Events of one channel that are in memory; then no more are read from the platform."""
PATIENCE = 0.1
"""Seconds that a control waits while nothing of what its chat said before it gets on, and a cursor for what is being
taken in."""
LOOKS = 10
"""So often it waits at most."""
COMMAND = re.compile(r"\s*(?:<?@\S+\s+)?(/\w+)")
"""A command, maybe behind the name of the agent."""

MARK = "mark"

Job = Callable[[], Awaitable[object]]
M = TypeVar("M")


class Dispatcher:
    """Runs the jobs of one channel, in order per chat, except that an urgent command may overtake slow ones."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._last: dict[str, tuple[asyncio.Task[None], ...]] = {}
        self._jobs: set[asyncio.Task[None]] = set()
        self._finished: Counter[str] = Counter()
        self._room = asyncio.Semaphore(MOST)

    async def put(self, chat: str, job: Job, *, control: bool = False) -> None:
        """Queue a job behind those of its chat; a `control` skips ahead if they take long. Blocks while too many are
        queued."""
        await self._room.acquire()
        before = self._last.get(chat, ())
        task = self._group.create_task(self._done(chat, job, before, control=control))
        self._jobs.add(task)
        self._last[chat] = (*before, task) if control else (task,)
        task.add_done_callback(lambda _: self._forget(chat, task))

    async def settled(self) -> bool:
        """Wait briefly for all jobs. Returns whether none is left."""
        if self._jobs:
            await asyncio.wait(self._jobs, timeout=PATIENCE)
        return not self._jobs

    async def _done(self, chat: str, job: Job, before: Sequence[asyncio.Task[None]], *, control: bool) -> None:
        looks = LOOKS if control else 0
        while not all(task.done() for task in before):
            finished = self._finished[chat]
            await asyncio.wait(before, timeout=PATIENCE if control else None)
            looks -= 1
            if control and (not looks or self._finished[chat] == finished):
                break
        if not any(task.done() and (task.cancelled() or task.exception()) for task in before):
            await job()  # Otherwise all of it ends.

    def _forget(self, chat: str, task: asyncio.Task[None]) -> None:
        self._room.release()
        self._finished[chat] += 1
        self._jobs.discard(task)
        if left := tuple(each for each in self._last.get(chat, ()) if each is not task):
            self._last[chat] = left
        else:
            self._last.pop(chat, None)
            del self._finished[chat]


@asynccontextmanager
async def dispatching() -> AsyncIterator[Dispatcher]:
    """Context manager: a dispatcher whose jobs finish before exit. A job's error ends the block and is raised as is;
    unprocessed events are delivered again by the platform."""
    try:
        async with asyncio.TaskGroup() as group:
            yield Dispatcher(group)
    except BaseExceptionGroup as failed:
        raise first_of(failed) from None


def is_control(text: str) -> bool:
    """Whether a text is a command that runs ahead of the queue."""
    if (found := COMMAND.match(text)) is None:
        return False
    name, is_known = parse_command(found[1])
    return name == "stop" or (is_known and bypasses_queue(name))


class Cursor(Generic[M]):
    """Stream position up to which all events are processed: `mark` is the last one without a gap before it."""

    def __init__(self, mark: M) -> None:
        self.mark = mark
        self._open: deque[tuple[M, list[bool]]] = deque()

    def begin(self, mark: M) -> Callable[[], None]:
        """Register an event with this mark. Returns the callback for its completion."""
        taken = [False]
        self._open.append((mark, taken))

        def done() -> None:
            taken[0] = True
            while self._open and self._open[0][1][0]:
                self.mark = self._open.popleft()[0]

        return done


class KeptCursor:
    """A `Cursor` persisted in the store, for the next process."""

    Taken = Callable[[], Awaitable[None]]

    def __init__(self, kept: Kept, place: str, mark: str) -> None:
        self._kept = kept
        self._place = place
        self._cursor = Cursor(mark)

    @classmethod
    async def begin(cls, kept: Kept, place: str, first: str) -> KeptCursor:
        """Load the cursor of a place; `first` is the default mark."""
        return cls(kept, place, (await kept.of(place)).get(MARK, first))

    @property
    def mark(self) -> str:
        """The mark of the last processed event."""
        return self._cursor.mark

    def open(self, mark: str) -> Taken:
        """Register an event with this mark. Returns the callback for its completion."""
        done = self._cursor.begin(mark)

        async def taken() -> None:
            before = self.mark
            done()
            if self.mark != before:
                await self._kept.set(self._place, MARK, self.mark)

        return taken
