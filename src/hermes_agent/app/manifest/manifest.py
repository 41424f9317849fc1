"""The built-in tools as a prompt names them, kept in `tools.json`: no tool is loaded before it is called.

`.ci/manual.py` writes the file from the tools themselves, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import msgspec

from hermes_agent.core.effects import Capability
from hermes_agent.core.model import ToolSchema
from hermes_agent.core.tool import Answer, CallContext, CallFacts, Tool

FILE = Path(__file__).with_name("tools.json")


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a tool without it."""

    name: str
    description: str
    parameters: dict[str, Any]
    needs: tuple[Capability, ...]
    core: bool


@cache
def manifest() -> Mapping[str, tuple[ManifestEntry, ...]]:
    """The manifest entries of each built-in toolset."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, tuple[ManifestEntry, ...]])


def entry_of(tool: Tool) -> ManifestEntry:
    """The manifest entry of a tool that is loaded."""
    schema = tool.schema
    return ManifestEntry(
        name=schema.name,
        description=schema.description,
        parameters=dict(schema.parameters),
        needs=tuple(sorted(tool.needs)),
        core=getattr(tool, "core", True),
    )


def written(toolsets: Mapping[str, Sequence[Tool]]) -> str:
    """What `tools.json` has to hold."""
    plain = {name: [entry_of(tool) for tool in tools] for name, tools in toolsets.items()}
    return msgspec.json.format(msgspec.json.encode(plain), indent=1).decode() + "\n"


class LazyTool:
    """A `Tool` that is loaded with its first call."""

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


def lazy(toolset: str, load: Callable[[], Sequence[Tool]]) -> tuple[Tool, ...]:
    """The tools of a toolset; `load` gives them when the first is called, or now where the manifest has none of it."""

    @cache
    def loaded() -> Mapping[str, Tool]:
        return {tool.schema.name: tool for tool in load()}

    def one(name: str) -> Tool:
        return loaded()[name]

    known = manifest().get(toolset)
    return tuple(load()) if known is None else tuple(LazyTool(entry, partial(one, entry.name)) for entry in known)
