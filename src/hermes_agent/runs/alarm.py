"""The alarm of a process: one timer over all that is due at a time (cron, cards, goals), woken by the store's rings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from hermes_agent.core.clock import Clock
from hermes_agent.host.tasks import cancelled, spawn

LONGEST = 60.0
"""Seconds of one sleep: a clock that is set, or a machine that was suspended, is noticed after so long."""
SHORTEST = 0.05
"""Seconds; a source that says "due" and does nothing is not asked without end."""
AFTER_FAILURE = 5.0
log = logging.getLogger(__name__)


class Source(Protocol):
    """Something that is due at times.

    - `next_due` is the time (seconds since 1970) at which it wants to be called; None: it waits for a ring alone;
    - `fire` does or starts what is due by now, and returns soon; each row is claimed, so that the sources of several
      processes may fire at the same time;
    - `close` leaves what it started to others.
    """

    async def next_due(self) -> float | None: ...

    async def fire(self) -> None: ...

    async def close(self) -> None: ...


class Alarm:
    """Calls the sources when they are due. Every process that serves has one: the rows are claimed, so nobody has to be
    elected, and a peer's death delays nothing. `clock` gives the time of the machine."""

    def __init__(self, clock: Clock, sources: Callable[[], Sequence[Source]]) -> None:
        self._clock, self._sources = clock, sources
        self._rung = asyncio.Event()
        self._rung.set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to call the sources."""
        self._task = spawn(self._work(), name="alarm")

    def ring(self) -> None:
        """Ask the sources again: rows may have changed."""
        self._rung.set()

    async def close(self) -> None:
        """Call no source any more, and have each leave what it started."""
        if self._task is not None:
            await cancelled((self._task,))
            for source in self._sources():
                await source.close()

    async def _work(self) -> None:
        while True:
            self._rung.clear()
            # Boundary: one job.
            try:
                pause = await self._look()
            except Exception:
                log.exception("the alarm failed")
                pause = AFTER_FAILURE
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):  # `wait_for` may lose a cancellation that comes with a ring.
                    await self._rung.wait()

    async def _look(self) -> float | None:
        """Fire what is due; the seconds until the next look, None where only a ring brings one."""
        nearest: float | None = None
        for source in self._sources():
            due = await source.next_due()
            if due is not None and due <= self._clock.now():
                await source.fire()
                due = await source.next_due()
            if due is not None:
                nearest = due if nearest is None else min(nearest, due)
        return None if nearest is None else min(LONGEST, max(SHORTEST, nearest - self._clock.now()))
