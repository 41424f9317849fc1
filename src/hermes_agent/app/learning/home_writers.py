"""What a review may lay hands on in this home: its skills and its notes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from hermes_agent.app.skills import Skills
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.tool import Tool
from hermes_agent.host.files import read_small
from hermes_agent.learning.drafts import Draft
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.tools import MemoryTools
from hermes_agent.memory.whose import person_of, target_of
from hermes_agent.skills.changes import By
from hermes_agent.skills.places import MOST
from hermes_agent.skills.skill import FILE, Layer
from hermes_agent.skills.view import inside
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Author, Backing, Kind
from hermes_agent.tools.schema import collect

LARGEST = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeWriters:
    """The `Hands` of one conversation. `is_owner_key` knows the principals whose home this is."""

    record: Session
    skills: Skills
    notes: Notes
    is_owner_key: Callable[[str], bool]

    @property
    def is_owner(self) -> bool:
        """Whether the conversation is the owner's."""
        return self.is_owner_key(self.record.principal)

    def tools(self, backing: Backing) -> Mapping[str, Tool]:
        """The tools of skills and memory, by name."""
        skills = self.skills.tools_by(By(author=Author.BACKGROUND, backing=backing))
        memory = MemoryTools(
            open_notes=lambda: self.notes, is_owner=self.is_owner_key, author=Author.BACKGROUND, backing=backing
        )
        return {tool.schema.name: tool for tool in collect([skills, memory])[0]}

    async def skill_names(self) -> Collection[str]:
        """The names of the home's."""
        return {header.name for header in await self.skills.library.all(limit=MOST) if header.layer is Layer.USER}

    async def content(self, draft: Draft) -> bytes | None:
        """The file as it is now."""
        if draft.kind is Kind.MEMORY:
            person = person_of(self.record.principal, self.is_owner_key, self.record.conversation)
            return await asyncio.to_thread(read_small, self.notes.path(person.item(target_of(draft.item))), LARGEST)
        headers = await self.skills.library.same_name(draft.item, self.record.workspace) if draft.item else ()
        if not headers:
            return None
        file = str(draft.call.arguments.get("file") or FILE)
        path = headers[0].path / FILE if file == FILE else inside(headers[0].path, file)
        return await asyncio.to_thread(read_small, path, LARGEST)
