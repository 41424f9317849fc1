"""Protocols of a place and its commands: commands run under ids that outlive the program that started them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Location
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.host.tasks import spawn

# Each kind of place and what makes it.
PLACES: dict[str, str] = {
    "local": "hermes_agent.sandbox.backends.local:LocalPlace",
    "docker": "hermes_agent.sandbox.backends.docker:build",
    "ssh": "hermes_agent.sandbox.backends.ssh:build",
    "singularity": "hermes_agent.sandbox.backends.singularity:build",
}


class AlreadyStarted(HermesError):
    """Raised when a command was already started under this id: attach to it."""


class PlaceFailed(ToolError):
    """A place failed to do what was asked; the sentence is for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A shell command and where it runs.

    `shell` names a kept shell, whose working directory and exported variables the command inherits; `keeps`: it
    saves its own there. `folder` (absolute) is where a kept shell starts, and where a command without one runs.
    `workdir` applies to this command alone, relative to where it would run; the directory is not saved then.
    `background` gives it a writable input and lists it in `Place.list`; otherwise its input is empty. `pty` gives
    it a terminal of 24 rows and 80 columns. `watch` is what the starter waits for in the output; the place only
    stores it. `lent` are files of this machine that this command alone may read, despite any walls. `limit` is a
    time limit in seconds, which the place itself enforces on everything that it started, also where the starting
    program is gone (0: none); processes left at its own end go on. `outside`: a person let it run outside the wall.
    `folders` are others that it works in, by their real paths; places that are not this machine have none of them.
    """

    text: str
    folder: str
    workdir: str = ""
    shell: str = ""
    keeps: bool = True
    background: bool = False
    pty: bool = False
    watch: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    lent: tuple[str, ...] = ()
    limit: float = 0.0
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """Files that a command deleted where it ran and that were kept here, because only a person may delete so many.
    `delete` deletes the unchanged ones and returns their number in a sentence."""

    paths: tuple[str, ...]
    delete: Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Result of a command: exit code as a shell counts it (128 + n for signal n), and duration in seconds.

    `code` is None where nobody saw it end (the machine went down, or it was killed while no Hermes ran).
    `children`: processes that it started still run. `notes` are further sentences for the model, `deletion` is a
    question for a person. `reached` are the hosts (`name:port`) beyond this machine that it talked to, `stopped` what
    the wall refused it, each in a few words. None of `reached`: nobody watched, it may have talked to anyone.
    """

    code: int | None
    seconds: float
    children: bool = False
    notes: tuple[str, ...] = ()
    deletion: Deletion | None = None
    reached: tuple[str, ...] | None = None
    stopped: tuple[str, ...] = ()


class Running(Protocol):
    """A started command, running or ended.

    - `wait` returns when the command has ended, also one of an earlier program, and can be called repeatedly;
      cancelling `wait` leaves the command alone;
    - its shell state is saved when `wait` or `poll` has returned its end;
    - `poll` returns at once: None while it runs;
    - output (both streams, in the order written) is kept whole; `read` returns up to `limit` bytes from `start`,
      also while it runs, empty at the present end; `output_path` is where the model finds all of it;
    - `cover` overwrites bytes of the output from `start` on, also while the command runs; the length stays;
      `rewrite` replaces the whole output of an ended command;
    - `write` sends bytes to the input of a background command, and raises `PlaceFailed` for any other;
    - `kill` ends the command and everything that it started, even processes that ignore signals or changed their
      session, and returns within two seconds, True when nothing is left; `wait` returns after it.
    """

    @property
    def exec_id(self) -> str: ...

    @property
    def command(self) -> Command: ...

    @property
    def cwd(self) -> str: ...

    @property
    def output_path(self) -> str: ...

    async def wait(self) -> Ended: ...

    async def poll(self) -> Ended | None: ...

    async def size(self) -> int: ...

    async def read(self, start: int, limit: int) -> bytes: ...

    async def cover(self, start: int, data: bytes) -> None: ...

    async def rewrite(self, data: bytes) -> None: ...

    async def write(self, data: bytes) -> None: ...

    async def signal(self, number: int) -> None: ...

    async def kill(self) -> bool: ...


class Place(Protocol):
    """Runs commands.

    - an exec id reads `group/name`, each of 1 to 120 of `A-Z a-z 0-9 _ . : -`, no dot first;
    - `start` claims the id, then starts the command once, detached: it outlives this program. It raises
      `AlreadyStarted` for an id that anybody claimed before, and `PlaceFailed` (nothing claimed) where the command
      cannot be started, or its lent files are unavailable;
    - `attach` returns the command of this id, running or ended, also after `kill -9` of the program that started it;
      None where there is no record of it. Output and exit code are complete;
    - `location` is where commands in `folder` are recorded now. A command without a record was never started if its
      intent names the same location; anywhere else nothing is known of it;
    - `list` returns the ids of a group that were started in the background or left processes behind, oldest first;
    - `directory` is where the next command of a kept shell runs, empty where the shell was not used yet;
    - `exported` are the shell's exported variables, where known without asking another machine; otherwise empty;
      blocks;
    - `prune` deletes records of commands that ended so many minutes ago, and then the oldest ended ones until the kept
      output is at most so many megabytes; it returns the number of the latter, and changes `location` if it deleted
      any;
    - `wall` names what stands around commands: `bubblewrap`, `landlock`, `seatbelt`, `docker`, `singularity`, `ssh`;
      empty where nothing does. It may block for some milliseconds, once;
    - `waits_for` says in a few words what the start, or the end, of a command in this folder is waiting for; empty
      where a person need not know;
    - `close` releases this program's resources; commands go on.
    """

    @property
    def name(self) -> str: ...

    async def start(self, exec_id: str, command: Command) -> Running: ...

    async def attach(self, exec_id: str) -> Running | None: ...

    async def location(self, folder: str) -> Location: ...

    async def list(self, group: str) -> tuple[str, ...]: ...

    async def directory(self, shell: str) -> str: ...

    def exported(self, shell: str) -> Mapping[str, str]: ...

    async def prune(self, minutes: int, megabytes: int) -> int: ...

    def wall(self) -> str: ...

    def waits_for(self, folder: str) -> str: ...

    async def close(self) -> None: ...


async def begun(place: Place, exec_id: str, command: Command) -> Running:
    """Start a command under this id, or attach to it where it was started before. Raises `PlaceFailed`."""
    for _ in range(TRIES):
        if (running := await place.attach(exec_id)) is not None:
            return running
        with suppress(AlreadyStarted):  # Where its starter died before it began, the next try starts it.
            return await place.start(exec_id, command)
    raise PlaceFailed(f"{exec_id} was started before, and its record is gone.")


async def end_of_output(running: Running, most: int) -> bytes:
    """The last bytes that a command wrote."""
    return await running.read(max(0, await running.size() - most), most)


TRIES = 3
KEPT_MINUTES, KEPT_MB = 7 * 24 * 60, 4000


NO_WALL = (
    "No wall can be had here: each command but plain reading asks first. Install bubblewrap, or have a kernel with "
    "Landlock."
)
"""What the owner is told who wants a wall."""


def lazy_place(name: str, make: Callable[[], Place]) -> Place:
    """A place that is created by `make` on first use; then records of commands that ended a week ago are deleted in
    the background, and the oldest ones beyond 4 GB."""
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
