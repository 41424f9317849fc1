"""Whether a process has MCP servers at all: where it has none, nothing of them is loaded."""

from __future__ import annotations

from hermes_agent.app.mcp.foreign import PROJECT_SERVERS
from hermes_agent.app.settings import Settings
from hermes_agent.app.tool_sources import FixedTools, ToolSource
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import current_folder

SOURCE = "hermes_agent.app.mcp.source:McpTools"


def mcp_tools(needs: Needs) -> ToolSource:
    """Tool source of MCP servers, if the settings or the present folder name one. Raises `ConfigError`."""
    if needs.get(Settings).mcp_servers or (current_folder() / PROJECT_SERVERS).is_file():
        source: ToolSource = late(SOURCE)(needs)
        return source
    return FixedTools()


class McpToolset:
    """The toolset `mcp`, whose tools come and go: it has none of its own."""


def mcp_toolset(_: Needs) -> McpToolset:
    """Factory of the toolset `mcp`."""
    return McpToolset()
