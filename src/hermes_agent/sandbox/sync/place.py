"""A place with files of its own, kept alike with those here: around each command, what changed is copied."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hermes_agent.sandbox.place import Command, Ended, Place, PlaceFailed, Running
from hermes_agent.sandbox.sync.here import Rules
from hermes_agent.sandbox.sync.syncing import Sync
from hermes_agent.sandbox.sync.there import Shell, There


class SyncedPlace:
    """See `Place`. `place` runs the commands; `shell` reaches the files there. `folder` is below what folders are kept
    there (empty: under their own path); `states` keeps what is known of each."""

    def __init__(self, place: Place, shell: Shell, rules: Rules, states: Path, *, folder: str = "") -> None:
        self._place = place
        self._shell = shell
        self._rules = rules
        self._states = states
        self._folder = folder.rstrip("/")
        self._syncs: dict[str, Sync] = {}
        self._commands: dict[str, Command] = {}

    @property
    def name(self) -> str:
        return self._place.name

    def waits_for(self, folder: str) -> str:
        return self._syncs[folder].doing if folder in self._syncs else ""

    async def start(self, exec_id: str, command: Command) -> Running:
        sync = self._sync(command.folder)
        notes = await sync.up()
        there = replace(command, folder=self._there(command.folder), workdir=self._inside(command))
        return SyncedRunning(await self._place.start(exec_id, there), command, sync, notes)

    async def attach(self, exec_id: str) -> Running | None:
        running = await self._place.attach(exec_id)
        if running is None:
            return None
        here = running.command.folder.removeprefix(self._folder)
        return SyncedRunning(running, replace(running.command, folder=here), self._sync(here), ())

    async def list(self, group: str) -> tuple[str, ...]:
        return await self._place.list(group)

    async def directory(self, shell: str) -> str:
        there = await self._place.directory(shell)
        return there.removeprefix(self._folder) if there.startswith(f"{self._folder}/") else there

    async def exported(self, shell: str) -> Mapping[str, str]:
        return await self._place.exported(shell)

    async def get(self, path: str, folder: str = "") -> bytes:
        return await self._place.get(path, folder)

    async def put(self, path: str, content: bytes, folder: str = "") -> None:
        await self._place.put(path, content, folder)

    async def prune(self, minutes: int, megabytes: int) -> int:
        return await self._place.prune(minutes, megabytes)

    async def close(self) -> None:
        await self._place.close()

    def _there(self, folder: str) -> str:
        return f"{self._folder}{folder}"

    def _inside(self, command: Command) -> str:
        is_absolute = command.workdir == command.folder or command.workdir.startswith(f"{command.folder}/")
        return self._there(command.workdir) if is_absolute else command.workdir

    def _sync(self, folder: str) -> Sync:
        """Raises `PlaceFailed` for a folder that is more than a project's."""
        if folder not in self._syncs:
            root = Path(folder)
            if Path.home().is_relative_to(root) or len(root.parts) < 3:
                raise PlaceFailed(
                    f"{folder} is too much to copy to another machine.",
                    hint="Work in a project's folder, or set `terminal.ssh.sync: false`.",
                )
            state = self._states / f"{hashlib.sha256(folder.encode('utf-8', 'surrogateescape')).hexdigest()[:20]}.json"
            there = There(shell=self._shell, folder=self._there(folder), rules=self._rules)
            self._syncs[folder] = Sync(root=root, there=there, rules=self._rules, state=state)
        return self._syncs[folder]


class SyncedRunning:
    """See `Running`; when the command has ended, what it changed is here."""

    def __init__(self, running: Running, command: Command, sync: Sync, notes: tuple[str, ...]) -> None:
        self.command = command
        self._running = running
        self._sync = sync
        self._notes = notes
        self._has_come = False

    @property
    def exec_id(self) -> str:
        return self._running.exec_id

    @property
    def cwd(self) -> str:
        return self._running.cwd

    @property
    def output_path(self) -> str:
        return self._running.output_path

    async def wait(self) -> Ended:
        return await self._with_files(await self._running.wait())

    async def poll(self) -> Ended | None:
        ended = await self._running.poll()
        return None if ended is None else await self._with_files(ended)

    async def size(self) -> int:
        return await self._running.size()

    async def read(self, start: int, limit: int) -> bytes:
        return await self._running.read(start, limit)

    async def cover(self, start: int, data: bytes) -> None:
        await self._running.cover(start, data)

    async def write(self, data: bytes) -> None:
        await self._running.write(data)

    async def signal(self, number: int) -> None:
        await self._running.signal(number)

    async def kill(self) -> bool:
        return await self._running.kill()

    async def _with_files(self, ended: Ended) -> Ended:
        if not self._has_come:
            self._has_come = True
            try:
                self._notes += await self._sync.down()
            except PlaceFailed as error:
                self._notes += (f"What it changed was not copied here: {error}",)
        return replace(ended, notes=self._notes)
