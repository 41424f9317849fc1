"""A mail is read in a process of its own: one that is made to take for ever, or all memory, ends with that process."""

from __future__ import annotations

import asyncio
import resource
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from hermes_agent.gateway.channel import NotNow
from hermes_agent.gateway.email.reading import Mail, Unreadable, read
from hermes_agent.host.process import open_piped

WORK_SECONDS = 20
"""Seconds of work for a mail; the largest ones take two or three."""
WAIT_SECONDS = 300.0
"""Seconds until it is over also where the machine has other things to do."""
MEMORY = 1 << 30
"""Bytes; the largest mail that is read whole takes a third of them."""
SOURCE = Path(__file__).resolve().parents[3]
RUNNER = "import sys; sys.path.insert(0, sys.argv[1]); from hermes_agent.gateway.email.apart import main; main()"


async def read_apart(
    raw: bytes, own: str, server: str = "", *, work: int = WORK_SECONDS, patience: float = WAIT_SECONDS
) -> Mail:
    """What `reading.read` gives, within `work` seconds of work. Raises `Unreadable`; `NotNow` where no process can be
    started."""
    argv = [sys.executable, "-I", "-c", RUNNER, str(SOURCE), own, server, str(work)]
    try:
        running = await open_piped(argv, env={}, data=raw)
    except OSError as error:
        raise NotNow(f"Mail cannot be read now: {error.strerror}") from error
    try:
        async with asyncio.timeout(patience):
            out, errors, code = await running.rest(), await running.errors(), await running.code()
    except TimeoutError as error:
        raise Unreadable("Reading the mail took too long.") from error
    finally:
        await running.close()
    if code:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        raise Unreadable(f"Reading the mail took too much time or memory, or failed ({code}). {last}".strip())
    found = msgspec.msgpack.decode(out, type=Mail | str)
    if isinstance(found, str):
        raise Unreadable(found)
    return found


def told(raw: bytes, own: str, server: str) -> bytes:
    """The mail as the other process is told it, or why it is none."""
    try:
        return msgspec.msgpack.encode(read(raw, own, server))
    except Unreadable as error:
        return msgspec.msgpack.encode(str(error))


def main() -> None:
    """Read the mail that comes in, within the limits."""
    for kind, most in ((resource.RLIMIT_CPU, int(sys.argv[4])), (resource.RLIMIT_AS, MEMORY)):
        with suppress(ValueError, OSError):  # A system without this limit, or with a lower one.
            resource.setrlimit(kind, (most, most))
    sys.stdout.buffer.write(told(sys.stdin.buffer.read(), sys.argv[2], sys.argv[3]))
