"""The control that ends a run from outside, whatever it is doing: a person's stop, or the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hermes_agent.core.events import Outcome, RunEnded

NEW_MESSAGE = "interrupted by a new message"
"""The reason of a stop that makes way for what somebody has just said."""
TIME_UP = "its time is up"
"""The reason of a stop that stands for the clock, in a replay, where no time passes."""


class StopSwitch:
    """Cancels what runs `within` it. A stop before the run began ends it as it begins."""

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None
        self._reason = ""

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped the run (and not the clock)."""
        return bool(self._reason)

    @property
    def makes_way(self) -> bool:
        """Whether the run was stopped so that a new message is read."""
        return self._reason == NEW_MESSAGE

    def stop(self, reason: str = "stopped") -> None:
        """End the run now. Safe to call at any time and more than once, from the run's event loop."""
        self._reason = self._reason or ("" if reason == TIME_UP else reason)
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def within(self, seconds: float | None) -> AsyncIterator[None]:
        """Raise `TimeoutError` out of the block when stopped, or after so many seconds."""
        try:
            async with asyncio.timeout(0 if self.stopped else seconds) as scope:
                self._scope = scope
                yield
        finally:
            self._scope = None

    def verdict(self, turns: int) -> RunEnded:
        """How a run ended that this switch cut short."""
        if self.stopped:
            return RunEnded(outcome=Outcome.STOPPED, text="Stopped.", turns=turns, reason=self._reason)
        text = "Stopped: the time limit (`agent.max_seconds`) was reached."
        return RunEnded(outcome=Outcome.LIMIT, text=text, turns=turns, reason="time limit", error="LimitReached")
