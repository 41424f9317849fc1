"""Built-in toolsets: the table of their factories, and a manifest of tool schemas with which a tool's module is
imported only when the tool is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.app.chats.people import People
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.tool_sources import FixedTools
from hermes_agent.core.effects import Capability
from hermes_agent.core.mandate import Work
from hermes_agent.core.messages import ToolSchema
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Tool
from hermes_agent.host.late import Needs
from hermes_agent.tools.surfaces import check_toolset, toolsets_of

FILE = Path(__file__).with_suffix(".json")


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in tool in manifest.json: its schema, the capabilities it needs, and whether it is a core tool."""

    name: str
    description: str
    parameters: dict[str, Any]
    needs: tuple[Capability, ...]
    core: bool


@cache
def manifest() -> Mapping[str, tuple[ManifestEntry, ...]]:
    """Load manifest.json: the entries of each built-in toolset."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, tuple[ManifestEntry, ...]])


def entry_of(tool: Tool) -> ManifestEntry:
    """The manifest entry of a loaded tool."""
    schema = tool.schema
    return ManifestEntry(
        name=schema.name,
        description=schema.description,
        parameters=dict(schema.parameters),
        needs=tuple(sorted(tool.needs)),
        core=getattr(tool, "core", True),
    )


def written(toolsets: Mapping[str, Sequence[Tool]]) -> str:
    """The content that `manifest.json` should have."""
    plain = {name: [entry_of(tool) for tool in tools] for name, tools in toolsets.items()}
    return msgspec.json.format(msgspec.json.encode(plain), indent=1).decode() + "\n"


class LazyTool:
    """A `Tool` known by its manifest entry; its module is imported when the tool is called, or asked about a call."""

    def __init__(self, entry: ManifestEntry, load: Callable[[], Tool]) -> None:
        self.schema = ToolSchema(name=entry.name, description=entry.description, parameters=entry.parameters)
        self.needs = frozenset(entry.needs)
        self.core = entry.core
        self._load = load

    @cached_property
    def _tool(self) -> Tool:
        return self._load()

    def facts(self, arguments: Mapping[str, Any], workspace: str) -> CallFacts:
        """As the tool itself."""
        return self._tool.facts(arguments, workspace)

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> Answer:
        """As the tool itself."""
        return await self._tool.run(arguments, context)


class Core:
    """A tool that stands in the prompt, whatever it says of itself."""

    core = True

    def __init__(self, tool: Tool) -> None:
        self.schema, self.needs, self.facts, self.run = tool.schema, tool.needs, tool.facts, tool.run


def lazy(toolset: str, load: Callable[[], Sequence[Tool]]) -> tuple[Tool, ...]:
    """The tools of a toolset, imported at the first call; at once if the manifest lacks the toolset."""

    @cache
    def loaded() -> Mapping[str, Tool]:
        return {tool.schema.name: tool for tool in load()}

    def one(name: str) -> Tool:
        return loaded()[name]

    known = manifest().get(toolset)
    return tuple(load()) if known is None else tuple(LazyTool(entry, partial(one, entry.name)) for entry in known)


TOOLSETS: Mapping[str, str] = {
    "files": "hermes_agent.tools.files.tools:file_tools",
    "shell": "hermes_agent.tools.shell:shell_tools",
    "code": "hermes_agent.tools.code:code_tools",
    "web": "hermes_agent.tools.web.tools:web_tools",
    "todo": "hermes_agent.tools.todo:todo_tools",
    "skills": "hermes_agent.app.skills:skill_tools",
    "memory": "hermes_agent.memory.tools:memory_tools",
    "recall": "hermes_agent.memory.tools:recall_tools",
    "goals": "hermes_agent.app.work.goals:goal_tools",
    "clarify": "hermes_agent.tools.clarify:clarify_tools",
    "cron": "hermes_agent.app.work.cron:cron_tools",
    "sending": "hermes_agent.app.chats.file_delivery:send_tools",
    "mcp": "hermes_agent.app.mcp.offered:mcp_toolset",
    "delegation": "hermes_agent.app.work.delegation:delegation_tools",
    "board": "hermes_agent.app.work.board:board_tools",
}
"""Each by what makes it of its needs, in the order in which the prompt names their tools."""
IN_CHATS = frozenset({"sending"})
"""Those that only chats have: elsewhere nobody would get what they send."""
NOT_FOR_CHILDREN = frozenset({"board"})
"""Those that a delegated session lacks: its parent has them."""
CORE_ON: Mapping[str, str] = {"board": Work.CARD}
"""Toolsets whose tools are core on one surface alone; elsewhere the model finds them."""


class BuiltIn(FixedTools):
    """Tool source of the built-in toolsets that the settings allow on a surface, with lazy loading.

    The process's `toolsets` narrow them (None: all); an unknown name raises `ConfigError`.
    """

    def __init__(self, needs: Needs, table: Mapping[str, str] = TOOLSETS) -> None:
        super().__init__()
        self._needs, self.table = needs, table
        self._settings, self._narrowed = needs.get(Settings).tools, needs.get(Options).toolsets
        self._in_chats = needs.get(People).channels
        self._lazy: dict[str, tuple[Tool, ...]] = {}
        for name in self._narrowed or ():
            check_toolset(name, self.table)

    def toolsets(self, surface: str, narrowed: Sequence[str] = ()) -> tuple[str, ...]:
        """The toolsets of a surface, restricted to `narrowed` if given. Raises `ConfigError` for an unknown name."""
        for name in narrowed:
            check_toolset(name, self.table)
        return tuple(
            name
            for name in toolsets_of(surface, self.table, self._settings)
            if (self._narrowed is None or name in self._narrowed)
            and (not narrowed or name in narrowed)
            and (name not in IN_CHATS or surface in self._in_chats)
            and (name not in NOT_FOR_CHILDREN or surface != Work.CHILD)
        )

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]:
        """The tools of the surface's toolsets."""
        found = [(name, tool) for name in self.toolsets(surface, narrowed) for tool in self.tools_of(name)]
        return [Core(tool) if CORE_ON.get(name) == surface else tool for name, tool in found]

    def tools_of(self, toolset: str) -> tuple[Tool, ...]:
        """The tools of one toolset."""
        if toolset not in self._lazy:
            self._lazy[toolset] = lazy(toolset, partial(self.load, toolset))
        return self._lazy[toolset]

    def load(self, toolset: str) -> tuple[Tool, ...]:
        """Import and build the tools of a toolset."""
        made = FixedTools([self._needs.made(self.table[toolset])])
        assert not made.quarantined, made.quarantined
        return tuple(made.tools("", ()))
