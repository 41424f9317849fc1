"""Telling on standard error what takes long: nothing for two seconds, then what is done and how far it is."""

from __future__ import annotations

import sys
from typing import TextIO

from hermes_agent.cli.output import clean
from hermes_agent.core.clock import Clock, SystemClock

PATIENCE = 2.0
AGAIN = 10.0
"""Seconds between two lines where they cannot be written over."""


class Waiting:
    """One line that is written over at a terminal, and a few lines in a file."""

    def __init__(self, clock: Clock | None = None, out: TextIO | None = None) -> None:
        self._clock = clock or SystemClock()
        self._out = out or sys.stderr
        self._began = self._clock.monotonic()
        self._told = 0.0
        self._shown = False

    def hear(self, name: str, size: int) -> None:
        """Something is being fetched, and so many bytes of it have come."""
        now = self._clock.monotonic()
        waited = now - self._began
        if waited < PATIENCE:
            return
        line = f"Fetching {clean(name)}: {size / 1e6:.1f} MB, {waited:.0f} s"
        if self._out.isatty():
            self._out.write(f"\r\x1b[K{line}")
            self._out.flush()
            self._shown = True
        elif not self._told or now - self._told >= AGAIN:
            self._out.write(f"{line}\n")
            self._told = now

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            self._out.write("\r\x1b[K")
            self._shown = False
        self._began = self._clock.monotonic()
