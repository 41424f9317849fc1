"""Containers as a place, by the command of docker or podman: one for each folder where sessions work."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.containers import FULL_SECONDS, RECORDS, Maker
from hermes_agent.sandbox.folders import GroupFolders
from hermes_agent.sandbox.jail import Walls, check_workspace
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.remote_place import RemotePlace
from hermes_agent.sandbox.settings import ContainerSettings
from hermes_agent.sandbox.supervisor import words
from hermes_agent.sandbox.transport import Call, program_call

AGAIN_SECONDS = 30.0  # a container that died so soon after it was made anew is not made a third time


def build(
    folder: Path, settings: ContainerSettings, walls: Walls, env: Mapping[str, str], told: Mapping[str, str]
) -> RemotePlace:
    """The place, of what a `Maker` needs. Raises `PlaceFailed` where there is neither docker nor podman."""
    program = list(settings.command) or [_found()]
    maker = Maker(program=program, folder=folder, settings=settings, walls=walls, env=env, told=told)
    return RemotePlace("docker", Containers(maker))


def _found() -> str:
    found = shutil.which("docker") or shutil.which("podman")
    if found is None:
        raise PlaceFailed("There is neither docker nor podman here: install one, or set `terminal.place` to local.")
    return found


class Containers:
    """See `Ways`: the container of each folder, and the folder of each group."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._folders = GroupFolders(maker.folder / "groups")
        self._open: dict[str, Container] = {}
        self._latest = ""
        self._opening = asyncio.Lock()

    async def to(self, group: str, folder: str = "") -> Container | None:
        folder = await asyncio.to_thread(self._folders.of, group, folder)
        return await self._of(folder) if folder else None

    async def near(self, path: str, folder: str) -> Container:
        inside = [known for known in self._open if path == known or path.startswith(f"{known}/")]
        folder = folder or max(inside, key=len, default=self._latest)
        if not folder:
            raise PlaceFailed("No container runs yet.")
        return await self._of(folder)

    async def close(self) -> None:
        """Nothing is held open: containers run on, with their commands."""

    async def _of(self, folder: str) -> Container:
        async with self._opening:
            if not self._open:
                spawn(self._maker.reap(), name="unused containers")
            if folder not in self._open:
                await asyncio.to_thread(check_workspace, folder)
                container = Container(self._maker, folder)
                await container.begin()
                self._open[folder] = container
            self._latest = folder
            return self._open[folder]


class Container:
    """See `Transport`."""

    records = f"{RECORDS}/exec"

    def __init__(self, maker: Maker, folder: str) -> None:
        self._maker = maker
        self._folder = folder
        self._name = maker.name_of(folder)
        self._made_anew = float("-inf")
        self._restoring = asyncio.Lock()
        self.environment = dict(maker.told)

    async def begin(self) -> None:
        """Take the container that there is, or make it."""
        await self._maker.make(self._name, self._folder)

    async def call(self, arguments: Sequence[str], data: bytes = b"") -> Call:
        maker = self._maker
        await asyncio.to_thread(maker.touch, self._name)
        return await program_call([*maker.program, "exec", "-i", self._name, *words(arguments)], maker.env, data)

    async def restore(self) -> str:
        async with self._restoring:
            state = await self._maker.state(self._name, self._folder)
            is_full = state == "running" and not await self._maker.has_room(self._name)
            if state == "running" and not is_full:
                return ""
            most = self._maker.settings.processes
            full = f"had no room for another process for {FULL_SECONDS} s (`terminal.docker.processes`: {most})"
            why = full if is_full else f"stopped ({state})"
            now = asyncio.get_running_loop().time()
            if now - self._made_anew < AGAIN_SECONDS:
                raise PlaceFailed(f"The container of {self._folder} {why} again, right after it was made anew.")
            await self._maker.make(self._name, self._folder, is_full=is_full)
            self._made_anew = now
        return (
            f"The container {why} and was made anew. Lost: whatever ran in it, and files outside of "
            f"{self._folder}. Kept: files in {self._folder}, the working directory and exported variables, the output "
            "of earlier commands."
        )
