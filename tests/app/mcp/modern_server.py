"""A server of the newer protocol for the tests, by the official SDK: `modern_server.py [http|sse PORT]`."""

from __future__ import annotations

import sys
from typing import Annotated

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("modern")


class Person(BaseModel):
    name: str
    age: int = 7


def asking() -> Elicit[Person]:
    return Elicit("Who are you?", Person)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def who(answer: Annotated[ElicitationResult[Person], Resolve(asking)]) -> str:
    """Ask who is there."""
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
async def more(context: Context) -> str:
    """Add a tool."""

    def later() -> str:
        """Came later."""
        return "later"

    server.add_tool(later)
    await context.notify_tools_changed()
    return "added"


@server.tool()
async def touch(context: Context) -> str:
    """Change the note."""
    await context.notify_resource_updated("note://one")
    return "touched"


@server.tool()
def swap() -> str:
    """Have another tool in place of `add`, without a word."""
    server.remove_tool("add")

    def plus(a: int, b: int) -> int:
        """Add two numbers, by another name."""
        return a + b

    server.add_tool(plus)
    return "swapped"


@server.tool()
async def hush(context: Context) -> str:
    """End all subscriptions, after which a tool is added that nobody is told of."""
    handler = server._lowlevel_server.get_request_handler("subscriptions/listen")
    handler.handler.close()

    def unheard() -> str:
        """Came without a word."""
        return "unheard"

    server.add_tool(unheard)
    return "hushed"


@server.resource("note://one")
def note() -> str:
    """A note."""
    return "the note"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        kind = "streamable-http" if sys.argv[1] == "http" else "sse"
        server.run(kind, port=int(sys.argv[2]), host="127.0.0.1")
    else:
        server.run("stdio")
