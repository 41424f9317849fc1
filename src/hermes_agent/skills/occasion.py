"""When a skill is offered: the system, the channel, the kind of chat, and the tools that are there."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from hermes_agent.core.dataclass import dataclass
from hermes_agent.skills.skill import Ours

SYSTEMS = {"darwin": "macos", "linux": "linux", "windows": "windows"}
CLI = "cli"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Where skills are asked for. `channel` is the platform of the conversation (`cli`, `telegram`, ...), `chat_kind`
    what it is there (`dm`, `group`, ...); `tools` and `toolsets` are those of the agent."""

    system: str = SYSTEMS.get(platform.system().lower(), "other")
    channel: str = CLI
    chat_kind: str = ""
    tools: frozenset[str] = frozenset()
    toolsets: frozenset[str] = frozenset()

    def why_not(self, ours: Ours) -> str:
        """Why a skill is not for this occasion, in words; empty where it is."""
        for wanted, here, what in (
            (ours.platforms, self.system, "system"),
            (ours.channels, self.channel, "channel"),
            (ours.chat_kinds, self.chat_kind, "kind of chat"),
        ):
            if wanted and here not in wanted:
                return f"it is for the {what} {_or(wanted)}, not {here or 'this one'}"
        for wanted, there, what in (
            (ours.requires_tools, self.tools, "tool"),
            (ours.requires_toolsets, self.toolsets, "toolset"),
        ):
            if missing := [each for each in wanted if each not in there]:
                return f"it needs the {what} {_or(missing)}, which is not here"
        for instead, there in ((ours.fallback_for_tools, self.tools), (ours.fallback_for_toolsets, self.toolsets)):
            if instead and all(each in there for each in instead):
                return f"it stands in for {_or(instead)}, which is here"
        return ""


def _or(names: Iterable[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)
