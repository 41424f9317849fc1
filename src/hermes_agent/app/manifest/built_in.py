"""The built-in toolsets: what makes each, and their tools by surface, which the manifest knows without loading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from hermes_agent.app.chats.people import People
from hermes_agent.app.manifest.manifest import lazy
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.tool_sources import FixedTools
from hermes_agent.core.tool import Tool
from hermes_agent.host.late import Needs, late
from hermes_agent.tools.surfaces import check_toolset, toolsets_of

TOOLSETS: Mapping[str, str] = {
    "files": "hermes_agent.tools.files.tools:file_tools",
    "shell": "hermes_agent.tools.shell.tools:shell_tools",
    "code": "hermes_agent.tools.code.tools:code_tools",
    "web": "hermes_agent.tools.web.tools:web_tools",
    "todo": "hermes_agent.tools.todo:todo_tools",
    "skills": "hermes_agent.app.skills:skill_tools",
    "memory": "hermes_agent.memory.tools:memory_tools",
    "recall": "hermes_agent.memory.conversation_tools:recall_tools",
    "clarify": "hermes_agent.tools.clarify:clarify_tools",
    "sending": "hermes_agent.app.chats.file_delivery:send_tools",
}
"""Each by what makes it of its needs, in the order in which the prompt names their tools."""
IN_CHATS = frozenset({"sending"})
"""Those that only chats have: elsewhere nobody would get what they send."""
COLLECT = "hermes_agent.tools.schema:collect"


class BuiltIn(FixedTools):
    """The source of the built-in tools; one is loaded with its first call.

    The process's `toolsets` narrow them (None: all); an unknown name raises `ConfigError`."""

    def __init__(self, needs: Needs, table: Mapping[str, str] = TOOLSETS) -> None:
        super().__init__()
        self._needs, self.table = needs, table
        self._settings, self._narrowed = needs.get(Settings).tools, needs.get(Options).toolsets
        self._in_chats = needs.get(People).channels
        self._lazy: dict[str, tuple[Tool, ...]] = {}
        for name in self._narrowed or ():
            check_toolset(name, self.table)

    def toolsets(self, surface: str, narrowed: Sequence[str] = ()) -> tuple[str, ...]:
        """The toolsets of a surface, of those that it is `narrowed` to. Raises `ConfigError` where settings name one
        that does not exist."""
        for name in narrowed:
            check_toolset(name, self.table)
        return tuple(
            name
            for name in toolsets_of(surface, self.table, self._settings)
            if (self._narrowed is None or name in self._narrowed)
            and (not narrowed or name in narrowed)
            and (name not in IN_CHATS or surface in self._in_chats)
        )

    def tools(self, surface: str, narrowed: Sequence[str]) -> Sequence[Tool]:
        """Those of the surface's toolsets."""
        return [tool for name in self.toolsets(surface, narrowed) for tool in self.tools_of(name)]

    def tools_of(self, toolset: str) -> tuple[Tool, ...]:
        """The tools of one toolset."""
        if toolset not in self._lazy:
            self._lazy[toolset] = lazy(toolset, partial(self.load, toolset))
        return self._lazy[toolset]

    def load(self, toolset: str) -> tuple[Tool, ...]:
        """The tools themselves."""
        made, aside = late(COLLECT)([self._needs.made(self.table[toolset])])
        assert not aside, aside
        tools: tuple[Tool, ...] = made
        return tools
