"""What a review may lay hands on: the tools of the library and the notes, in its own name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Location
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.core.tool import Answer, Question, Tool
from hermes_agent.learning.drafts import Draft
from hermes_agent.store.versions import Backing


class Writers(Protocol):
    """For one conversation.

    - `tools` gives the tools of skills and memory by name; what they write is the background's, with this backing;
    - `content` is the file that a draft would change, None where there is none;
    - `skill_names` are those of the home;
    - `is_owner` says whether the conversation is the owner's.
    """

    @property
    def is_owner(self) -> bool: ...

    def tools(self, backing: Backing) -> Mapping[str, Tool]: ...

    async def content(self, draft: Draft) -> bytes | None: ...

    async def skill_names(self) -> Collection[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWriters:
    """The `CallContext` of a call that nobody watches: it asks nobody and calls nothing else. `speaker` is the one
    person of the conversation, empty where others read along."""

    key: str
    session: str
    workspace: str
    speaker: str
    turn: int = 0
    attach: bool = False
    begun_at: Location = NOWHERE

    @property
    def speakers(self) -> frozenset[str]:
        """The one person, or nobody in particular."""
        return frozenset(filter(None, (self.speaker,)))

    def seconds_left(self) -> float | None:
        """These tools take no time to speak of."""
        return None

    def progress(self, text: str) -> None:
        """Nobody watches."""

    async def use(self, name: str, arguments: Mapping[str, Any]) -> Answer:  # noqa: ARG002  the Protocol's shape
        """Raises `ToolError`."""
        raise ToolError(f"A review calls no other tool (`{name}`).")

    async def ask(self, question: Question) -> str:
        """Raises `Refused`: nobody is asked beside a conversation."""
        raise Refused(f"No one is here to answer: {question.text}")
