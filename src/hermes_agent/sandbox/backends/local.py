"""This machine as a place: runs each command in its own session, in a jail where requested."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from shlex import quote

import msgspec

from hermes_agent.core.effects import Location
from hermes_agent.host.process import Child, start_detached
from hermes_agent.host.process_table import family
from hermes_agent.sandbox.executions import (
    EXEC_ID,
    KEPT,
    NOBODY,
    Meta,
    TimeLimits,
    check_length,
    check_text,
    claim,
    cover_part,
    forget,
    is_beginning,
    location_of,
    make_input,
    noted_end,
    read_part,
    read_text,
    runs,
    send,
    start_note,
    this_boot,
    void,
)
from hermes_agent.sandbox.jail import Cell, Jail, check_workspace
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import AlreadyStarted, Command, Ended, PlaceFailed, Running
from hermes_agent.sandbox.seccomp import Watcher
from hermes_agent.sandbox.traffic import traffic_of
from hermes_agent.sandbox.wrapper import (
    CLAIM,
    INLINE,
    MARK,
    begin,
    begun,
    dropping,
    is_same_shell,
    kept_directory,
    kept_variables,
    on_terminal,
    script,
)

SMALL = 64 << 10
SIGKILLED = 137
# A command that ends within this time is finished in the thread that started it, without another round over the loop.
QUICK_SECONDS, JAILED_QUICK_SECONDS = 0.01, 0.06
_GLANCE = 0.01
# What a jailed command writes of its own record: it may write into these and replace nothing.
OWN_FILES = ("exit", "env")
SESSIONS = ".sessions"
"""Beside all records: what the jailed commands of each group share, their /tmp and their home."""


class LocalPlace:
    """Runs commands on this machine. `folder` keeps their records, `env` is their environment, `shell` runs them,
    `jail` builds the walls, once, with the first command. A new shell has `begin_seconds` to report that it runs.

    Jailed and other commands must not share a `folder`: files that a jailed one left would be read outside.
    """

    name = "local"
    mark = MARK  # the variable by which all that a command started is known

    def __init__(
        self,
        *,
        folder: Path,
        env: Mapping[str, str],
        shell: str = "",
        begin_seconds: float = 1.0,
        jail: Callable[[], Jail | None] | None = None,
        network: Network | None = None,
    ) -> None:
        self._folder = folder
        self._make_jail = jail
        self._network = network
        self._watcher = Watcher()
        self._env = dict(env)
        self._boot = this_boot()
        self._begin_seconds = begin_seconds
        self._limits = TimeLimits()
        self._shell = shell or shutil.which("bash") or shutil.which("sh") or "/bin/sh"

    @cached_property
    def _jail(self) -> Jail | None:
        return self._make_jail() if self._make_jail else None

    async def start(self, exec_id: str, command: Command) -> Running:
        if self._network is not None:
            await self._network.open()
        return await asyncio.to_thread(self._start, exec_id, command)

    async def attach(self, exec_id: str) -> Running | None:
        folder = self._path(exec_id)
        for _ in range(int(self._begin_seconds / _GLANCE)):
            if not await asyncio.to_thread(is_beginning, folder):
                break
            await asyncio.sleep(_GLANCE)
        return await asyncio.to_thread(self._attach, exec_id, folder)

    async def location(self, folder: str) -> Location:  # noqa: ARG002 - the Protocol's shape
        try:
            return location_of(self.name, self._folder)  # sooner done than a thread is woken
        except OSError as error:
            raise PlaceFailed(f"The records of commands cannot be written: {error.strerror}.") from error

    async def list(self, group: str) -> tuple[str, ...]:
        return await asyncio.to_thread(self._list, group)

    async def directory(self, shell: str) -> str:
        return kept_directory(read_text(self._folder / shell / KEPT))  # Small, in the home: no thread is quicker.

    def exported(self, shell: str) -> Mapping[str, str]:
        return kept_variables(read_text(self._folder / shell / KEPT))

    async def prune(self, minutes: int, megabytes: int) -> int:
        return await asyncio.to_thread(self._prune, minutes, megabytes << 20)

    def wall(self) -> str:
        """The name of the jail. Blocks, the first time."""
        return self._jail.name if self._jail else ""

    def waits_for(self, folder: str) -> str:  # noqa: ARG002 - as above
        """Empty: only the commands themselves take long."""
        return ""

    async def close(self) -> None:
        """End the limits and the watch; commands go on."""
        self._limits.close()
        await asyncio.to_thread(self._watcher.close)
        if self._network is not None:
            await self._network.close()
        if jail := self.__dict__.get("_jail"):
            await asyncio.to_thread(jail.close)

    def _start(self, exec_id: str, command: Command) -> Running:
        folder = self._path(exec_id)
        check_text(command.text)
        check_length(command)
        if self._jail is not None:
            for each in (command.folder, *command.folders):
                check_workspace(each, self._jail.walls)
        kept = self.kept(command)
        before = read_text(kept) if kept else ""
        base = kept_directory(before)
        base = base if base and Path(base).is_dir() else command.folder
        cwd = os.path.normpath(os.path.join(base, command.workdir))  # noqa: PTH118 - this runs before every command
        if not Path(cwd).is_dir():
            raise PlaceFailed(f"The working directory {cwd} does not exist.")
        keeps = kept is not None and command.keeps
        own = self._network.variables() if self._network else {}
        text = script(
            folder=str(folder),
            begins=begin(str(folder), cwd, own, self.mark),
            kept=str(kept) if before else "",
            keeps_as=(quote(base) if command.workdir else '"$PWD"') + dropping(own) if keeps else "",
            text=on_terminal(command.text) if command.pty else command.text,
            counts=self._jail is not None and self._jail.layers > 0,
        )
        text = f"{begun(str(folder), self._jail.limits) if self._jail else CLAIM}\n{text}"
        try:
            claim(folder)
        except FileExistsError as error:
            raise AlreadyStarted(f"{exec_id} was started before.") from error
        except OSError as error:
            raise PlaceFailed(f"The command could not be started: {error.strerror}.") from error
        try:
            env = {} if before else self._env  # a kept shell holds the whole environment, also what it unset
            layers = self._jail.layers if self._jail else 0
            meta = Meta(command=command, cwd=cwd, boot=self._boot, layers=layers, watched=self._network is not None)
            return self._begin(folder, exec_id, meta, text, env)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise PlaceFailed(f"The command could not be started: {error.strerror or error}.") from error

    def _begin(self, folder: Path, exec_id: str, meta: Meta, text: str, env: Mapping[str, str]) -> Running:
        command = meta.command
        (folder / "meta.json").write_bytes(msgspec.json.encode(meta))
        if len(command.text) >= INLINE:
            (folder / "command").write_text(f"{command.text}\n")
        out = os.open(folder / "out", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        given = make_input(folder) if command.background else None
        try:
            most = (*self._jail.unheld, self._jail.walls.session_mb) if self._jail else (0, 0, 0)
            if command.limit or any(most):
                self._limits.hold(folder, command.limit, most)
            argv, env = [self._shell, "-c", text], {**env, self.mark: str(folder)}
            child = self._launch(folder, meta, argv, env=env, stdin=given, out=out)
        finally:
            os.close(out)
            if given is not None:
                os.close(given)
        running = LocalRunning(self, folder, exec_id, meta, child)
        if not command.background and child.ends_within(JAILED_QUICK_SECONDS if self._jail else QUICK_SECONDS):
            running.record_end()
        return running

    def _launch(
        self, folder: Path, meta: Meta, argv: Sequence[str], *, env: Mapping[str, str], stdin: int | None, out: int
    ) -> Child:
        if self._jail is None:
            return start_detached(argv, cwd=str(folder), env=env, stdin=stdin, out=out)
        command = meta.command
        self._watcher.open()
        cell = Cell(
            folder=folder,
            files=OWN_FILES,
            kept=self.kept(command),
            workspace=command.folder,
            folders=command.folders,
            session=self._folder / SESSIONS / folder.parent.name,
            lent=command.lent,
            launch=partial(self._watcher.launch, folder),
            connections=self._network.handlers() if self._network else (),
        )
        with open(start_note(folder), "wb") as who:  # noqa: PTH123 - it is open already
            child = self._jail.launch(argv, cell=cell, env=env, stdin=stdin, out=out)
            who.write(read_text(Path(f"/proc/{child.identity.pid}/stat")).encode() or b"%d\n" % child.identity.pid)
        return child

    def _attach(self, exec_id: str, folder: Path) -> Running | None:
        if not folder.is_dir():
            return None
        if void(folder):
            shutil.rmtree(folder, ignore_errors=True)
            return None
        meta = msgspec.json.decode((folder / "meta.json").read_bytes(), type=Meta)
        identity = runs(folder) if meta.boot == self._boot else NOBODY
        return LocalRunning(self, folder, exec_id, meta, Child(identity))

    def _list(self, group: str) -> tuple[str, ...]:
        found = [path.parent for path in (self._folder / group).glob("*/listed")]
        found.sort(key=lambda path: (path / "meta.json").stat().st_mtime_ns)
        return tuple(f"{group}/{path.name}" for path in found)

    def _prune(self, minutes: int, most: int) -> int:
        stamp = self._folder / ".now"  # the clock of the file system, which is that of what it is compared with
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp.touch()
        before = stamp.stat().st_mtime - 60 * minutes
        ended = [
            (path.stat().st_mtime, path.parent) for path in self._folder.glob("*/*/exit") if path.stat().st_size > 1
        ]
        old, kept = [], 0
        for when, folder in sorted(ended, reverse=True):
            kept += (folder / "out").stat().st_size
            if when < before or kept > most:
                old.append(folder)
        forget(self._folder, old)
        for session in self._folder.glob(f"{SESSIONS}/*"):
            if session.stat().st_mtime < before and not any(self._folder.glob(f"{session.name}/*/meta.json")):
                shutil.rmtree(session, ignore_errors=True)
        return len(old)

    def kept(self, command: Command) -> Path | None:  # The file of the kept shell that it uses.
        return self._folder / command.shell / KEPT if command.shell else None

    def _path(self, exec_id: str) -> Path:
        if not EXEC_ID.fullmatch(exec_id):
            raise PlaceFailed(f"`{exec_id}` is not an exec id.")
        return self._folder / exec_id


class LocalRunning:
    """A command on this machine, running or ended; implements `Running`."""

    def __init__(self, place: LocalPlace, folder: Path, exec_id: str, meta: Meta, child: Child) -> None:
        self.exec_id, self._mark = exec_id, f"{place.mark}={folder}"
        self.command = meta.command
        self.cwd = meta.cwd
        self._layers, self._is_watched = meta.layers, meta.watched
        self.output_path = str(folder / "out")
        self._folder = folder
        self._child = child
        self._kept = place.kept(meta.command)
        self._ended: Ended | None = None
        self._output: bytes | None = None  # the whole output of a command that ended and wrote little
        if meta.command.background:
            (folder / "listed").touch()

    async def wait(self) -> Ended:
        if self._ended is None:
            await self._child.exited()
        return await self._seen_end()

    async def poll(self) -> Ended | None:
        return None if self._ended is None and self._child.is_alive else await self._seen_end()

    async def size(self) -> int:
        if self._output is not None and not self._has_children:
            return len(self._output)
        return await asyncio.to_thread(lambda: (self._folder / "out").stat().st_size)

    async def read(self, start: int, limit: int) -> bytes:
        if self._output is not None and not self._has_children:
            return self._output[start : start + limit]
        return await asyncio.to_thread(read_part, self._folder / "out", start, limit)

    async def cover(self, start: int, data: bytes) -> None:
        await asyncio.to_thread(cover_part, self._folder / "out", start, data)
        if self._output is not None:
            self._output = self._output[:start] + data + self._output[start + len(data) :]

    async def rewrite(self, data: bytes) -> None:
        await asyncio.to_thread((self._folder / "out").write_bytes, data)
        self._output = data if self._output is not None else None

    async def write(self, data: bytes) -> None:
        if not self.command.background or not self._child.is_alive:
            raise PlaceFailed("It takes no input: it has ended or does not run in the background.")
        await asyncio.to_thread(send, self._folder / "in", data)

    async def signal(self, number: int) -> None:
        if self._child.is_alive:
            await asyncio.to_thread(self._child.signal, number, spared=self._layers)

    async def kill(self) -> bool:
        was_running = self._child.is_alive
        gone = await self._child.end(self._mark)
        if was_running:
            await asyncio.to_thread(self._note_kill)
        return gone

    @property
    def _has_children(self) -> bool:
        return self._ended is not None and self._ended.children

    async def _seen_end(self) -> Ended:
        ended = self._ended
        return await asyncio.to_thread(self.record_end) if ended is None or ended.children else ended

    def record_end(self) -> Ended:
        """Record how it ended, once, and save its shell state to the kept shell. Blocks."""
        before = self._ended
        noted = read_text(self._folder / "exit") if before is None else ""
        listed = self._folder / "listed"
        left = self._left_somebody(noted) if before is None and self._child.is_ours else listed.exists()
        children = left and bool(family(0, self._mark.encode()))
        if children:
            listed.touch()
        reached, stopped = traffic_of(self._folder) if self._is_watched else (None, ())
        self._ended = replace(before or self._read_end(noted), children=children, reached=reached, stopped=stopped)
        return self._ended

    def _left_somebody(self, noted: str) -> bool:
        """Whether processes may be left. A jail with a process table of its own says so, and its first process, which
        is in the group, goes only a moment later."""
        left = noted_end(noted)[1]
        return self._child.has_group if left is None else left > self._layers

    def _read_end(self, noted: str) -> Ended:
        self._keep()
        code = self._child.code
        if code is None:
            code = noted_end(noted)[0]
        out = (self._folder / "out").stat()
        if out.st_size <= SMALL:
            self._output = (self._folder / "out").read_bytes() if out.st_size else b""
        begun = (self._folder / "meta.json").stat().st_mtime
        ended = (self._folder / "exit").stat().st_mtime if noted_end(noted)[0] is not None else out.st_mtime
        return Ended(code=code, seconds=max(0.0, ended - begun))

    def _keep(self) -> None:
        if self._kept is None or not self.command.keeps:
            return
        left = self._folder / "env"
        if text := read_text(left):
            with suppress(FileNotFoundError):  # two may see the end
                # Some file systems begin to write to the disk where a file takes another's place.
                if is_same_shell(text, read_text(self._kept)):
                    left.unlink()
                else:
                    left.replace(self._kept)

    def _note_kill(self) -> None:
        """Write the code down for those who attach later, where no shell was left to do it."""
        if noted_end(read_text(self._folder / "exit"))[0] is None:
            code = self._child.code
            (self._folder / "exit").write_text(f"{SIGKILLED if code is None else code}\n")
