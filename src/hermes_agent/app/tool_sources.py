"""Tool sources: the `ToolSource` protocol, sources with a fixed set of tools, and the servers of editors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from hermes_agent.core.tool import Quarantined, Tool
from hermes_agent.host.late import Needs, late
from hermes_agent.memory.settings import MemorySettings
from hermes_agent.tools.mcp.settings import Server

EditorServer: TypeAlias = Server
COLLECT = "hermes_agent.tools.schema:collect"
MEMORY = "hermes_agent.app.memory_provider:MemoryProvider"


class ToolSource(Protocol):
    """Provides the tools of one origin (built-in, registered by a program, memory).

    - `dynamic`: its tools may change during a session: `find_tools` finds them, and no prompt prefix names them;
    - `tools` returns the tools of a surface, in a fixed order, without blocking; a conversation may be `narrowed` to
      toolsets;
    - `subscribe` has `changed` called in the event loop after each change of `tools`;
    - `ready` is awaited before each run, and is quick; `look` is awaited when a model searches for tools in a
      workspace, and takes some seconds at most; `news` is what else changed, for the next message of a session; all
      three are only for `dynamic` sources;
    - `quarantined`: tools that cannot be offered, with the reason;
    - `close` releases its resources.
    """

    @property
    def dynamic(self) -> bool: ...

    @property
    def quarantined(self) -> Sequence[Quarantined]: ...

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]: ...

    def subscribe(self, changed: Callable[[], None]) -> None: ...

    async def ready(self) -> None: ...

    async def look(self, workspace: str) -> None: ...

    def news(self, session: str) -> str: ...

    async def close(self) -> None: ...


class Toolsets(Protocol):
    """The built-in toolsets by name: those of a surface, restricted to `narrowed` if given, and the tools of one."""

    table: Mapping[str, str]

    def toolsets(self, surface: str, narrowed: Sequence[str] = ()) -> tuple[str, ...]: ...

    def tools_of(self, toolset: str) -> tuple[Tool, ...]: ...


class FixedTools:
    """Tool source whose tools do not change while the process runs. `given` are tools, or objects with tool methods,
    that every surface gets."""

    dynamic = False
    quarantined: Sequence[Quarantined] = ()

    def __init__(self, given: Iterable[object] = ()) -> None:
        self._tools: Sequence[Tool] = ()
        if given := tuple(given):
            self._tools, self.quarantined = late(COLLECT)(given)

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]:  # noqa: ARG002 - the Protocol's shape
        """All of them."""
        return self._tools

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Nothing ever changes."""

    async def ready(self) -> None:
        """It always is."""

    async def look(self, workspace: str) -> None:
        """There is nothing else."""

    def news(self, session: str) -> str:  # noqa: ARG002 - the Protocol's shape
        """Nothing."""
        return ""

    async def close(self) -> None:
        """Nothing is held."""


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


class MemoryTools(FixedTools):
    """Tool source of the memory provider, which belongs to the toolset `memory`."""

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]:
        """Its tools, where that toolset is not left out."""
        return super().tools(surface, narrowed) if not narrowed or "memory" in narrowed else ()


def memory_tools(needs: Needs) -> FixedTools:
    """Tool source of the memory provider, if the settings name one."""
    return MemoryTools(() if needs.get(MemorySettings).provider == "none" else needs.made(MEMORY).tools())
