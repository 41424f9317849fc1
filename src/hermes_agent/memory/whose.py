"""Whose notes a conversation reads and writes: the owner's, another person's, or nobody's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Conversation

PEOPLE = "people"


class Target(StrEnum):
    """`memory` is what the agent noted, `user` what it noted about the person."""

    MEMORY = "memory"
    USER = "user"

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One principal (`platform:user`) and where their notes are. In a `shared` conversation others read along."""

    key: str
    owner: bool = False
    shared: bool = False

    def item(self, target: Target) -> str:
        """The file below the folder of notes; a name that tells nobody who it is."""
        if self.owner:
            return target.file
        return f"{PEOPLE}/{self.space}/{target.file}"

    @property
    def space(self) -> str:
        """A name that tells nobody who it is; empty for the owner."""
        return "" if self.owner else hashlib.sha256(self.key.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def is_shared(conversation: str) -> bool:
    """Whether others read along, by the conversation's key."""
    return Conversation.parse(conversation).is_shared


def person_of(principal: str, is_owner: Callable[[str], bool], conversation: str = "") -> Person:
    """The person of that key, in that conversation."""
    return Person(key=principal, owner=is_owner(principal), shared=is_shared(conversation))


def space_in(memory: str, person: Person) -> str:
    """What the memory beside the notes calls a person, of which `memory` is the name for the owner."""
    return "-".join(filter(None, (memory, person.space)))


def target_of(item: str) -> Target:
    """Which of the two a file is."""
    return Target.USER if item.endswith(Target.USER.file) else Target.MEMORY
