"""A function over bytes from outside, in a process of its own: what takes all time or memory ends there."""

from __future__ import annotations

import asyncio
import resource
import sys
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import late
from hermes_agent.host.process import open_piped

WORK_SECONDS = 20
WAIT_SECONDS = 300.0
"""Seconds until it is over also where the machine has other things to do."""
MEMORY = 1 << 30
SOURCE = Path(__file__).resolve().parents[2]
RUNNER = "import sys; sys.path.insert(0, sys.argv[1]); from hermes_agent.host.apart import main; main()"


class Ended(HermesError):
    """The function gave nothing: it took too much, or failed. Says which, with the last line of what it told."""


async def apart(
    function: str, data: bytes, *words: str, work: int = WORK_SECONDS, patience: float = WAIT_SECONDS
) -> bytes:
    """What the function of that name (as for `late`) gives for the bytes and words, within `work` seconds of work and
    `MEMORY` bytes. Raises `Ended`, and `OSError` where no process can be started."""
    argv = [sys.executable, "-I", "-c", RUNNER, str(SOURCE), str(work), function, *words]
    running = await open_piped(argv, env={}, data=data)
    try:
        async with asyncio.timeout(patience):
            out, errors, code = await running.rest(), await running.errors(), await running.code()
    except TimeoutError as error:
        raise Ended(f"it took more than {patience:g} s") from error
    finally:
        await running.close()
    if code:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        limits = f"{work} s of work or {MEMORY >> 30} GB"
        raise Ended(f"it took more than {limits}, or failed ({code}) {last}".strip())
    return out


def main() -> None:
    """Call the function that the arguments name, within the limits."""
    _, _, work, function, *words = sys.argv
    for kind, most in ((resource.RLIMIT_CPU, int(work)), (resource.RLIMIT_AS, MEMORY)):
        with suppress(ValueError, OSError):  # A system without this limit, or with a lower one.
            resource.setrlimit(kind, (most, most))
    sys.stdout.buffer.write(late(function)(sys.stdin.buffer.read(), *words))
