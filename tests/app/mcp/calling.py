"""MCP servers as a process has them, with a real store and the wall of this machine."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hermes_agent.app.folder_trust import TrustedFolders
from hermes_agent.app.mcp.source import McpTools
from hermes_agent.app.settings import Settings
from hermes_agent.app.toolkit import needs_without_store
from hermes_agent.core.clock import SystemClock
from hermes_agent.core.errors import HermesError
from hermes_agent.core.tool import Answer, Tool
from hermes_agent.host.paths import Home
from hermes_agent.store.database import Store, open_store
from hermes_agent.tools.mcp.settings import McpServerSettings
from tests.tools.bench import Context, words

PLAIN, MODERN, ODD, TASKS = (
    Path(__file__).with_name(f"{name}_server.py") for name in ("plain", "modern", "odd", "task")
)


def plain(script: Path = PLAIN, /, **more: object) -> McpServerSettings:
    """The settings of one of the tests' own servers."""
    usual = {"command": sys.executable, "args": (script.name,)}
    return McpServerSettings(**{**usual, **more})


class Calling:
    """Calls tools by the names that a model knows."""

    def __init__(self, source: McpTools, workspace: Path) -> None:
        self.source, self.workspace, self.count = source, workspace, 0

    def processes(self, server: str) -> list[int]:
        """The processes of a server, by the mark in their environment."""
        mark = f"HERMES_EXEC={self.workspace.parent}/home/logs/mcp/{server}#".encode()
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if mark in _environment(path)]

    def tools(self) -> dict[str, Tool]:
        return {tool.schema.name: tool for tool in self.source.tools("cli", ())}

    def context(self, **more: object) -> Context:
        self.count += 1
        return Context(workspace=str(self.workspace), call=f"call_{self.count}", **more)

    async def answer(self, name: str, context: Context | None = None, /, **arguments: object) -> Answer:
        return await self.tools()[name].run(arguments, context or self.context())

    async def __call__(self, name: str, context: Context | None = None, /, **arguments: object) -> str:
        return words(await self.answer(name, context, **arguments))


@asynccontextmanager
async def calling(
    tmp_path: Path, servers: dict[str, McpServerSettings], *, store: Store | None = None, look: bool = True
) -> AsyncIterator[Calling]:
    home = Home(root=tmp_path / "home", base=tmp_path / "home").ensure()
    workspace = tmp_path / "work"
    workspace.mkdir(exist_ok=True)
    for script in (PLAIN, MODERN, ODD, TASKS):
        shutil.copy(script, workspace)
    own = store or await open_store(tmp_path / "hermes.db")
    values = {Store: own, TrustedFolders: TrustedFolders(home, SystemClock())}
    source = McpTools(needs_without_store(home, Settings(mcp_servers=servers), values))
    try:
        await source.ready()
        for server in source.servers.servers.values() if look else ():
            with suppress(HermesError):
                await source.servers.refresh(server, str(workspace))
        yield Calling(source, workspace)
    finally:
        await source.close()
        if store is None:
            await own.close()


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
