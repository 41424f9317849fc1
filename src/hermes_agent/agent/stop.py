"""Cancels a run from outside, whatever it is doing: by a person's stop or the deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from hermes_agent.core.events import Outcome, RunEnded

NEW_MESSAGE = "interrupted by a new message"
"""The reason of a stop that makes way for what somebody has just said."""
WITHDRAWN = "what was asked was deleted"
"""The reason of a stop where nothing is left to answer; nothing is said about it."""
TIME_UP = "its time is up"
"""The reason of a stop that stands for the clock."""

Strike = Callable[[], None]
When = Callable[[str, Strike], None]
"""Is told why a run is to end, and strikes when it may; a recording waits for a place that a replay can find again."""


def at_once(reason: str, strike: Strike) -> None:  # noqa: ARG001  the shape of `When`
    """The default for `when`: stop immediately."""
    strike()


class CutShort(Exception):
    """Raised inside a run when its `StopSwitch` ends it (a stop, or the deadline). Not `TimeoutError`, which an
    unresponsive disk or host also raises."""


class StopSwitch:
    """Ends one run from outside, by a stop or at its deadline: cancels the code inside `within`. `when` chooses the
    moment of a stop; a stop before the run started ends it as it starts."""

    def __init__(self, when: When = at_once) -> None:
        self._when = when
        self._scope: asyncio.Timeout | None = None
        self._reason = ""
        self._struck: float | None = None

    @property
    def stopped(self) -> bool:
        """Whether the run was stopped, and not by the deadline."""
        return bool(self._reason)

    @property
    def strikes(self) -> bool:
        """Whether it ends the run just now. A run that is left to another process is cancelled without it."""
        return self._struck is not None

    @property
    def makes_way(self) -> bool:
        """Whether the run was stopped for a new message."""
        return self._reason == NEW_MESSAGE

    @property
    def withdrawn(self) -> bool:
        """Whether the run was stopped because all of its messages were deleted."""
        return self._reason == WITHDRAWN

    @property
    def overdue(self) -> float:
        """Seconds since the run should have ended; 0 where it is not overdue."""
        return 0.0 if self._struck is None else time.monotonic() - self._struck

    def stop(self, reason: str = "stopped") -> None:
        """Stop the run. Callable at any time and repeatedly, from the run's event loop."""
        self._when(reason, partial(self._strike, reason))

    def _strike(self, reason: str) -> None:
        self._reason = self._reason or ("" if reason == TIME_UP else reason)
        self._struck = self._struck or time.monotonic()
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def within(self, seconds: float | None) -> AsyncIterator[None]:
        """Raise `CutShort` out of the block when stopped or after so many seconds; at its start if stopped before."""
        if self.stopped:
            raise CutShort
        loop = asyncio.get_running_loop()
        clock = None if seconds is None else loop.call_later(seconds, self.stop, TIME_UP)
        self._scope = scope = asyncio.timeout(None)
        try:
            async with scope:
                yield
        except TimeoutError as error:
            if scope.expired():
                raise CutShort from error
            raise
        finally:
            self._scope = self._struck = None
            if clock is not None:
                clock.cancel()

    def verdict(self, turns: int) -> RunEnded:
        """The end of a run that this switch cut short."""
        if self.withdrawn:
            return RunEnded(outcome=Outcome.STOPPED, text="", turns=turns, reason=WITHDRAWN)
        if self.stopped:
            return RunEnded(outcome=Outcome.STOPPED, text="Stopped.", turns=turns, reason=self._reason)
        text = "Stopped: the time limit (`agent.max_seconds`) was reached."
        return RunEnded(outcome=Outcome.LIMIT, text=text, turns=turns, reason="time limit", error="LimitReached")
