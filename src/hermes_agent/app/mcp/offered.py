"""Whether a process has MCP servers at all: where it has none, nothing of them is loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from hermes_agent.app.mcp.foreign import PROJECT_SERVERS
from hermes_agent.app.settings import Settings
from hermes_agent.app.tool_sources import FixedTools, ToolSource
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import current_folder
from hermes_agent.tools.mcp.settings import Server

EditorServer: TypeAlias = Server
SOURCE = "hermes_agent.app.mcp.source:McpTools"


def mcp_tools(needs: Needs) -> ToolSource:
    """Tool source of MCP servers, if the settings or the present folder name one. Raises `ConfigError`."""
    if needs.get(Settings).mcp_servers or (current_folder() / PROJECT_SERVERS).is_file():
        source: ToolSource = late(SOURCE)(needs)
        return source
    return FixedTools()


class EditorServers:
    """MCP servers that an editor gives for single sessions, by session. `drops` are called when one ends."""

    def __init__(self) -> None:
        self._servers: dict[str, tuple[EditorServer, ...]] = {}
        self.drops: list[Callable[[str], Awaitable[None]]] = []

    def of(self, session: str) -> tuple[EditorServer, ...]:
        """The servers of that session."""
        return self._servers.get(session, ())

    async def put(self, session: str, servers: Sequence[EditorServer]) -> None:
        """Use these in the session, from its next run on."""
        await self.drop(session)
        self._servers[session] = tuple(servers)

    async def drop(self, session: str) -> None:
        """End those of the session."""
        if self._servers.pop(session, None):
            for each in self.drops:
                await each(session)


class McpToolset:
    """The toolset `mcp`, whose tools come and go: it has none of its own."""


def mcp_toolset(_: Needs) -> McpToolset:
    """Factory of the toolset `mcp`."""
    return McpToolset()
