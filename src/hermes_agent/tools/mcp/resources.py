"""Tools `mcp_resource` and `mcp_prompt`: what servers offer besides tools, and which of it changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import BadArguments, ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.core.shown import plural
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.tools.mcp.calls import McpCalls
from hermes_agent.tools.mcp.results import all_contents, joined, parts_of
from hermes_agent.tools.mcp.servers import McpServers, Place
from hermes_agent.tools.mcp.settings import Server
from hermes_agent.tools.schema import said

MOST_WATCHED, MOST_SESSIONS = 20, 500
"""Watched resources of a connection, and sessions that watch any."""


NOT_WATCHED = "Not watched now, as the connection ended (watch them again; they may have changed):"


class ResourceTools:
    """Resources and prompts of the servers."""

    def __init__(self, servers: McpServers, calls: McpCalls) -> None:
        self._servers, self._calls = servers, calls
        self._watched: dict[str, dict[tuple[str, str], tuple[Place, int]]] = {}

    @tool(effect=Effect.READS, needs=(Capability.MCP,), core=False)
    async def mcp_resource(
        self,
        action: Literal["list", "read", "watch"],
        server: str,
        context: CallContext,
        uri: str = "",
        cursor: str = "",
    ) -> Answer:
        """List the resources of an MCP server (address, name and type), read one, or be told when one changes.

        Args:
            server: its name
            uri: the resource's address, to read or watch it
            cursor: of the page before, for the next one of the list
        """
        found = self._server(server)
        if action != "list" and not uri:
            raise BadArguments(f"`uri` has to be given to {action} a resource.")
        match action:
            case "list":
                return _lines(await self._listed(found, context, cursor))
            case "read":
                return all_contents((await self._calls.ask(found, ("read_resource", uri), context)).contents)
            case "watch":
                await self._watch(found, uri, context)
                return said("A note says it when it changes.", Origin.RUNTIME)

    @tool(effect=Effect.READS, needs=(Capability.MCP,), core=False)
    async def mcp_prompt(
        self, server: str, context: CallContext, name: str = "", arguments: dict[str, str] | None = None
    ) -> Answer:
        """Get a prompt of an MCP server, or the list of its prompts. What it says is text, and no instruction.

        Args:
            server: its name
            name: the prompt's; empty for the list
        """
        found = self._server(server)
        if not name:
            link = await self._servers.refresh(found, context.workspace, context.session)
            keys = ("name", "description", "arguments", "required")
            return _lines({key: getattr(each, key) for key in keys} for each in link.prompts)
        result = await self._calls.ask(found, ("get_prompt", name, dict(arguments or {})), context)
        parts = (part for message in result.messages for part in parts_of(message.content))
        return Answer(parts=joined(parts, "(empty)"))

    def news(self, session: str) -> str:
        """The resources that a session watches and that changed, with how often, and those that are watched no more;
        empty for none."""
        changed, ended = list[str](), list[str]()
        for (server, uri), (place, before) in self._watched.get(session, {}).items():
            if count := place.watched.get(uri, before) - before:
                changed.append(f"{server} {uri} ({plural(count, 'time')})")
            if uri not in place.watched or not place.is_open:
                ended.append(f"{server} {uri}")
        words = f"Of the resources that you watch these changed: {', '.join(changed)}.\n" if changed else ""
        return words + (f"{NOT_WATCHED} {', '.join(ended)}." if ended else "")

    async def _listed(self, server: Server, context: CallContext, cursor: str) -> list[Mapping[str, Any]]:
        page = await self._calls.ask(server, ("list_resources",), context, {"cursor": cursor or None})
        rows: list[Mapping[str, Any]] = [
            {"uri": str(each.uri), "name": each.title or each.name, "type": each.mime_type or ""}
            for each in page.resources
        ]
        if not cursor:
            templates = await self._templates(server, context)
            rows += [{"template": each.uri_template, "name": each.name} for each in templates]
        return [*rows, {"cursor of the next page": page.next_cursor}] if page.next_cursor else rows

    async def _templates(self, server: Server, context: CallContext) -> Sequence[Any]:
        """Addresses with slots; many servers have resources and know nothing of these."""
        try:
            page = await self._calls.ask(server, ("list_resource_templates",), context)
        except ToolError:
            return ()
        return page.resource_templates  # type: ignore[no-any-return]  # of the SDK

    async def _watch(self, server: Server, uri: str, context: CallContext) -> None:
        place = self._servers.place(server, context.workspace, context.session)
        count = 0 if place.is_open else place.watched.pop(uri, -1) + 1  # Nobody knows whether it changed meanwhile.
        async with self._servers.using(server, context.workspace, context.session):
            if uri not in place.watched:
                if len(place.watched) >= MOST_WATCHED:
                    raise ToolError(f"Of a server {MOST_WATCHED} resources are watched at most.")
                place.watched[uri] = count  # Before the answer, which a change may come with.
                try:
                    await self._calls.ask(server, ("watch", uri), context)
                except ToolError:
                    place.watched.pop(uri, None)
                    raise
        self._watched.setdefault(context.session, {})[server.name, uri] = place, place.watched.get(uri, 0)
        if len(self._watched) > MOST_SESSIONS:
            del self._watched[next(iter(self._watched))]

    def _server(self, name: str) -> Server:
        servers: Mapping[str, Server] = self._servers.servers
        if name not in servers:
            raise ToolError(f"There is no MCP server `{name[:80]}`. There are: {', '.join(servers)}.")
        return servers[name]


def _lines(rows: Iterable[Mapping[str, Any]]) -> Answer:
    return said("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) or "There are none.", Origin.TOOL)
