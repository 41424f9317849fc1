"""Settings of memory (section `memory`); a person's notes files and name in the external memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum
from typing import Literal

from hermes_agent.core.chat import Conversation, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Origin
from hermes_agent.host.schema import setting

Provider = Literal[
    "none",
    "holographic",
    "honcho",
    "mem0",
    "hindsight",
    "supermemory",
    "retaindb",
    "byterover",
    "openviking",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Settings of notes and external memory (section `memory` of the configuration)."""

    memory_enabled: bool = setting(True, "Put the agent's notes (MEMORY.md) into the prompt of a new session.")
    user_profile_enabled: bool = setting(True, "Put the notes about the person (USER.md) into the prompt.")
    memory_char_limit: int = setting(2200, "Most characters of MEMORY.md.", least=100, most=100_000)
    user_char_limit: int = setting(1375, "Most characters of USER.md.", least=100, most=100_000)
    nudge_interval: int = setting(
        10, "Messages of yours in a session after which it is reviewed for notes; 0: never.", least=0
    )
    provider: Provider = setting("none", "The other memory, besides the notes.")
    provider_url: str = setting("", "Its address; empty: the service's own.", form="address")
    provider_space: str = setting("hermes", "Your name there: user, bank, container or workspace.")


PEOPLE = "people"


class Target(StrEnum):
    """One of the two notes files: `memory` holds what the agent noted, `user` what it noted about the person."""

    MEMORY = "memory"
    USER = "user"

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A principal (`platform:user`) and the folder of their notes. In a `shared` conversation other people read
    along."""

    key: str
    owner: bool = False
    shared: bool = False

    def item(self, target: Target) -> str:
        """The file below the notes folder; an anonymous name."""
        if self.owner:
            return target.file
        return f"{PEOPLE}/{self.space}/{target.file}"

    @property
    def space(self) -> str:
        """An anonymous name; empty for the owner."""
        return "" if self.owner else hashlib.sha256(self.key.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def is_shared(conversation: str) -> bool:
    """Whether other people can read the conversation of that key."""
    return Conversation.parse(conversation).is_shared


def label_of(standing: Standing, conversation: str) -> Origin:
    """The label of the words of a conversation's person: a member's are their own only where nobody else speaks."""
    return Origin.MEMBER if standing is Standing.MEMBER and not is_shared(conversation) else Origin.OWNER


def person_of(principal: str, is_owner: Callable[[str], bool], conversation: str = "") -> Person:
    """The principal of that key as a person in that conversation."""
    return Person(key=principal, owner=is_owner(principal), shared=is_shared(conversation))


def space_in(memory: str, person: Person) -> str:
    """A person's name in the external memory; `memory` is the owner's."""
    return "-".join(filter(None, (memory, person.space)))


def target_of(item: str) -> Target:
    """The kind of a notes file."""
    return Target.USER if item.endswith(Target.USER.file) else Target.MEMORY
