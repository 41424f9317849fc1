"""The way into a place that is not this machine: a shell script that is run there, and its answer as it comes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from hermes_agent.host.process import CapturedProcess, open_piped
from hermes_agent.sandbox.place import PlaceFailed


class Unreachable(PlaceFailed):
    """There was no answer from the place: it is gone, or the way to it is."""


class Call(Protocol):
    """One script that runs there.

    - `line` gives the answer's next line (under 64 kB, without its end), `rest` whatever comes after, to the end; both
      raise `Unreachable` where the place or the way to it went away before the end;
    - `close` gives up listening; what was started there goes on.
    """

    async def line(self) -> str: ...

    async def rest(self) -> bytes: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """- `call` runs `sh -c SCRIPT supervisor ARGUMENTS...` there with `data` as its input; raises `Unreachable`;
    - `restore` is asked after that: it makes the place reachable again and says what of it was lost, in a sentence, or
      nothing where it is the same one. It raises `PlaceFailed` where it cannot, or did so a moment ago in vain;
    - `records` is the folder there that keeps what is known of commands; it outlives the place where anything does;
    - `environment` is what a shell that is new there is told.
    """

    @property
    def records(self) -> str: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    async def call(self, arguments: Sequence[str], data: bytes = b"") -> Call: ...

    async def restore(self) -> str: ...


class ProgramCall:
    """A script that a program on this machine runs there (`docker exec`, `apptainer exec`)."""

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
    """Run a program that runs the script there. Its own exit codes from `failed` on say that the place is gone."""
    with suppress(OSError):
        return ProgramCall(await open_piped(argv, env=env, data=data), failed=failed)
    raise PlaceFailed(f"`{argv[0]}` cannot be run.")
