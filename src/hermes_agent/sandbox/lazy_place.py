"""The place that the settings chose, made when the first command comes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import Command, Place, PlaceFailed, Running

KEPT_MINUTES, KEPT_MB = 7 * 24 * 60, 4000


def lazy_place(name: str, make: Callable[[], Place]) -> Place:
    """A place that costs nothing until it is used: `make` is called once, before the first command; beside it the
    records of commands that ended a week ago are forgotten, and the oldest where they take more than 4 GB."""
    return cast("Place", _LazyPlace(name, make))


class _LazyPlace:
    def __init__(self, name: str, make: Callable[[], Place]) -> None:
        self.name = name
        self._make = make
        self._made: Place | None = None
        self._pruned = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the place itself has
        self._made = self._made or self._make()
        return getattr(self._made, name)

    async def start(self, exec_id: str, command: Command) -> Running:
        running: Running = await self.__getattr__("start")(exec_id, command)
        if not self._pruned:
            self._pruned = True
            spawn(self._forget(), name="old commands")
        return running

    async def _forget(self) -> None:
        with suppress(PlaceFailed):  # the next command says what is wrong with the place
            await self.prune(KEPT_MINUTES, KEPT_MB)

    async def close(self) -> None:
        if self._made is not None:  # one that was never made has nothing open
            await self._made.close()
