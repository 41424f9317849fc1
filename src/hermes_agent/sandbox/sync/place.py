"""A remote place with its own files: changed files are copied there before each command and back after it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Location
from hermes_agent.core.errors import HermesError
from hermes_agent.sandbox.place import Command, Deletion, Ended, PlaceFailed
from hermes_agent.sandbox.remote_place import RemoteCommand, RemotePlace
from hermes_agent.sandbox.sync.place import Sync
from hermes_agent.sandbox.sync.sides import Here, Rules, Shell, There, is_too_much
from hermes_agent.sandbox.transport import Ways


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """Parameters of the copying between here and `machine`, whose files `shell` reaches. `folder` is the parent of
    the folders there (empty: their own path); `states` keeps the sync state of each."""

    shell: Shell
    rules: Rules
    machine: str
    states: Path
    folder: str = ""


class SyncedPlace(RemotePlace):
    """`RemotePlace` that synchronises the session's folder around each command."""

    def __init__(self, name: str, ways: Ways, copying: Copying) -> None:
        super().__init__(name, ways)
        self._copying = copying
        self._syncs: dict[str, Sync] = {}
        self._started: dict[str, RemoteCommand | None] = {}  # None: it is about to be

    async def start(self, exec_id: str, command: Command) -> RemoteCommand:
        sync, there = self._sync(command.folder), self._copying.folder
        begun = await sync.begun()
        self._started = {each: known for each, known in self._started.items() if known is None or each in begun}
        self._started.setdefault(exec_id, None)
        group = f"{exec_id.partition('/')[0]}/"
        over = [each for each in begun if each.startswith(group) and await self._is_over(each)]
        notes = await sync.up(exec_id, over)
        is_absolute = command.workdir == command.folder or command.workdir.startswith(f"{command.folder}/")
        workdir = f"{there}{command.workdir}" if is_absolute else command.workdir
        running = await super().start(exec_id, replace(command, folder=f"{there}{command.folder}", workdir=workdir))
        self._started[exec_id] = running
        running.command, running.follow_up = command, _take_over(exec_id, sync, notes)
        return running

    async def attach(self, exec_id: str) -> RemoteCommand | None:
        running = await super().attach(exec_id)
        if running is not None:
            here = running.command.folder.removeprefix(self._copying.folder)
            running.command = replace(running.command, folder=here)
            running.follow_up = _take_over(exec_id, self._sync(here))
        return running

    async def location(self, folder: str) -> Location:
        return await super().location(f"{self._copying.folder}{folder}")

    async def directory(self, shell: str) -> str:
        there, above = await super().directory(shell), self._copying.folder
        return there.removeprefix(above) if there.startswith(f"{above}/") else there

    def waits_for(self, folder: str) -> str:
        """The copying in progress."""
        return self._syncs[folder].doing if folder in self._syncs else ""

    async def _is_over(self, exec_id: str) -> bool:
        """Whether a command of this session has ended with all that it started, or never ran."""
        running = self._started[exec_id] if exec_id in self._started else await super().attach(exec_id)
        if running is None:
            return exec_id not in self._started
        ended = await running.glance()
        return ended is not None and not ended.children

    def _sync(self, folder: str) -> Sync:
        """Raises `PlaceFailed` for a folder that is more than a project's."""
        if folder not in self._syncs:
            root, copying = os.path.realpath(folder), self._copying
            if is_too_much(root, str(Path.home())):
                raise PlaceFailed(
                    f"{folder} is too much to copy to another machine.",
                    hint="Work in a project's folder, or set `terminal.ssh.sync: false`.",
                )
            there = f"{copying.folder}{folder}"
            key = "\0".join((copying.machine, there, root)).encode("utf-8", "surrogateescape")
            self._syncs[folder] = Sync(
                here=Here(root=Path(root), rules=copying.rules),
                there=There(shell=copying.shell, folder=there, rules=copying.rules),
                file=copying.states / f"{hashlib.sha256(key).hexdigest()[:20]}.json",
            )
        return self._syncs[folder]


def _take_over(exec_id: str, sync: Sync, notes: tuple[str, ...] = ()) -> Callable[[Ended], Awaitable[Ended]]:
    """Takes over what a command changed when it has ended, once; notes and what a person is asked go with its end."""
    deletion: Deletion | None = None
    is_done = False

    async def take_over(ended: Ended) -> Ended:
        nonlocal notes, deletion, is_done
        if not is_done:
            try:
                more, deletion = await sync.down(exec_id, ended)
            except HermesError as error:
                more = (f"What it changed was not copied here: {error}",)
            notes += more
            is_done = not ended.children
        return replace(ended, notes=notes, deletion=deletion)

    return take_over
