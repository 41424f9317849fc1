"""Slash commands /mcp and /reload-mcp, and the prompts of MCP servers as commands."""

from __future__ import annotations

from dataclasses import replace

from hermes_agent.app.commands.command import Command, Desk, Done
from hermes_agent.app.operations.access import say_verb
from hermes_agent.app.operations.mcp.servers import (
    MCP,
    begin_sign_in,
    end_sign_in,
    fill_prompt,
    reload_servers,
    said_of,
)
from hermes_agent.core.chat import Inbound

OPEN = """Open this address, and sign in:
{address}
Then paste the address where the browser ended: `/mcp login {name} ADDRESS`"""


async def servers(desk: Desk, rest: str) -> Done:
    """List the servers, show what one offers, ask it again, or sign in to it."""
    match rest.split():
        case ["reload"]:
            return await reload(desk, "")
        case ["login", name]:
            address = await begin_sign_in(desk.access, name)
            return Done(text=OPEN.format(address=address, name=name) if address else f"You are signed in to {name}.")
        case ["login", name, address]:
            return Done(text=said_of(await end_sign_in(desk.access, name, address)))
        case words:
            return Done(text=await say_verb(MCP, desk.access, words))


async def reload(desk: Desk, rest: str) -> Done:
    """Read the settings of the servers again."""
    found = await reload_servers(desk.access)
    return Done(text=MCP.verbs[0].text(found) if found else MCP.verbs[0].nothing)


async def prompt(desk: Desk) -> Inbound | None:
    """The message that `/mcp__server__prompt words` stands for; None if no server has that prompt."""
    parts = await fill_prompt(desk.access, desk.inbound.text)
    return None if parts is None else replace(desk.inbound, parts=(*desk.inbound.parts, *parts))


SERVERS = Command(
    name="mcp",
    summary="List MCP servers, show what one offers, ask it again, or sign in to it.",
    arguments=f"{MCP.arguments[:-1]}|login|reload] [NAME]",
    act=servers,
    while_running=True,
)
RELOAD = Command(
    name="reload-mcp",
    summary="Read the settings of MCP servers again.",
    act=reload,
    while_running=True,
)
