"""The process of `hermes acp`: one editor on standard input and output, until it leaves."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

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
    """Serve one editor until it closes its side, dies, or the process is asked to end."""
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
        with told_to_end(LEAVE_SECONDS) as told:
            ways = (connection.main_loop(), transport.gone.wait(), told.wait(), _orphaned(os.getppid()))
            ends = [spawn(each, name="until the editor leaves") for each in ways]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            sessions = agent.opened
            if sessions is None or sessions.system.settings.acp.on_leave == "stop":
                ends_within(LEAVE_SECONDS)
            for each in ends:
                each.cancel()
            if sessions is not None:
                await sessions.leave()
            with suppress(ConnectionError):
                await connection.close()
    ends_within(0)


async def _orphaned(parent: int) -> None:
    """Return when the process that started this one is gone."""
    while os.getppid() == parent:
        await SystemClock().sleep(LOOK_SECONDS)
