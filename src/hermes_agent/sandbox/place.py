"""What a place is: where commands run, under ids that outlive the program that started them."""

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
    """A command was started under this id before: attach to it."""


class PlaceFailed(ToolError):
    """The place could not do what was asked; the sentence is for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A shell command and where it runs.

    `shell` names a kept shell, whose working directory and exported variables the command finds as the last one left
    them; `keeps` says that it leaves its own. `folder` (absolute) is where a kept shell begins, and where a command
    without one runs. `workdir` is for this command alone, relative to where it would run; with it the directory is not
    kept. `background` gives it an input that can be written to and lists it in `Place.list`; otherwise its input is
    empty. `pty` makes its input and output a terminal of 24 rows and 80 columns. `watch` is what whoever started it
    waits for in its output; the place only keeps it. `lent` are files of this machine that this command alone may read,
    whatever walls stand around it. `limit` is after how many seconds the place itself ends it, with everything that it
    started, also where the program that started it is gone (0: never); what it left behind at its own end goes on.
    """

    text: str
    folder: str
    workdir: str = ""
    shell: str = ""
    keeps: bool = True
    background: bool = False
    pty: bool = False
    watch: tuple[str, ...] = ()
    lent: tuple[str, ...] = ()
    limit: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """Files that are gone where a command ran and were kept here, because only a person may say to delete so much.
    `delete` deletes those that nobody changed since, and says how many in a sentence."""

    paths: tuple[str, ...]
    delete: Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: exit code as a shell counts it (128 + n for signal n), and seconds from start to end.

    `code` is None where nobody saw it end (the machine went down, or it was killed while no Hermes ran). `children`
    says that processes which it started run on. `notes` are sentences about what else is to be known, `deletion` is
    what a person is to be asked.
    """

    code: int | None
    seconds: float
    children: bool = False
    notes: tuple[str, ...] = ()
    deletion: Deletion | None = None


class Running(Protocol):
    """One command that was started, running or ended.

    - `wait` returns when the command has ended, also where an earlier program started it, and as often as it is asked;
      cancelling `wait` leaves the command alone;
    - what the command kept is in its kept shell when `wait` or `poll` has said that it ended;
    - `poll` answers at once: None while it runs;
    - output (both streams, in the order written) is kept whole; `read` gives up to `limit` bytes from `start` on, while
      it runs too, empty at the present end; `output_path` is where the model finds the whole;
    - `cover` puts bytes over what is in the output from `start` on, while the command runs too; the output stays as
      long as it is; `rewrite` puts others in place of the whole output of a command that has ended;
    - `write` sends bytes to the input of a background command, and raises `PlaceFailed` for any other;
    - `kill` ends the command and everything that it started, whatever signals those ignore and whatever session they
      moved to, and returns within two seconds, True when nothing is left; after it `wait` returns.
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
    """Where commands run.

    - an exec id reads `group/name`, each of 1 to 120 of `A-Z a-z 0-9 _ . : -`, no dot first;
    - `start` claims the id, then starts the command once, detached: it lives on when this program dies. It raises
      `AlreadyStarted` for an id that was claimed before, whoever claimed it, and `PlaceFailed` (nothing claimed) where
      the command cannot be started, or cannot be lent what it should be;
    - `attach` gives the command of this id, running or ended, also after `kill -9` of the program that started it; None
      where there is no record of one. Output and exit code are whole;
    - `location` is where records of commands in `folder` are kept now. A command without a record was never begun, and
      may be, where this is what it was when the command was about to be; anywhere else nothing is known of it;
    - `list` gives the ids of a group that were started in the background or left processes behind, oldest first;
    - `directory` is where the next command of a kept shell runs, empty where the shell was not used yet;
    - `exported` are the variables that it finds there, where that is known without asking another machine; empty where
      it is not, or the shell was not used yet; blocks;
    - `prune` forgets commands that ended so many minutes ago, and of the others that ended those that were the first
      to, until the output that is kept is at most so many megabytes; it says how many those were, and where it forgot
      any, `location` is another one from then on;
    - `waits_for` says in a few words what the start, or the end, of a command in this folder is waiting for just now;
      empty where it is nothing that a person need be told of;
    - `close` ends what this program holds open for it; commands go on.
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

    def waits_for(self, folder: str) -> str: ...

    async def close(self) -> None: ...


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
