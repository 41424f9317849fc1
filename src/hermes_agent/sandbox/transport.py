"""Transports into remote places: run the script `supervisor.sh` there and stream its answer."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Protocol

from hermes_agent.host.process import CapturedProcess, Finished, open_piped, run
from hermes_agent.sandbox.jail import check_workspace
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.walls import Walls


class Unreachable(PlaceFailed):
    """The place did not answer: it, or the connection to it, is gone."""


class Call(Protocol):
    """One script that runs in a remote place.

    - `line` returns the answer's next line (under 64 kB, without its end), `rest` everything after it; both raise
      `Unreachable` where the place or the connection is lost before the end;
    - `close` stops listening; what was started there goes on.
    """

    async def line(self) -> str: ...

    async def rest(self) -> bytes: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """Connection to one place.

    - `call` runs `sh -c SCRIPT supervisor ARGUMENTS...` there with `data` as its input; raises `Unreachable`;
    - `restore` is called after that: it makes the place reachable again and says in a sentence what was lost,
      empty where it is the same place. It raises `PlaceFailed` where it cannot, or failed a moment ago;
    - `records` is the folder there for records of commands; it outlives the place where possible;
    - `environment` is that of a new shell there.
    """

    @property
    def records(self) -> str: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    async def call(self, arguments: Sequence[str], data: bytes = b"") -> Call: ...

    async def restore(self) -> str: ...


class Ways(Protocol):
    """Finds the transport for a command.

    - `to` gives the transport for a group's commands: for a new group that of `folder`; None for a group that
      never started. Raises `PlaceFailed`;
    - `near` gives the transport for sessions in `folder` (empty: any);
    - `close` closes all transports; what runs there goes on.
    """

    async def to(self, group: str, folder: str = "") -> Transport | None: ...

    async def near(self, folder: str) -> Transport: ...

    async def close(self) -> None: ...


class ProgramCall:
    """One script in a remote place, run through a local program (`docker exec`, `apptainer exec`); implements
    `Call`."""

    def __init__(self, piped: CapturedProcess, *, failed: int) -> None:
        self._piped = piped
        self._failed = failed

    async def line(self) -> str:
        line = await self._piped.line()
        if not line.endswith(b"\n"):
            raise Unreachable(await self._why())
        return line[:-1].decode(errors="surrogateescape")

    async def rest(self) -> bytes:
        content = await self._piped.rest()
        if await self._piped.code() >= self._failed:
            raise Unreachable(await self._why())
        return content

    async def close(self) -> None:
        await self._piped.close()

    async def _why(self) -> str:
        said = (await self._piped.errors()).decode(errors="replace").strip()
        await self._piped.close()
        return said.rpartition("\n")[2] or "The place does not answer."


async def program_call(argv: Sequence[str], env: Mapping[str, str], data: bytes, *, failed: int = 125) -> ProgramCall:
    """Start a program that runs the script there. Its own exit codes from `failed` on mean that the place is gone."""
    with suppress(OSError):
        return ProgramCall(await open_piped(argv, env=env, data=data), failed=failed)
    raise PlaceFailed(f"`{argv[0]}` cannot be run.")


AGAIN_SECONDS = 30.0  # what is gone so soon after it was made anew is not made a third time
FILE = Path(__file__).with_name("supervisor.sh")


@cache
def supervisor() -> str:
    """The script without comments: it is sent with every call."""
    lines = FILE.read_text().splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def words(arguments: Sequence[str]) -> list[str]:
    """The command line for a machine that takes words."""
    return ["sh", "-c", supervisor(), "supervisor", *arguments]


def line(arguments: Sequence[str]) -> str:
    """The same for a machine that takes a shell command."""
    return " ".join(map(quote, words(arguments)))


class FolderWays:
    """Gives each session folder its own transport, created by `begin`; implements `Ways`. The start folder of each
    group is stored in a small file in `groups` on this machine, where the place cannot change it."""

    def __init__(self, groups: Path, begin: Callable[[str], Awaitable[Transport]]) -> None:
        self.open: dict[str, Transport] = {}
        self._groups = groups
        self._begin = begin
        self._known: dict[str, str] = {}
        self._latest = ""
        self._opening = asyncio.Lock()

    async def to(self, group: str, folder: str = "") -> Transport | None:
        folder = await asyncio.to_thread(self.folder_of, group, folder)
        return await self.near(folder) if folder else None

    async def near(self, folder: str) -> Transport:
        folder = folder or self._latest
        if not folder:
            raise PlaceFailed("Nothing runs in this place yet.")
        async with self._opening:
            if folder not in self.open:
                await asyncio.to_thread(check_workspace, folder, Walls())
                self.open[folder] = await self._begin(folder)
            self._latest = folder
            return self.open[folder]

    async def close(self) -> None:
        """Does nothing: containers run on with their commands."""

    def folder_of(self, group: str, begins_in: str = "") -> str:
        """The start folder of the group, set to `begins_in` for a new one; empty where it never started. Blocks."""
        if group not in self._known:
            file = self._groups / group
            if file.exists():
                self._known[group] = file.read_text()
            elif begins_in:
                self._groups.mkdir(parents=True, exist_ok=True, mode=0o700)
                beside = self._groups / f".{group}.{os.getpid()}.{threading.get_ident()}"
                beside.write_text(begins_in)
                beside.replace(file)  # nobody reads half of it
                self._known[group] = begins_in
        return self._known.get(group, "")


class Renewed:
    """Base of a `Transport` into something that is recreated when gone. `kind` and `folder` name it in sentences;
    `why_gone` says why it is unusable (empty: it is not gone), `renew` recreates it."""

    kind: str
    why_gone: Callable[[], Awaitable[str]]
    renew: Callable[[], Awaitable[None]]

    def __init__(self, folder: str, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.folder = folder
        self._renewed = float("-inf")
        self._restoring = asyncio.Lock()

    async def restore(self) -> str:
        async with self._restoring:
            why, now = await self.why_gone(), asyncio.get_running_loop().time()
            if why and now - self._renewed < AGAIN_SECONDS:
                raise PlaceFailed(f"The {self.kind} of {self.folder} {why} again, right after it was made anew.")
            if why:
                await self.renew()
                self._renewed = now
        return why and (
            f"The {self.kind} {why} and was made anew. Lost: whatever ran in it, and files outside of {self.folder}. "
            f"Kept: files in {self.folder}, the working directory and exported variables, the output of earlier "
            "commands."
        )


async def run_to_end(argv: Sequence[str], env: Mapping[str, str], seconds: float) -> Finished:
    """Run the local program of a place. Raises `PlaceFailed`."""
    try:
        return await run(argv, env=env, seconds=seconds)
    except TimeoutError as error:
        raise PlaceFailed(f"`{' '.join(argv[:2])}` took more than {seconds:.0f} s.") from error
    except OSError as error:
        raise PlaceFailed(f"`{argv[0]}` cannot be run: {error.strerror}.") from error


def short_hash(text: str) -> str:
    """A name of twelve characters for anything."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
