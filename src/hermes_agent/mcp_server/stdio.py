"""`hermes mcp serve`: one client over standard input and output. Needs the extra `mcp`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server.stdio import stdio_server

from hermes_agent.app.opening import Options, open_system
from hermes_agent.app.operations.access import Access
from hermes_agent.host.loops import told_to_end
from hermes_agent.host.paths import Home, current_folder
from hermes_agent.host.tasks import spawn
from hermes_agent.mcp_server.adapter import server_of
from hermes_agent.mcp_server.offer import HermesOffer


async def serve(home: Home, remark: Callable[[str], None], *, model: str = "") -> None:
    """Serve the person of this machine until the client closes its end, or the process is asked to end. `model`
    answers (empty: the usual one), `remark` gets what a person should know."""
    with told_to_end() as told:
        async with open_system(home, Options(model=model)) as system:
            if system.notice:
                remark(system.notice)
            access = Access(system=system, who=system.owner, folder=str(current_folder()))
            server = server_of(HermesOffer(access))
            serving, ending = spawn(_serve(server), name="MCP over stdio"), spawn(told.wait(), name="told to end")
            try:
                await asyncio.wait((serving, ending), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ending.cancel()
                serving.cancel()
            if serving.done() and not serving.cancelled():
                serving.result()


async def _serve(server: Any) -> None:  # noqa: ANN401 - the SDK's
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
