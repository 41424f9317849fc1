"""`hermes mcp serve`: one client over standard input and output. Needs the extra `mcp`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from mcp.server.stdio import stdio_server

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.operations.access import Access
from hermes_agent.core.clock import SystemClock
from hermes_agent.host.loops import ends_within, told_to_end
from hermes_agent.host.paths import Home, current_folder
from hermes_agent.host.tasks import in_own_thread, spawn
from hermes_agent.mcp_server.adapter import server_of
from hermes_agent.mcp_server.offer import HermesOffer

LONGEST = 64 << 20
"""Bytes of one message; the rest of a longer one is no message."""
LAST_SECONDS, LEAVE_SECONDS = 1.0, 2.0


async def serve(home: Home, remark: Callable[[str], None], *, model: str = "", approve: bool = False) -> None:
    """Serve the person of this machine until the client closes its end, or the process is asked to end. `model`
    answers (empty: the usual one), `remark` gets what a person should know; `approve`: the client may approve calls."""
    wire = Wire()
    with told_to_end() as told:
        async with open_system(home, Options(model=model)) as system:
            if system.notice:
                remark(system.notice)
            access = Access(system=system, who=system.owner, folder=str(current_folder()), approves=approve)
            server = server_of(HermesOffer(access))
            serving, ending = spawn(_serve(server, wire), name="MCP"), spawn(told.wait(), name="told to end")
            left = spawn(wire.left(), name="the client left")
            await asyncio.wait((serving, ending, left), return_when=asyncio.FIRST_COMPLETED)
            ends_within(LEAVE_SECONDS)  # Whatever a thread does then.
            for each in (serving, ending, left):
                each.cancel()
            await asyncio.wait((serving,))


async def _serve(server: Any, wire: Wire) -> None:  # noqa: ANN401 - the SDK's
    async with stdio_server(wire, wire) as (read, write):  # type: ignore[arg-type]  # the methods that it uses
        await server.run(read, write, server.create_initialization_options())


class Wire:
    """The client's pipes. From its making on what else this process reads and prints does not reach them. Whoever reads
    or writes them can be cancelled, unlike in the SDK."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._input, self._output = _moved(0, os.open(os.devnull, os.O_RDONLY)), _moved(1, os.dup(2))

    def __aiter__(self) -> Wire:
        return self

    async def __anext__(self) -> str:
        if not (line := await in_own_thread(partial(self._input.readline, LONGEST))):
            self._over.set()
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")

    async def left(self) -> None:
        """Return when the input has ended and the last answers had time to be read."""
        await self._over.wait()
        await SystemClock().sleep(LAST_SECONDS)

    async def write(self, text: str) -> None:
        """Write a message."""
        await in_own_thread(partial(self._output.write, text.encode()))

    async def flush(self) -> None:
        """See the SDK."""
        await in_own_thread(self._output.flush)


def _moved(number: int, instead: int) -> BinaryIO:
    """A standard stream under another number, and `instead` in its place."""
    found = os.fdopen(os.dup(number), "wb" if number else "rb")
    os.dup2(instead, number)
    os.close(instead)
    return found
