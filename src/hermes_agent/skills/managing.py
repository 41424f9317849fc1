"""The skill tools of the model: `skills_list` and `skill_view` read skills, `skill_manage` changes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import msgspec

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin, Quoted, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.skills.changes import Written
from hermes_agent.skills.depot import Usage
from hermes_agent.skills.format import file_text, whole
from hermes_agent.skills.library import Library, whole_line
from hermes_agent.skills.skill import FILE, Layer, Occasion, SkillHeader
from hermes_agent.store.database import Store
from hermes_agent.store.versions import Author, By

if TYPE_CHECKING:
    from hermes_agent.skills.writing import Writer

PAGE = 50


@contextmanager
def quoting(origin: Origin) -> Iterator[None]:
    """An error inside quotes a skill of that label: its words have the label, unless it is the home's own."""
    try:
        yield
    except ToolError as error:
        if origin is not Origin.SKILL:
            words = " ".join(filter(None, (str(error), error.hint)))
            error.message, error.hint = "It failed:", ""
            error.quoted = Quoted(text=words, origin=origin)
        raise


class SkillReading:
    """The skill tools that only read: `skills_list` and `skill_view`. `occasion` gives the context of a session;
    with `uses` False a view does not count as a use; `note_read` is called with the session and the name of a skill
    that is read."""

    def __init__(
        self, library: Library, usage: Usage, occasion: Callable[[str], Awaitable[Occasion]], *, uses: bool = True
    ) -> None:
        self._library, self._usage, self._occasion, self._uses = library, usage, occasion, uses
        self.note_read: Callable[[str, str], Awaitable[None]] | None = None

    @tool(effect=Effect.READS, origin=Origin.SKILL)
    async def skills_list(self, context: CallContext, query: str = "", family: str = "", after: str = "") -> Answer:
        """List skills, or those that fit a query.

        Args:
            after: the last name of the page before
        """
        here = await self._occasion(context.session)
        if query:
            headers = await self._library.candidates(query, context.workspace, here, 10)
        else:
            headers = await self._library.all(context.workspace, here, family=family, after=after, limit=PAGE)
        lines = [(whole_line(header), await self._origin(header)) for header in headers]
        if not query and len(headers) == PAGE:
            lines.append((f"[more: after={headers[-1].name}]", Origin.SKILL))
        if not query and not family and not after:
            families = await self._library.families(context.workspace, here)
            named = ", ".join(f"{name} ({many})" for name, many in families[:PAGE])
            lines.append((f"Families: {named}", Origin.SKILL))
        first, *rest = lines if headers else [("No skill fits.", Origin.SKILL)]
        shown = [first, *((f"\n{text}", origin) for text, origin in rest)]
        return Answer(parts=tuple(Text(text=text, origin=origin) for text, origin in shown))

    async def _origin(self, header: SkillHeader) -> Origin:
        """The label of a skill's text; a project's is a file of the workspace, whatever that is."""
        return Origin.WORKSPACE if header.layer is Layer.PROJECT else await self._library.origin_of(header)

    @tool(effect=Effect.READS, origin=Origin.SKILL)
    async def skill_view(self, context: CallContext, name: str, file: str = "") -> Answer:
        """Load a skill, or one of its files."""
        here = await self._occasion(context.session)
        header = await self._library.find(name, context.workspace, here)
        with quoting(await self._origin(header)):
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
        return Answer(parts=(Text(text=text, origin=await self._origin(header)),))


BY_THE_AGENT = By(author=Author.FOREGROUND)
Action = Literal["create", "edit", "patch", "delete", "write_file", "remove_file"]


class SkillTools(SkillReading):
    """Skill tools for reading and writing: `skills_list`, `skill_view` and `skill_manage`. `open_writer` returns the
    skill writer and the store; `by` gives author and evidence; `reserved` returns slash command names, which take
    precedence over skills."""

    def __init__(
        self,
        library: Library,
        usage: Usage,
        occasion: Callable[[str], Awaitable[Occasion]],
        open_writer: Callable[[], tuple[Writer, Store]],
        *,
        by: By = BY_THE_AGENT,
        reserved: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        super().__init__(library, usage, occasion, uses=by.author is Author.FOREGROUND)
        self._open, self._of, self._reserved = open_writer, by, reserved

    @tool(effect=Effect.KEYED, needs=(Capability.SKILLS,), origin=Origin.SKILL)
    async def skill_manage(  # noqa: PLR0913  one tool of six actions costs a prompt less than six tools
        self,
        context: CallContext,
        action: Action,
        name: str,
        content: str = "",
        old_string: str = "",
        new_string: str = "",
        replace_all: bool = False,
        file: str = "",
        category: str = "",
    ) -> str:
        """Keep a procedure for later: after a task that took many steps or a correction, or when a loaded skill was
        wrong (patch it at once). Names are of a class of tasks, not of one. delete puts aside.

        Args:
            content: SKILL.md whole, with frontmatter (name, description: what it does and when to use it), or the file
            file: in references/, templates/, scripts/ or assets/
            category: for create: its family
        """
        writer, store = self._open()
        by = await self._by(store, context)
        if done := await writer.versions.done_by(by.key):
            return _said(action, Written(name=name, file=file or FILE, version=done.id), "")
        origin = Origin.SKILL
        if action != "create":  # Answers quote what is there.
            here = None if self._of.backing.approved else await self._occasion(context.session)
            header = await self._library.find(name, context.workspace if action == "edit" else "", here)
            origin = await self._origin(header)
        with quoting(origin):
            match action:
                case "create":
                    written = await writer.create(name, content, by, category)
                case "edit":
                    written = await writer.edit(name, content, by, context.workspace)
                case "patch":
                    written = await writer.patch(
                        name, old_string, new_string, by, file=file or FILE, everywhere=replace_all
                    )
                case "delete":
                    written = await writer.archive(name, by)
                case "write_file" | "remove_file" if not file:
                    raise ToolError(f"{action} needs `file`.", hint="Like references/details.md.")
                case "write_file":
                    written = await writer.write_file(name, file, content.encode(), by)
                case "remove_file":
                    written = await writer.remove_file(name, file, by)
        await self._usage.count(name, "patches")
        shadowed = f"`/{name}` is a command, so the skill has no slash of its own." if name in self._reserved() else ""
        return _said(action, written, shadowed)

    async def _by(self, store: Store, context: CallContext) -> By:
        backing = self._of.backing
        return replace(
            self._of,
            principal=context.speaker,
            session=context.session,
            first=backing.first or await store.history.said_at(context.session),
            last=backing.last or await store.history.last_number(context.session),
            key=context.key,
        )


def _said(action: str, written: Written, note: str) -> str:
    answer = {
        "ok": True,
        "action": action,
        "name": written.name,
        "file": written.file,
        "version": written.version,
        "undo": f"hermes skills history {written.name}",
        "note": " ".join(filter(None, (written.note, note))) or None,
    }
    return msgspec.json.encode({key: value for key, value in answer.items() if value is not None}).decode()
