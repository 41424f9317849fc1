"""The place that the settings chose, made when the first command comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property

from hermes_agent.core.effects import Location
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.place import Command, Place, PlaceFailed, Running

KEPT_MINUTES, KEPT_MB = 7 * 24 * 60, 4000


class LazyPlace:
    """A `Place` that costs nothing until it is used: `make` is called once, before the first command; beside it the
    records of commands that ended a week ago are forgotten, and the oldest where they take more than 4 GB."""

    def __init__(self, name: str, make: Callable[[], Place]) -> None:
        self._name = name
        self._make = make
        self._pruned = False

    @cached_property
    def _place(self) -> Place:
        return self._make()

    @property
    def name(self) -> str:
        return self._name

    async def start(self, exec_id: str, command: Command) -> Running:
        running = await self._place.start(exec_id, command)
        if not self._pruned:
            self._pruned = True
            spawn(self._forget(), name="old commands")
        return running

    async def _forget(self) -> None:
        with suppress(PlaceFailed):  # the next command says what is wrong with the place
            await self._place.prune(KEPT_MINUTES, KEPT_MB)

    async def attach(self, exec_id: str) -> Running | None:
        return await self._place.attach(exec_id)

    async def location(self, folder: str) -> Location:
        return await self._place.location(folder)

    async def list(self, group: str) -> tuple[str, ...]:
        return await self._place.list(group)

    async def directory(self, shell: str) -> str:
        return await self._place.directory(shell)

    def exported(self, shell: str) -> Mapping[str, str]:
        return self._place.exported(shell)

    async def get(self, path: str, folder: str = "") -> bytes:
        return await self._place.get(path, folder)

    async def put(self, path: str, content: bytes, folder: str = "") -> None:
        await self._place.put(path, content, folder)

    async def prune(self, minutes: int, megabytes: int) -> int:
        return await self._place.prune(minutes, megabytes)

    def waits_for(self, folder: str) -> str:
        return self._place.waits_for(folder)

    async def close(self) -> None:
        if "_place" in self.__dict__:  # one that was never made has nothing open
            await self._place.close()
