"""Prompt lines about a conversation's place: what messages can show, who reads them, whether anybody answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from hermes_agent.core.chat import Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Origin
from hermes_agent.tools.surfaces import WEBHOOK

ALONE = "in private: one person reads"
ONE_OF_THEM = "in a group: others read too; you speak with one of them"
SEVERAL = "in a group: you speak with several people, who all read"
UNATTENDED = "Nobody answers questions in it: decide, and say what you assumed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What the prompt says about a platform: `title`, short `facts` about its messages, and `who` reads there (empty:
    the people of the conversation)."""

    title: str
    facts: tuple[str, ...]
    who: str = ""


PlatformOf: TypeAlias = Callable[[str], Platform | None]
"""The platform of that name; None for one that is not known here."""

PATHS = "files are named by their path"
OWN: Mapping[str, Platform] = {
    "cli": Platform(title="terminal", who="one person, on this machine", facts=("Markdown shows", PATHS)),
    "acp": Platform(title="editor", who="one person, on this machine", facts=("Markdown shows", PATHS)),
    "library": Platform(title="library", who="a Python program, which gets your reply as text", facts=(PATHS,)),
    "api": Platform(
        title="API", who="a program, which shows your reply in its own way", facts=("Markdown as a rule", PATHS)
    ),
    WEBHOOK: Platform(
        title="webhook", who="nobody: a program called", facts=("your reply goes into a log or a chat as it is",)
    ),
}
"""The program's own places, by the platform of their conversations."""


def own_platform(name: str) -> Platform | None:
    """The built-in platform (terminal, library, ...) of that name."""
    return OWN.get(name)


def place_of(conversation: str, platform_of: PlatformOf) -> str:
    """Prompt lines that describe where a conversation (by key) takes place. They hold no names or ids."""
    where = Conversation.parse(conversation)
    platform = platform_of(where.platform) or Platform(title=where.platform, facts=())
    who = ALONE if where.is_private else SEVERAL if where.is_shared else ONE_OF_THEM
    lines = [f"- Channel: {platform.title}, {platform.who or who}"]
    return "\n".join([*lines, f"- Messages: {'; '.join(platform.facts)}"] if platform.facts else lines)


class ThisRun:
    """Prompt tail that holds for a single run: whether a person is there to answer questions (`attended`), and how the
    reply is read (`reading`)."""

    name = "This run alone"
    origin = Origin.RUNTIME

    def __init__(self, *, attended: bool, reading: str) -> None:
        self._words = " ".join(filter(None, ("" if attended else UNATTENDED, reading)))

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  a source that knows its run
        """The text, one or two sentences; may be empty."""
        return self._words
