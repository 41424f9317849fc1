"""The process of `hermes acp`: one editor on standard input and output, until it leaves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from acp.connection import Connection

from hermes_agent.acp.agent import AcpAgent
from hermes_agent.acp.editor import Editor
from hermes_agent.acp.transport import StdioTransport
from hermes_agent.core.clock import SystemClock
from hermes_agent.host.late import late
from hermes_agent.host.loops import ends_within, told_to_end
from hermes_agent.host.paths import Home
from hermes_agent.host.tasks import spawn

if TYPE_CHECKING:
    from hermes_agent.acp.sessions import Sessions

OPEN, OPTIONS = "hermes_agent.app.opening:open_system", "hermes_agent.app.process:Options"
SESSIONS = "hermes_agent.acp.sessions:Sessions"
LEAVE_SECONDS = 2.0
LOOK_SECONDS = 2.0


async def serve(home: Home, handles: tuple[int, int], model: str = "") -> None:
    """Serve one editor until it closes its side, dies, or the process is asked to end. The process ends soon after,
    whatever its threads do."""
    with told_to_end(LEAVE_SECONDS) as told:
        async with connected(home, handles, model) as (agent, left):
            asked, alone = spawn(told.wait(), name="asked to end"), spawn(orphaned(os.getppid()), name="parent")
            ends: list[asyncio.Task[Any]] = [*left, asked, alone]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for each in ends:
                each.cancel()
            if agent.opened is None or agent.opened.system.settings.acp.on_leave == "stop":
                ends_within(LEAVE_SECONDS)


@asynccontextmanager
async def connected(
    home: Home, handles: tuple[int, int], model: str = ""
) -> AsyncIterator[tuple[AcpAgent, tuple[asyncio.Task[Any], ...]]]:
    """Context manager: the agent behind these handles, and tasks one of which ends when the editor leaves. On exit
    its runs are stopped, or have ended."""
    async with AsyncExitStack() as closing:

        async def opens() -> Sessions:
            options = late(OPTIONS)(model=model, titles=True, reviews=True)
            system = await closing.enter_async_context(late(OPEN)(home.ensure(), options))
            sessions: Sessions = late(SESSIONS)(system, agent.editor)
            return sessions

        transport = StdioTransport(*handles)
        agent = AcpAgent(opens)
        connection = Connection(agent.handle, transport, listening=False)
        agent.editor = Editor(connection, transport)
        reading = spawn(connection.main_loop(), name="messages of the editor")
        lost = spawn(transport.gone.wait(), name="the editor reads no more")

        try:
            yield agent, (reading, lost)
        finally:
            reading.cancel()
            lost.cancel()
            if agent.opened is not None:
                await agent.opened.leave()
            elif agent.opening is not None:
                agent.opening.cancel()
                await asyncio.wait((agent.opening,))
            with suppress(ConnectionError):
                await connection.close()


async def orphaned(parent: int) -> None:
    """Return when the process that started this one is gone."""
    while os.getppid() == parent:
        await SystemClock().sleep(LOOK_SECONDS)
