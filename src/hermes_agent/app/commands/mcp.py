"""Slash command /mcp: MCP servers, as the agent has them."""

from __future__ import annotations

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.access import say_verb
from hermes_agent.app.operations.mcp.servers import MCP


async def servers(desk: Desk, rest: str) -> Done:
    """List the servers, show what one offers, or ask it again."""
    return Done(text=await say_verb(MCP, desk.access, rest.split()))


SERVERS = Command(
    name="mcp",
    summary="List MCP servers, show what one offers, or ask it again.",
    arguments=f"{MCP.arguments} [NAME]",
    act=servers,
    while_running=True,
)
