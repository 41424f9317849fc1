"""What a review may lay hands on in this home: its skills and its notes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from hermes_agent.app.skills import Skills
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.ids import Ids
from hermes_agent.core.tool import Tool
from hermes_agent.host.files import read_small
from hermes_agent.learning.drafts import Draft
from hermes_agent.learning.typed import TOOL, objection
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.tools import MemoryTools
from hermes_agent.memory.whose import person_of, target_of
from hermes_agent.sandbox.place import Command, Place, PlaceFailed
from hermes_agent.skills.changes import By
from hermes_agent.skills.format import inside
from hermes_agent.skills.places import MOST
from hermes_agent.skills.skill import FILE, Layer
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


log = logging.getLogger(__name__)

SECONDS = 10.0
"""What a check may take; one that takes longer does not pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """See `Checks`. `place` is a jailed one, `tools` are the names of the tools that there are."""

    place: Place
    tools: Callable[[], Collection[str]]
    ids: Ids
    seconds: float = SECONDS

    async def __call__(self, check: str, workspace: str) -> bool:
        """Whether it passes now. What cannot be run does not pass, nor what does more than look: not every line of an
        agent went through the gate."""
        if named := TOOL.fullmatch(check):
            return named[1] in self.tools()
        if not workspace or not await asyncio.to_thread(Path(workspace).is_dir):
            return False
        if against := await asyncio.to_thread(objection, check):
            log.info("a check is not run: %s", against)
            return False
        try:
            return await self._run(Command(text=check, folder=workspace, limit=self.seconds + 1))
        except PlaceFailed as error:
            log.info("a check was not run: %s", error)
            return False

    async def _run(self, command: Command) -> bool:
        running = await self.place.start(f"probes/{self.ids.short()}", command)
        ended = None
        try:
            async with asyncio.timeout(self.seconds):
                ended = await running.wait()
        except TimeoutError:
            return False
        finally:
            if ended is None:
                await running.kill()
        return ended.code == 0
