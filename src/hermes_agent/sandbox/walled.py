"""This machine as a place behind a wall, with a second set of records for commands that a person let run outside."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from hermes_agent.core.effects import Location
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import Jail
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import Command, Running

# Below the folder of caches. What a jailed command wrote is never read outside: each kind has records of its own.
JAILED, BARE, OUTSIDE = "jailed", "exec", "outside"


class WalledPlace:
    """Runs commands in the jail that `jail` builds, once, and those that say `outside` by `thin`; implements `Place`.

    An outside command begins in the working directory of its shell, with a clean environment: of what jailed commands
    left it takes nothing else, and it leaves nothing to them. Where `jail` gives none, all run without. `network`
    watches the connections of jailed commands alone.
    """

    name = "local"

    def __init__(
        self,
        *,
        folder: Path,
        env: Mapping[str, str],
        jail: Callable[[], Jail | None],
        thin: Callable[[], Jail],
        network: Network | None = None,
    ) -> None:
        self._folder, self._env, self._jail, self._network = folder, env, jail, network
        self._outside = LocalPlace(folder=folder / OUTSIDE, env=env, jail=thin)

    @cached_property
    def _inside(self) -> LocalPlace:
        jail = self._jail()
        records = self._folder / (JAILED if jail else BARE)
        if jail is None:
            return LocalPlace(folder=records, env=self._env)
        return LocalPlace(folder=records, env=self._env, jail=lambda: jail, network=self._network)

    async def _ready(self) -> LocalPlace:
        """The place behind the wall; the trial of a jail takes some milliseconds, once."""
        return self._inside if "_inside" in self.__dict__ else await asyncio.to_thread(lambda: self._inside)

    async def start(self, exec_id: str, command: Command) -> Running:
        inside = await self._ready()
        if not command.outside:
            return await inside.start(exec_id, command)
        left = await inside.directory(command.shell) if command.shell else ""
        base = left if await asyncio.to_thread(os.path.isdir, left) else command.folder
        workdir = str(Path(base, command.workdir))
        return await self._outside.start(exec_id, replace(command, workdir=workdir, shell="", keeps=False))

    async def attach(self, exec_id: str) -> Running | None:
        return await (await self._ready()).attach(exec_id) or await self._outside.attach(exec_id)

    async def location(self, folder: str) -> Location:
        inside, outside = await (await self._ready()).location(folder), await self._outside.location(folder)
        return replace(inside, place=f"{inside.place} {outside.place}")

    async def list(self, group: str) -> tuple[str, ...]:
        return (*await (await self._ready()).list(group), *await self._outside.list(group))

    async def directory(self, shell: str) -> str:
        return await (await self._ready()).directory(shell)

    def exported(self, shell: str) -> Mapping[str, str]:
        return self._inside.exported(shell)

    async def prune(self, minutes: int, megabytes: int) -> int:
        return await (await self._ready()).prune(minutes, megabytes) + await self._outside.prune(minutes, megabytes)

    def wall(self) -> str:
        return self._inside.wall()

    def waits_for(self, folder: str) -> str:
        return self._inside.waits_for(folder)

    async def close(self) -> None:
        if "_inside" in self.__dict__:
            await self._inside.close()
        await self._outside.close()
