"""Catalogue of MCP servers: the tools that each listed last, so that nobody has to be asked at a start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.records import revive
from hermes_agent.store.transaction import Tables, Transaction, plain, written

PUT_LINK = (
    "INSERT INTO mcp_link (home, server, body) VALUES ($home, $1, $2) "
    "ON CONFLICT (home, server) DO UPDATE SET body = excluded.body"
)
LINKS = "SELECT server, body FROM mcp_link WHERE home = $home ORDER BY server"
DROP_LINK = "DELETE FROM mcp_link WHERE home = $home AND server = $1"
PUT_TOOL = "INSERT INTO mcp_tool (home, server, place, body) VALUES ($home, $1, $2, $3)"
TOOLS = "SELECT body FROM mcp_tool WHERE home = $home AND server = $1 ORDER BY place"
DROP_TOOLS = "DELETE FROM mcp_tool WHERE home = $home AND server = $1"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpPrompt:
    """A prompt of a server, with the names of its arguments; those of `required` have to be given."""

    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpLink:
    """What is known of a server. `config` is the hash of its settings then, `version` the protocol's, `seen` when its
    tools were listed (0: never). `why` says why it could not be used then; empty: it could."""

    server: str
    config: str = ""
    version: str = ""
    title: str = ""
    seen: float = 0.0
    prompts: tuple[McpPrompt, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool as its server describes it. `reads` is the server's hint; `tasks`: its calls may go on as tasks; `why`
    says why it is quarantined (empty: it is not)."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reads: bool = False
    tasks: bool = False
    why: str = ""


class McpCatalogue(Tables):
    """Rows per server of this home; a listing replaces the one before as a whole."""

    async def links(self) -> dict[str, McpLink]:
        """All servers that were ever asked."""
        rows = await self._engine.read(lambda tx: tx.rows(LINKS), brief=True)
        return {server: revive(McpLink, plain(body)) for server, body in rows}

    async def tools(self, server: str) -> tuple[McpTool, ...]:
        """The tools that the server listed last."""
        rows = await self._engine.read(lambda tx: tx.rows(TOOLS, server), brief=True)
        return tuple(revive(McpTool, plain(row[0])) for row in rows)

    async def put(self, link: McpLink, tools: Sequence[McpTool] | None = None) -> None:
        """Write what is known of a server, and its tools (None: they stay) where the rows have others."""
        bodies = None if tools is None else list(map(written, tools))

        async def change(tx: Transaction) -> None:
            await tx.run(PUT_LINK, link.server, written(link))  # First: others who write this server wait for it.
            if bodies is None or bodies == [row[0] for row in await tx.rows(TOOLS, link.server)]:
                return
            await tx.run(DROP_TOOLS, link.server)
            if bodies:
                await tx.many(PUT_TOOL, [(link.server, place, body) for place, body in enumerate(bodies)])

        await self._engine.write(change)

    async def forget(self, server: str) -> None:
        """Remove all that is known of a server."""

        async def change(tx: Transaction) -> None:
            await tx.run(DROP_TOOLS, server)
            await tx.run(DROP_LINK, server)

        await self._engine.write(change)
