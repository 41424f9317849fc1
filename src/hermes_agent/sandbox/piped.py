"""This machine as a place behind a wall, and programs there that talk over pipes for as long as this process wants."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path
from shlex import quote

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Location
from hermes_agent.host.logs import RotatedFile
from hermes_agent.host.process import Child, start_detached
from hermes_agent.host.process_table import MARK
from hermes_agent.host.tasks import spawn
from hermes_agent.sandbox.backends.local import LocalPlace
from hermes_agent.sandbox.jail import Cell, Jail, check_workspace
from hermes_agent.sandbox.network import Network
from hermes_agent.sandbox.place import Command, PlaceFailed, Running
from hermes_agent.sandbox.seccomp import Watcher
from hermes_agent.sandbox.traffic import FILE, traffic_of

ERRORS = "stderr.log"
"""What a program says on its standard error, in its folder."""
LARGEST, LONGEST_LINE, FASTEST = 1 << 20, 1 << 16, 4 << 20
"""Bytes of that file before it becomes `.1`, of a line in it, and of what is read of it in a second: a program that
writes faster waits."""
GOODBYE = 0.5
"""Seconds in which a program may end by itself once its input has ended."""
RUN = """
exec 3<&0
"$@" <&3 3<&- 2>/dev/fd/{errors} &
program=$!
exec </dev/null >/dev/null 2>&1 3<&-
(read -r x </dev/fd/{watched}; kill -9 0) &
watcher=$!
wait $program
code=$?
kill $watcher
exit $code
"""
"""Runs a program until it ends, and ends its group once the other end of a pipe is closed, as that of a process is that
was killed."""
HIDDEN = "The wall hides {}: `terminal.readable` shows it, `jail: false` lets this program out."
_CHUNK, _LAST, _EDGE = 1 << 16, 200, 1 << 13
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to start: `name` is for its folder, `cwd` where it begins (empty: the workspace)."""

    name: str
    argv: Sequence[str]
    workspace: str
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


