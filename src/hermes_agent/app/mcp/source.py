"""Source of the tools of MCP servers: those of the settings, and of the project's file where its folder is trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hermes_agent.app.folder_trust import TrustedFolders
from hermes_agent.app.mcp.foreign import PROJECT_SERVERS, project_servers
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ConfigError
from hermes_agent.core.messages import ToolSchema
from hermes_agent.core.tool import Quarantined, Tool
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import current_folder
from hermes_agent.host.secrets import Secrets
from hermes_agent.providers.tool_schemas import DEEPEST, PLAIN, ToolRules, Unfit, fit
from hermes_agent.store.database import Store
from hermes_agent.store.mcp.catalogue import McpPrompt
from hermes_agent.tools.mcp.calls import McpCalls
from hermes_agent.tools.mcp.listing import ServerTool, is_offered, tool_name
from hermes_agent.tools.mcp.resources import ResourceTools
from hermes_agent.tools.mcp.servers import McpServers
from hermes_agent.tools.mcp.settings import Server, servers_of
from hermes_agent.tools.schema import collect
from hermes_agent.tools.surfaces import ONE_SERVER, SurfaceTools, is_on

if TYPE_CHECKING:
    from hermes_agent.app.mcp.connecting import Connector
    from hermes_agent.tools.mcp.connection import Connection

TOOLSET = "mcp"
CONNECTOR = "hermes_agent.app.mcp.connecting:Connector"
EACH = (PLAIN, ToolRules(letter_first=True, inline=True, described=True))
"""With and without references: what fits both, fits every dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningIn:
    """A sign-in that waits for the address where the browser ended."""

    task: asyncio.Task[None]
    address: asyncio.Future[str]


class McpTools:
    """Implements `ToolSource`; of the `servers` given, or of those of the settings and the project. A server is asked
    when a call needs it, or when a search for tools finds that nobody asked it yet; what it said last is in the
    store."""

    def __init__(self, needs: Needs, servers: Sequence[Server] | None = None) -> None:
        self._needs = needs
        self.settings = needs.get(Settings)
        self.problems: tuple[str, ...] = ()
        self.signing_in: dict[str, SigningIn] = {}
        self.all = self._configured() if servers is None else tuple(servers)
        secrets = needs.get(Secrets)
        for server in self.all:
            secrets.hide(f"MCP_{server.name}", *server.literals)
        self.servers = McpServers(
            [each for each in self.all if each.settings.enabled],
            catalogue=lambda: needs.get(Store).mcp,
            connect=self._connect,
            clock=needs.get(Clock),
            fits=fits,
            redact=secrets.redact,
        )
        self.dynamic = bool(self.servers.servers)
        self.calls = McpCalls(self.servers)
        self._resources = ResourceTools(self.servers, self.calls)
        self._common, _ = collect([self._resources]) if self.dynamic else ((), ())

    @cached_property
    def connector(self) -> Connector:
        """Opens connections; loaded with the first."""
        made: Connector = late(CONNECTOR)(self._needs)
        return made

    def _configured(self) -> tuple[Server, ...]:
        own = servers_of(self.settings.mcp_servers)
        named = {each.name for each in own}
        return (*own, *(each for each in self._project() if each.name not in named))

    async def _connect(self, server: Server, workspace: str, changed: Callable[[str], None]) -> Connection:
        return await self.connector(server, workspace, changed)

    def _project(self) -> tuple[Server, ...]:
        """The servers of the folder where a person works. A chat's folders have none."""
        options, folder = self._needs.get(Options), current_folder()
        if not options.own_only or not (folder / PROJECT_SERVERS).is_file():
            return ()
        folders = self._needs.get(TrustedFolders) if options.tape is None else None
        if folders is None or not folders.is_trusted(str(folder)):
            return ()
        try:
            return project_servers(folder)
        except ConfigError as error:
            self.problems = (str(error),)
            return ()

    @property
    def quarantined(self) -> Sequence[Quarantined]:
        """Tools that servers offer and no model could use."""
        return [
            Quarantined(name=tool_name(name, tool.name), reason=tool.why)
            for name, known in self.servers.known.items()
            for tool in known.tools
            if tool.why
        ]

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]:
        """The tools of the servers that are on, each a toolset of its own (`mcp:SERVER`) within the toolset `mcp`."""
        given = [each for each in (self._needs.get(Options).toolsets, narrowed or None) if each is not None]
        found: list[Tool] = [
            ServerTool(server=server, tool=tool, calls=self.calls)
            for name, server in self.servers.servers.items()
            if (known := self.servers.known.get(name)) and self._is_on(surface, given, name)
            for tool in known.tools
            if not tool.why and is_offered(server.settings, tool.name)
        ]
        return (*found, *(self._common if self._is_on(surface, given) else ()))

    def _is_on(self, surface: str, given: Sequence[Sequence[str]], server: str = "") -> bool:
        """Whether a surface, of which only the toolsets of each of `given` count, has a server (empty: all)."""
        one, settings = f"{ONE_SERVER}{server}", self.settings.tools
        is_left = all(TOOLSET in each or (server and one in each) for each in given)
        return (
            is_left and is_on(surface, TOOLSET, settings) and one not in settings.get(surface, SurfaceTools()).disabled
        )

    def prompts(self) -> dict[str, tuple[Server, McpPrompt]]:
        """The prompts of the servers, by the names that a slash calls."""
        return {
            tool_name(name, prompt.name): (server, prompt)
            for name, server in self.servers.servers.items()
            if (known := self.servers.known.get(name))
            for prompt in known.link.prompts
        }

    def subscribe(self, changed: Callable[[], None]) -> None:
        """See `ToolSource`."""
        self.servers.listeners.append(changed)

    def news(self, session: str) -> str:
        """The resources that changed."""
        return self._resources.news(session)

    async def ready(self) -> None:
        """Read what other processes learned."""
        if self.dynamic:
            await self.servers.load()

    async def look(self, workspace: str) -> None:
        """Ask servers that nobody asked yet."""
        await self.servers.ask_new(workspace)

    async def close(self) -> None:
        """End the connections and programs."""
        await self.servers.close()
        if "connector" in vars(self):  # It was used.
            await self.connector.close()


def fits(schema: ToolSchema) -> str:
    """Why a dialect could not offer the tool; empty: all could."""
    try:
        for rules in EACH:
            fit(schema, rules)
    except Unfit as unfit:
        return str(unfit)
    except RecursionError:
        return f"its parameters are nested more than {DEEPEST} deep"
    return ""
