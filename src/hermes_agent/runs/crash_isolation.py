"""Starts suspect runs one at a time, so that a crash points at one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hermes_agent.core.clock import Clock
from hermes_agent.store.leases import Lease

TRIAL = 10.0
"""Seconds that a suspect run has to itself; after that, the next suspect may start."""


class Waiting(Protocol):
    """A run, which may wait for a person."""

    @property
    def waits(self) -> bool: ...


class CrashIsolation:
    """Which suspect runs may start. `running` are the runs of this process."""

    def __init__(self, clock: Clock, running: Mapping[str, Waiting]) -> None:
        self._clock = clock
        self._running = running
        self._until: dict[str, float] = {}

    def begun(self, lease: Lease) -> None:
        """Note the start of a run under this lease."""
        if lease.suspect and not (lease.poison or lease.deadly):
            self._until[lease.lane] = self._clock.monotonic() + TRIAL

    def open(self) -> bool:
        """Whether another suspect may start now."""
        if not self._until:
            return True
        now = self._clock.monotonic()
        self._until = {lane: until for lane, until in self._until.items() if lane in self._running and until > now}
        return all(self._running[lane].waits for lane in self._until)
