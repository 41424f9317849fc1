"""When a stop strikes a run that is recorded or replayed: where the run waits for something from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from hermes_agent.core.clock import Clock
from hermes_agent.replay.cassette.lines import StopAsked
from hermes_agent.replay.cassette.tracks import ReplayedTrack, is_cut
from hermes_agent.replay.cassette.writing import CassetteFile

LATEST = 0.5
"""Seconds after which a stop strikes, whatever the run is doing."""

Strike = Callable[[], None]


class RecordedStops:
    """The stops of one session.

    A replay has no milliseconds: it can strike where a model, a tool or a person is waited for, and nowhere else. So a
    stop that comes while the run is busy with itself waits for the next such place, and is written down when it
    strikes; from then on nothing new comes in. One that finds no such place before the run ends is none.
    """

    def __init__(self, file: CassetteFile, track: str, machine: Clock) -> None:
        self._file = file
        self._track = track
        self._machine = machine
        self._waits: set[Hashable] = set()
        self._wanted: tuple[str, Strike] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begun = False
        self._struck = False

    def when(self, reason: str, strike: Strike) -> None:
        """Somebody, or the clock, wants the run to end."""
        if self._wanted is None:
            self._wanted = reason, strike
            self._observe()

    def begun(self) -> None:
        """A run has begun."""
        self._begun = True
        self._observe()

    def over(self) -> None:
        """The run has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._waits.clear()
        self._wanted, self._timer, self._begun, self._struck = None, None, False, False

    async def entered(self, what: Hashable) -> None:
        """The run waits for this from now on; a stop that was waiting for that strikes."""
        self._waits.add(what)
        self._observe()
        await self.passed()

    def left(self, what: Hashable) -> None:
        """It has come."""
        self._waits.discard(what)

    async def passed(self) -> None:
        """Return where nothing has struck; otherwise the caller is about to be cancelled."""
        if self._struck:
            await asyncio.sleep(LATEST)

    def _observe(self) -> None:
        if self._wanted is None or self._struck or not self._begun:
            return
        if self._waits:
            self._strike()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LATEST, self._strike)

    def _strike(self) -> None:
        if self._wanted is not None and not self._struck:
            self._struck = True
            reason, strike = self._wanted
            self._file.add(StopAsked(track=self._track, at=self._machine.now(), reason=reason))
            strike()


class ReplayedStops:
    """The stops of one session of a recording: only what struck then strikes."""

    def __init__(self, track: ReplayedTrack) -> None:
        self._track = track

    def when(self, reason: str, strike: Strike) -> None:  # noqa: ARG002  the recording says why
        """Strike where that comes next, and all before it is done: what stopped the run then may be sooner now."""
        coming = self._track.coming
        if self._track.has_stuck and (isinstance(coming, StopAsked) or (coming is not None and is_cut(coming))):
            strike()
