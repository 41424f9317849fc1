"""A clock that a test moves by hand, or that jumps to the next sleeper by itself."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

SETTLE = 5  # passes of the event loop in which whoever was woken may run and sleep again


class FakeClock:
    """A `Clock` that stands still until `advance`; sleepers wake in the order in which they are due.

    With `auto` it jumps to the earliest sleeper as soon as the loop has run what was ready, for code whose only waits
    are sleeps; beside real sockets or processes that would be too early.
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
        """How many are asleep."""
        return sum(not future.done() for _, _, future in self._sleepers)

    def set_now(self, now: float) -> None:
        """Set the wall clock alone, as an administrator or a time server does, also backwards."""
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
        """Let that much time pass; everyone who is due on the way wakes at the moment when they are due."""
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
