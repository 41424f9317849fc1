"""Where a skill may be used, and when it is offered: the system, the channel, the kind of chat, the tools."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import PRIVATE, Conversation
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

    @classmethod
    def at(cls, conversation: str, tools: Iterable[str] = (), toolsets: Iterable[str] = ()) -> Occasion:
        """The occasion of a conversation, by its key."""
        where = Conversation.parse(conversation)
        return cls(
            channel=where.platform, chat_kind=where.chat_kind, tools=frozenset(tools), toolsets=frozenset(toolsets)
        )

    def elsewhere(self, ours: Ours) -> str:
        """Where a skill may be used, in words, if not here; empty where it may."""
        # `groups` and `private` are what people write.
        kinds = {self.chat_kind, f"{self.chat_kind}s", "private" if self.chat_kind in PRIVATE else ""}
        rules = (
            (ours.platforms, {self.system}, "the system"),
            (ours.channels, {self.channel}, "the channel"),
            (ours.chat_kinds, kinds, "the kind of chat"),
        )
        if all(not wanted or here & {each.lower() for each in wanted} for wanted, here, _ in rules):
            return ""
        where = "the terminal" if self.channel == CLI else f"{self.channel} ({self.chat_kind})"
        here = f"{where} on {self.system}" if ours.platforms else where
        return (
            f"only for {' and '.join(f'{what} {_or(wanted)}' for wanted, _, what in rules if wanted)}; this is {here}"
        )

    def why_not(self, ours: Ours) -> str:
        """Why a skill is not offered on this occasion, in words; empty where it is."""
        if where := self.elsewhere(ours):
            return f"it is {where}"
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
