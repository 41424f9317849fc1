"""skills_list and skill_view: what a model asks about skills."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hermes_agent.core.effects import Effect
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.skills.library import Library
from hermes_agent.skills.occasion import Occasion
from hermes_agent.skills.offer import shown
from hermes_agent.skills.skill import Layer
from hermes_agent.skills.usage import Usage
from hermes_agent.skills.view import file_text, whole

PAGE = 50


class SkillReading:
    """Skills as tools that change nothing. `occasion` says where a session is; who only looks skills through, beside a
    conversation, `uses` none; `note_read` is told of the session and name of what is read."""

    def __init__(
        self, library: Library, usage: Usage, occasion: Callable[[str], Awaitable[Occasion]], *, uses: bool = True
    ) -> None:
        self._library, self._usage, self._occasion, self._uses = library, usage, occasion, uses
        self.note_read: Callable[[str, str], Awaitable[None]] | None = None

    @tool(effect=Effect.READS)
    async def skills_list(self, context: CallContext, query: str = "", family: str = "", after: str = "") -> str:
        """List skills, or those that fit a query.

        Args:
            after: the last name of the page before
        """
        here = await self._occasion(context.session)
        if query:
            headers = await self._library.candidates(query, context.workspace, here, 10)
        else:
            headers = await self._library.all(context.workspace, here, family=family, after=after, limit=PAGE)
        lines = [shown(header) for header in headers]
        if not query and len(headers) == PAGE:
            lines.append(f"[more: after={headers[-1].name}]")
        if not query and not family and not after:
            families = await self._library.families(context.workspace, here)
            lines.append(f"Families: {', '.join(f'{name} ({many})' for name, many in families[:PAGE])}")
        return "\n".join(lines) if headers else "No skill fits."

    @tool(effect=Effect.READS)
    async def skill_view(self, context: CallContext, name: str, file: str = "") -> Answer:
        """Load a skill, or one of its files."""
        here = await self._occasion(context.session)
        header = await self._library.find(name, context.workspace, here)
        if file:
            text = await asyncio.to_thread(file_text, header, file)
        else:
            skill = await self._library.read(header)
            text = await asyncio.to_thread(whole, header, skill, context.session)
            if why := here.why_not(skill.ours):
                text = f"[This skill is not meant for here: {why}.]\n{text}"
        if self._uses:
            await self._usage.count(header.name, "views")
            if self.note_read is not None:
                await self.note_read(context.session, header.name)
        # A project's skills are files of whoever wrote the project.
        origin = Origin.FILE if header.layer is Layer.PROJECT else Origin.SKILL
        return Answer(parts=(Text(text=text, origin=origin),))
