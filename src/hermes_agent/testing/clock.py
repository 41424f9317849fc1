"""Fake clock that a test advances by hand, or that jumps to the next sleeper by itself."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

SETTLE = 5  # passes of the event loop in which whoever was woken may run and sleep again


class FakeClock:
    """A `Clock` that stands still until `advance`; sleepers wake in the order of their deadlines.

    With `auto` it jumps to the earliest sleeper once the event loop is idle: only for code that waits for nothing
    but sleeps, not beside real sockets or processes.
    """

    def __init__(self, now: float = 1_700_000_000.0, *, auto: bool = False) -> None:
        self._now = now
        self._monotonic = 0.0
        self._auto = auto
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._jumping = False

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    @property
    def sleepers(self) -> int:
        """Number of sleepers."""
        return sum(not future.done() for _, _, future in self._sleepers)

    def set_now(self, now: float) -> None:
        """Set only the wall clock, also backwards, like an administrator or NTP."""
        self._now = now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), future))
        self._jump_later()
        await future

    async def advance(self, seconds: float) -> None:
        """Advance the time; each sleeper wakes at its own deadline."""
        end = self._monotonic + seconds
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._wake_next()
            await self._settle()
        self._move_to(end)

    def _jump_later(self, passes: int = SETTLE) -> None:
        if self._auto and not self._jumping:
            self._jumping = True
            asyncio.get_running_loop().call_soon(self._jump, passes)

    def _jump(self, passes: int) -> None:
        self._jumping = False
        if passes:
            self._jump_later(passes - 1)
        elif self._sleepers:
            self._wake_next()
            self._jump_later()

    def _wake_next(self) -> None:
        due, _, future = heapq.heappop(self._sleepers)
        if not future.done():
            self._move_to(due)
            future.set_result(None)

    def _move_to(self, moment: float) -> None:
        self._now += moment - self._monotonic
        self._monotonic = moment

    async def _settle(self) -> None:
        for _ in range(SETTLE):
            await asyncio.sleep(0)
