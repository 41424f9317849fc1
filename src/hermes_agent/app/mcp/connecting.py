"""Connects to MCP servers: starts their programs behind the wall, or reaches their addresses, signed in if needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_agent.app.places import network_of, walls
from hermes_agent.app.settings import Settings
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import HermesError
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import Home, environment
from hermes_agent.host.secrets import Secrets
from hermes_agent.sandbox.jail import jail_or_none, scrubbed
from hermes_agent.sandbox.piped import Piped, PipedPrograms, Program
from hermes_agent.tools.mcp.listing import Setup
from hermes_agent.tools.mcp.logins import Logins
from hermes_agent.tools.mcp.settings import McpServerSettings, Server, resolved

if TYPE_CHECKING:
    from hermes_agent.tools.mcp.connection import Connection
    from hermes_agent.tools.mcp.oauth import Person

CONNECTION = "hermes_agent.tools.mcp.connection:Connection"
TRANSPORT = "hermes_agent.tools.mcp.transport"
SAMPLE = "hermes_agent.app.mcp.sampling:sample"
SIGN_IN = "hermes_agent.tools.mcp.oauth:StoredSignIn"
MISSING = "MCP servers need the extra `mcp`: pip install 'hermes-runtime[mcp]' ({})."


class Connector:
    """Opens connections of one process. `persons` sign in to servers, by their names; without one a server that wants
    a sign-in cannot be reached."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self.persons: dict[str, Person] = {}
        self.logins = Logins(needs.get(Home), needs.get(Secrets).hide)
        self._started: PipedPrograms | None = None

    async def __call__(self, server: Server, workspace: str, changed: Callable[[str], None]) -> Connection:
        """Begin to connect. Raises `HermesError` where the extra or a secret is missing."""
        try:
            made, transport = late(CONNECTION), late(TRANSPORT)
        except ModuleNotFoundError as error:
            raise HermesError(MISSING.format(error.name)) from error
        own, running = resolved(server, self._needs.get(Secrets).get), list[Piped]()
        program = self._program(server.name, own, workspace)
        auth = self._sign_in(server)

        async def start() -> Piped:
            running.append(await self._programs.start(program, walled=own.jail, only=bool(server.source)))
            return running[-1]

        def streams(ended: Callable[[str], None]) -> Any:  # noqa: ANN401 - of the SDK
            if own.command:
                return transport.program_streams(start, ended)
            sse = own.transport == "sse"
            return transport.http_streams(own.url, own.headers, auth, seconds=own.connect_timeout, sse=sse)

        def is_alive() -> bool:
            return not running or running[-1].is_alive

        plan = Setup(
            server=server,
            workspace=workspace,
            streams=streams,
            changed=changed,
            is_alive=is_alive,
            redact=self._needs.get(Secrets).redact,
            sample=partial(late(SAMPLE), self._needs, server) if own.sampling != "off" else None,
        )
        connection: Connection = made(plan)
        return connection

    async def close(self) -> None:
        """Give back what the machine lent to programs."""
        if self._started is not None:
            await self._started.close()

    def _program(self, name: str, own: McpServerSettings, workspace: str) -> Program:
        return Program(
            name=name,
            argv=(own.command, *own.args),
            workspace=workspace or str(self._needs.get(Home).root / "workspace"),
            cwd=str(Path(own.cwd).expanduser()) if own.cwd else "",
            env=own.env,
        )

    def _sign_in(self, server: Server) -> Any:  # noqa: ANN401 - of httpx2
        own = server.settings
        if own.auth != "oauth":
            return None
        secret = self._needs.get(Secrets).get(own.client_secret) if own.client_secret else ""
        return late(SIGN_IN)(server, self.logins, self._needs.get(Clock), secret, self.persons.get(server.name))

    @property
    def _programs(self) -> PipedPrograms:
        if self._started is None:
            home, settings = self._needs.get(Home), self._needs.get(Settings)
            terminal = settings.terminal
            shown = walls(home, terminal, environment())
            self._started = PipedPrograms(
                folder=home.logs / "mcp",
                env=scrubbed(environment(), terminal.env_passthrough),
                jail=lambda: jail_or_none(terminal.jail, shown),
                network=network_of(terminal, settings.web.blocked),
                redact=self._needs.get(Secrets).redact,
            )
        return self._started
