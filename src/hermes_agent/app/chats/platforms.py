"""What a model is told of the place that it speaks in: what the platform shows, and who reads there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Conversation
from hermes_agent.tools.surfaces import WEBHOOK

ALONE = "in private: one person reads"
ONE_OF_THEM = "in a group: others read too; you speak with one of them"
SEVERAL = "in a group: you speak with several people, who all read"
UNATTENDED = "Nobody answers questions in it: decide, and say what you assumed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """`title` is what it is called, `facts` are what to know of messages there, each in a few words; `who` reads there
    (empty: the people of the conversation)."""

    title: str
    facts: tuple[str, ...]
    who: str = ""


PlatformOf: TypeAlias = Callable[[str], Platform | None]
"""The platform of that name; None for one that is not known here."""

PATHS = "files are named by their path"
OWN: Mapping[str, Platform] = {
    "cli": Platform(title="terminal", who="one person, on this machine", facts=("Markdown shows", PATHS)),
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
    """The program's own place of that name."""
    return OWN.get(name)


def place_of(conversation: str, platform_of: PlatformOf) -> str:
    """A conversation, by its key, in lines for the prompt. No name and no id stands in them."""
    where = Conversation.parse(conversation)
    platform = platform_of(where.platform) or Platform(title=where.platform, facts=())
    who = ALONE if where.is_private else SEVERAL if where.is_shared else ONE_OF_THEM
    lines = [f"- Channel: {platform.title}, {platform.who or who}"]
    return "\n".join([*lines, f"- Messages: {'; '.join(platform.facts)}"] if platform.facts else lines)


class ThisRun:
    """What holds for one run alone, whatever the session's prompt says of its place: whether it is `attended`, and how
    its reply is read where that is said (`reading`)."""

    name = "This run alone"

    def __init__(self, *, attended: bool, reading: str) -> None:
        self._words = " ".join(filter(None, ("" if attended else UNATTENDED, reading)))

    async def words(self, session: str, heard: str) -> str:  # noqa: ARG002  a source that knows its run
        """A sentence or two; empty where there is nothing to say."""
        return self._words