class Piped:
    """A running program: `read` gives what it writes, `write` feeds it; `last_words` is the last line that it wrote to
    its standard error, which goes to `log`. Once it has ended, `stopped` is what the wall refused it."""

    def __init__(self, name: str, child: Child, mark: str, log: RotatedFile, pipes: tuple[int, int, int, int]) -> None:
        self.name, self.last_words = name, ""
        self.stopped: tuple[str, ...] = ()
        self._child, self._mark, self._log, self._unused, self._alive = child, mark, log, list(pipes[:3]), pipes[3]
        self._out, self._errors = asyncio.StreamReader(), asyncio.StreamReader()
        self._reading: list[asyncio.BaseTransport] = []
        self._keeping: asyncio.Task[None] | None = None
        self._feeding: asyncio.StreamWriter | None = None

    async def connect(self) -> None:
        """Take up its pipes in the running loop."""
        loop = asyncio.get_running_loop()
        modes = ("rb", "rb", "wb")
        *reads, write = (os.fdopen(handle, mode, 0) for handle, mode in zip(self._unused, modes, strict=True))
        self._unused = []
        for stream, read in zip((self._out, self._errors), reads, strict=True):
            made = partial(asyncio.StreamReaderProtocol, stream)
            self._reading.append((await loop.connect_read_pipe(made, read))[0])
        self._keeping = spawn(self._keep_errors(), name="complaints of a program")
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, write)
        self._feeding = asyncio.StreamWriter(transport, protocol, None, loop)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._child.is_alive

    @property
    def code(self) -> int | None:
        """Its exit code once it has ended."""
        return self._child.code

    async def read(self) -> bytes:
        """What it writes next; empty once it writes no more."""
        return await self._out.read(_CHUNK)

    async def ended(self, seconds: float) -> None:
        """Wait for its end and its last words, so long at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._child.exited()
                if self._keeping is not None:
                    await asyncio.wait((self._keeping,))
                self.stopped = (await asyncio.to_thread(traffic_of, self._log.path.parent))[1]

    async def write(self, data: bytes) -> None:
        """Feed it. Raises `OSError` where it takes no more."""
        assert self._feeding is not None
        self._feeding.write(data)
        await self._feeding.drain()

    async def close(self) -> None:
        """End its input, then it, its group and all that it started; takes at most two seconds."""
        if self._feeding is not None:
            self._feeding.close()
            await self.ended(GOODBYE)
        await self._child.end(self._mark)
        await self._child.exited()  # Collects it.
        await self.ended(GOODBYE)
        if self._keeping is not None:
            self._keeping.cancel()
        for reading in self._reading:
            reading.close()
        self._log.close()
        for handle in (*self._unused, self._alive):
            os.close(handle)
        self._out.feed_eof()

    async def _keep_errors(self) -> None:
        kept = b""
        while chunk := await self._errors.read(_CHUNK):
            whole, _, kept = (kept + chunk).rpartition(b"\n")
            if len(kept) > LONGEST_LINE:  # A secret at its end is whole only with what comes.
                clean = self._log.redact(kept.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
                whole, kept = clean[:-_EDGE], clean[-_EDGE:]
            await self._keep(whole)
            await asyncio.sleep(len(chunk) / FASTEST)
        await self._keep(kept)

    async def _keep(self, said: bytes) -> None:
        if text := said.decode("utf-8", "replace").strip():
            self.last_words = self._log.redact(text.rpartition("\n")[2])[:_LAST]
            await asyncio.to_thread(self._log.write, text)


class PipedPrograms:
    """Starts programs behind the wall that `jail` builds, once (None: without one). `folder` has a folder for each,
    with what it says on standard error, `redact`ed; `network` watches their connections (None: nobody does)."""

    def __init__(
        self,
        *,
        folder: Path,
        env: Mapping[str, str],
        jail: Callable[[], Jail | None],
        network: Network | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._folder, self._env, self._make_jail, self._network = folder, env, jail, network
        self._watcher, self._redact = Watcher(), redact

    @cached_property
    def _jail(self) -> Jail | None:
        return self._make_jail()

    async def start(self, program: Program, *, walled: bool = True, only: bool = False) -> Piped:
        """Start it, behind the wall unless not `walled`; `only` there, also where the machine has none. Raises
        `PlaceFailed`."""
        if only and await asyncio.to_thread(lambda: self._jail) is None:
            raise PlaceFailed(f"{program.name} runs behind a wall alone, and there is none here.")
        if walled and self._network is not None:
            await self._network.open()
        starting = spawn(self._started(program, walled), name=f"start of {program.name}")
        try:
            piped = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.shield(spawn(_end_unwanted(starting), name="end of an unwanted program"))
            raise
        if isinstance(piped, PlaceFailed):
            raise piped
        return piped

    async def _started(self, program: Program, walled: bool) -> Piped | PlaceFailed:
        try:
            piped = Piped(program.name, *await asyncio.to_thread(self._start, program, walled))
        except PlaceFailed as error:
            return error
        try:
            await piped.connect()
        except BaseException:
            await piped.close()
            raise
        return piped

    async def close(self) -> None:
        """Give back what the machine lent, once all programs have ended."""
        await asyncio.to_thread(self._watcher.close)
        if self._network is not None:
            await self._network.close()
        if jail := self.__dict__.get("_jail"):
            await asyncio.to_thread(jail.close)

    def _start(self, program: Program, walled: bool) -> tuple[Child, str, RotatedFile, tuple[int, int, int, int]]:
        jail = self._jail if walled else None
        if jail is not None:
            check_workspace(program.workspace, jail.walls)
            found = shutil.which(program.argv[0], path=self._env.get("PATH")) or ""
            ways = [jail.walls.access(path, program.workspace) for path in (found, os.path.realpath(found))]
            if Path(found).is_absolute() and set(ways) == {"none"}:
                raise PlaceFailed(HIDDEN.format(found))
        folder = self._folder / program.name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / FILE).unlink(missing_ok=True)  # It is of the one before.
        mark = f"{folder}#{os.getpid()}.{next(_numbers)}"
        own = self._network.variables() if jail and self._network else {}
        env = {**self._env, **own, **program.env, MARK: mark}
        begin = f"{jail.limits if jail else ''}\ncd {quote(program.cwd or program.workspace)} || exit 126\n"
        pipes = (os.pipe2(os.O_CLOEXEC) for _ in range(4))
        (given, feeds), (reads, said), (watched, alive), (hears, errors) = pipes
        run = RUN.format(errors=errors, watched=watched)
        argv = ["/bin/sh", "-c", begin + run, "sh", *program.argv]
        try:
            child = self._launch(jail, folder, program, argv, env, given, said, (watched, errors))
        except OSError as error:
            self._drop(feeds, reads, hears, alive)
            raise PlaceFailed(f"{program.argv[0]} could not be started: {error.strerror}.") from error
        except BaseException:
            self._drop(feeds, reads, hears, alive)
            raise
        finally:
            self._drop(given, said, watched, errors)
        log = RotatedFile(folder / ERRORS, self._redact, largest=LARGEST, kept=1)
        return child, f"{MARK}={mark}", log, (reads, hears, feeds, alive)

    @staticmethod
    def _drop(*handles: int) -> None:
        for handle in handles:
            os.close(handle)

    def _launch(  # noqa: PLR0913 - the ends of what it hears, says and watches
        self,
        jail: Jail | None,
        folder: Path,
        program: Program,
        argv: Sequence[str],
        env: Mapping[str, str],
        given: int,
        said: int,
        passed: tuple[int, ...],
    ) -> Child:
        if jail is None:
            return start_detached(argv, cwd="/", env=env, stdin=given, out=said, passed=passed)
        self._watcher.open()
        cell = Cell(
            folder=folder,
            files=(),
            kept=None,
            workspace=program.workspace,
            session=folder / "session",
            launch=partial(self._watcher.launch, folder),
            connections=self._network.handlers() if self._network else (),
            passed=passed,
        )
        return jail.launch(argv, cell=cell, env=env, stdin=given, out=said)


async def _end_unwanted(starting: asyncio.Task[Piped | PlaceFailed]) -> None:
    """End a program whose starter does not wait for it any more."""
    if isinstance(piped := await starting, Piped):
        await piped.close()


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
