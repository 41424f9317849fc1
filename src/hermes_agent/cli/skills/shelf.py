"""Shared by the skill commands: opening library and hub, download progress, and shell completion of names."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, TextIO, TypeVar

from hermes_agent.app.operations.skills import open_skills
from hermes_agent.cli.operation import ask
from hermes_agent.cli.output import clean, remark
from hermes_agent.cli.surface import Surface
from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.skills.changes import By
from hermes_agent.skills.hub.installing import Hub
from hermes_agent.skills.hub.sources import Sources, Taps

if TYPE_CHECKING:
    from hermes_agent.app.operations.access import Access, HomeSystem

T = TypeVar("T")
PATIENCE = 2.0
AGAIN = 10.0
"""Seconds between two lines where they cannot be written over."""


def with_hub(surface: Surface, act: Callable[[Hub, By], Awaitable[T]], *, alone: bool = False) -> T:
    """Open the hub, run `act` as the local person (`alone`: under the installation lock), and close it. Shows progress
    after two seconds, and sources that did not answer."""
    waiting = Waiting()

    async def run(access: Access[HomeSystem]) -> T:
        async with open_skills(access) as shelf:
            sources = Sources(
                taps=Taps(shelf.writer.home),
                cache=surface.home.cache,
                clock=access.system.clock,
                variables=surface.variables,
                tell=waiting.hear,
            )
            hub = Hub(sources=sources, writer=shelf.writer, clock=access.system.clock)
            try:
                async with hub.alone() if alone else nullcontext():
                    return await act(hub, shelf.by)
            finally:
                waiting.end()
                for problem in sources.problems:
                    remark(problem)

    return ask(surface, run)


class Waiting:
    """Progress display for downloads of skills: one line that is rewritten on a terminal, a few lines in a file."""

    def __init__(self, clock: Clock | None = None, out: TextIO | None = None) -> None:
        self._clock = clock or SystemClock()
        self._out = out or sys.stderr
        self._began = self._clock.monotonic()
        self._told = 0.0
        self._shown = False

    def hear(self, name: str, size: int) -> None:
        """Report a download's progress in bytes."""
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
        """Clear the line."""
        if self._shown:
            self._out.write("\r\x1b[K")
            self._shown = False
        self._began = self._clock.monotonic()
