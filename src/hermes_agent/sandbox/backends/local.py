"""This machine as a place: each command in a session of its own, its life written down in a folder of its own.

exec/<group>/<name>/     made atomically: whoever makes it may start the command
    meta.json            the command and where it runs
    command              its text, where that is long
    pid                  made by the shell when it begins: its line of /proc/PID/stat
    out                  both outputs, whole
    in                   a pipe to its input (background only)
    exit                 the exit code and a newline, when it has ended
    env                  what it leaves to the kept shell: the directory in a comment, then the exported variables
    listed               there for commands that `list` names
exec/<group>/.kept       the kept shell: `env` of the last command whose end was seen
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote

import msgspec

from hermes_agent.host.process import Child, start_detached
from hermes_agent.host.process_table import Identity, family, parse_stat
from hermes_agent.sandbox.place import AlreadyStarted, Command, Ended, PlaceFailed, Running
from hermes_agent.sandbox.wrapper import INLINE, MARK, kept_directory, script

EXEC_ID = re.compile(r"[\w:-][\w.:-]{0,119}/[\w:-][\w.:-]{0,119}", re.ASCII)
KEPT = ".kept"
MOST_MOVED = 64 << 20
SMALL = 64 << 10
SIGKILLED, SIGTERMED = 137, 143
# A command that ends within this time is finished in the thread that started it, without another round over the loop.
QUICK_SECONDS = 0.01
NOBODY = Identity(pid=0)
_GLANCE = 0.01


class Meta(msgspec.Struct, frozen=True):
    """What `meta.json` holds; `boot` tells this boot of the machine from another, where process numbers begin anew."""

    command: Command
    cwd: str
    boot: str


class LocalPlace:
    """Commands on this machine. `folder` keeps their records, `env` is what they see, `shell` runs them. A shell that
    was just started may take `begin_seconds` until it says that it runs."""

    name = "local"

    def __init__(self, *, folder: Path, env: Mapping[str, str], shell: str = "", begin_seconds: float = 1.0) -> None:
        self._folder = folder
        self._env = dict(env)
        self._boot = _boot()
        self._begin_seconds = begin_seconds
        self._shell = shell or shutil.which("bash") or shutil.which("sh") or "/bin/sh"

    async def start(self, exec_id: str, command: Command) -> Running:
        return await asyncio.to_thread(self._start, exec_id, command)

    async def attach(self, exec_id: str) -> Running | None:
        folder = self._path(exec_id)
        for _ in range(int(self._begin_seconds / _GLANCE)):
            if not await asyncio.to_thread(_is_beginning, folder):
                break
            await asyncio.sleep(_GLANCE)
        return await asyncio.to_thread(self._attach, exec_id, folder)

    async def list(self, group: str) -> tuple[str, ...]:
        return await asyncio.to_thread(self._list, group)

    async def get(self, path: str) -> bytes:
        return await asyncio.to_thread(_get, Path(path))

    async def put(self, path: str, content: bytes) -> None:
        await asyncio.to_thread(_put, Path(path), content)

    async def directory(self, shell: str) -> str:
        return await asyncio.to_thread(lambda: kept_directory(_read_text(self._folder / shell / KEPT)))

    async def prune(self, before: float) -> int:
        """Forget commands that ended before this moment (seconds since 1970); how many those were."""
        return await asyncio.to_thread(self._prune, before)

    def _start(self, exec_id: str, command: Command) -> Running:
        folder = self._path(exec_id)
        _check(command.text)
        kept = self._kept(command)
        before = _read_text(kept) if kept else ""
        base = kept_directory(before)
        base = base if base and Path(base).is_dir() else command.folder
        cwd = os.path.normpath(os.path.join(base, command.workdir))  # noqa: PTH118 - this runs before every command
        if not Path(cwd).is_dir():
            raise PlaceFailed(f"The working directory {cwd} does not exist.")
        keeps = kept is not None and command.keeps
        text = script(
            folder=str(folder),
            exec_id=exec_id,
            cwd=cwd,
            kept=str(kept) if before else "",
            keeps_as=(quote(base) if command.workdir else '"$PWD"') if keeps else "",
            text=command.text,
        )
        try:
            _claim(folder)
        except FileExistsError as error:
            raise AlreadyStarted(f"{exec_id} was started before.") from error
        except OSError as error:
            raise PlaceFailed(f"The command could not be started: {error.strerror}.") from error
        try:
            env = {} if before else self._env  # a kept shell holds the whole environment, also what it unset
            return self._begin(folder, exec_id, Meta(command=command, cwd=cwd, boot=self._boot), text, env)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise PlaceFailed(f"The command could not be started: {error.strerror or error}.") from error

    def _begin(self, folder: Path, exec_id: str, meta: Meta, text: str, env: Mapping[str, str]) -> Running:
        command = meta.command
        (folder / "meta.json").write_bytes(msgspec.json.encode(meta))
        if len(command.text) >= INLINE:
            (folder / "command").write_text(f"{command.text}\n")
        out = os.open(folder / "out", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        given = _input(folder) if command.background else None
        try:
            argv = [self._shell, "-c", text]
            child = start_detached(argv, cwd=str(folder), env={**env, MARK: exec_id}, stdin=given, out=out)
        finally:
            os.close(out)
            if given is not None:
                os.close(given)
        running = LocalRunning(folder=folder, exec_id=exec_id, meta=meta, child=child, kept=self._kept(command))
        if not command.background and child.ends_within(QUICK_SECONDS):
            running.settle()
        return running

    def _attach(self, exec_id: str, folder: Path) -> Running | None:
        if not folder.is_dir():
            return None
        if _void(folder):
            shutil.rmtree(folder, ignore_errors=True)
            return None
        meta = msgspec.json.decode((folder / "meta.json").read_bytes(), type=Meta)
        identity = _identity(_read_text(folder / "pid")) if meta.boot == self._boot else NOBODY
        kept = self._kept(meta.command)
        return LocalRunning(folder=folder, exec_id=exec_id, meta=meta, child=Child(identity), kept=kept)

    def _list(self, group: str) -> tuple[str, ...]:
        found = [path.parent for path in (self._folder / group).glob("*/listed")]
        found.sort(key=lambda path: (path / "meta.json").stat().st_mtime_ns)
        return tuple(f"{group}/{path.name}" for path in found)

    def _prune(self, before: float) -> int:
        old = [path.parent for path in self._folder.glob("*/*/exit") if path.stat().st_mtime < before]
        for folder in old:
            shutil.rmtree(folder, ignore_errors=True)
        return len(old)

    def _kept(self, command: Command) -> Path | None:
        return self._folder / command.shell / KEPT if command.shell else None

    def _path(self, exec_id: str) -> Path:
        if not EXEC_ID.fullmatch(exec_id):
            raise PlaceFailed(f"`{exec_id}` is no exec id.")
        return self._folder / exec_id


class LocalRunning:
    """A command on this machine; see `Running`."""

    def __init__(self, *, folder: Path, exec_id: str, meta: Meta, child: Child, kept: Path | None) -> None:
        self.exec_id = exec_id
        self.command = meta.command
        self.cwd = meta.cwd
        self.output_path = str(folder / "out")
        self._folder = folder
        self._child = child
        self._kept = kept
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
        return await asyncio.to_thread(_read_part, self._folder / "out", start, limit)

    async def write(self, data: bytes) -> None:
        if not self.command.background or not self._child.is_alive:
            raise PlaceFailed("It takes no input: it has ended or does not run in the background.")
        await asyncio.to_thread(_send, self._folder / "in", data)

    async def signal(self, number: int) -> None:
        if self._child.is_alive:
            self._child.signal(number)

    async def kill(self) -> bool:
        was_running = self._child.is_alive
        gone = await self._child.end(f"{MARK}={self.exec_id}")
        if was_running:
            await asyncio.to_thread(self._note_kill)
        return gone

    @property
    def _has_children(self) -> bool:
        return self._ended is not None and self._ended.children

    async def _seen_end(self) -> Ended:
        ended = self._ended
        return await asyncio.to_thread(self.settle) if ended is None or ended.children else ended

    def settle(self) -> Ended:
        """Note how it ended, once; what it leaves goes to the kept shell. Blocks."""
        listed = self._folder / "listed"
        before = self._ended
        left = self._child.has_group if before is None and self._child.is_ours else listed.exists()
        children = left and bool(family(0, f"{MARK}={self.exec_id}".encode()))
        if children:
            listed.touch()
        self._ended = replace(before or self._read_end(), children=children)
        return self._ended

    def _read_end(self) -> Ended:
        self._keep()
        text = _read_text(self._folder / "exit")
        seen = self._child.code  # what the kernel says; the shell's trap does not know the signal that ended the shell
        code = seen if seen is not None else int(text) if text.endswith("\n") else None
        begun = (self._folder / "meta.json").stat().st_mtime
        ended = (self._folder / ("exit" if text else "out")).stat().st_mtime
        if (self._folder / "out").stat().st_size <= SMALL:
            self._output = (self._folder / "out").read_bytes()
        return Ended(code=code, seconds=max(0.0, ended - begun))

    def _keep(self) -> None:
        if self._kept is None or not self.command.keeps:
            return
        with suppress(FileNotFoundError):
            (self._folder / "env").replace(self._kept)

    def _note_kill(self) -> None:
        """Write the code down for those who attach later."""
        noted = _read_text(self._folder / "exit").strip()
        code = self._child.code
        if code is None:
            code = (int(noted) or SIGTERMED) if noted else SIGKILLED
        (self._folder / "exit").write_text(f"{code}\n")


def _check(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PlaceFailed("The command holds half of a surrogate pair, which no shell can read.") from error
    if "\0" in text:
        raise PlaceFailed("The command holds a NUL character, which no shell can read.")


def _identity(written: str) -> Identity:
    """Who wrote this line; a machine without /proc gives the number alone."""
    row = parse_stat(written)
    if row is None:
        return Identity(pid=int(written)) if written.strip().isdecimal() else NOBODY
    return Identity(pid=row.pid, started=row.started)


def _claim(folder: Path) -> None:
    """Make the folder, or fail because somebody made it before."""
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(mode=0o700)


def _is_beginning(folder: Path) -> bool:
    """Whether the id is claimed but its shell has not yet said that it runs, or is about to say it."""
    return folder.is_dir() and not _read_text(folder / "pid")


def _void(folder: Path) -> bool:
    """Make sure that a command whose shell never began never will: True where that is so."""
    try:
        os.close(os.open(folder / "pid", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def _input(folder: Path) -> int:
    """A pipe whose both ends the command holds: it never sees an end of input while it waits for what is written."""
    os.mkfifo(folder / "in", 0o600)
    return os.open(folder / "in", os.O_RDWR | os.O_CLOEXEC)


def _send(pipe: Path, data: bytes) -> None:
    try:
        handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            sent = os.write(handle, data)
        finally:
            os.close(handle)
    except BlockingIOError as error:
        raise PlaceFailed("It does not read its input; nothing was sent.") from error
    except OSError as error:
        raise PlaceFailed("It takes no input any more.") from error
    if sent < len(data):
        raise PlaceFailed(f"It stopped reading its input: only {sent} of {len(data)} bytes were sent.")


def _read_part(path: Path, start: int, limit: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(limit)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""


def _boot() -> str:
    return _read_text(Path("/proc/sys/kernel/random/boot_id")).strip()


def _get(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_MOVED:
            raise PlaceFailed(f"{path} is larger than {MOST_MOVED:,} bytes.")
        return path.read_bytes()
    except OSError as error:
        raise PlaceFailed(f"{path} cannot be read: {error.strerror}.") from error


def _put(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise PlaceFailed(f"{path} cannot be written: {error.strerror}.") from error
