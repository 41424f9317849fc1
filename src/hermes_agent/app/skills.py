"""Skills in a process: the library, the writer, the skill tools, and what each session is offered of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hermes_agent.core.chat import Conversation, Principal
from hermes_agent.core.clock import Clock, RandomIds
from hermes_agent.core.errors import ConfigError
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import Home
from hermes_agent.sandbox.place import Command, Place, PlaceFailed
from hermes_agent.skills.depot import StateFile, Usage
from hermes_agent.skills.library import WHOLE_UP_TO, Candidates, Library, index_text
from hermes_agent.skills.skill import Layer, Occasion, Places, SkillSettings
from hermes_agent.store.database import Store
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.skills_index import SkillsIndex
from hermes_agent.store.versions import By, Kind

if TYPE_CHECKING:
    from hermes_agent.skills.invoke import Invoked
    from hermes_agent.skills.managing import SkillTools
    from hermes_agent.skills.writing import Writer

PARTS = {
    "invoke": "hermes_agent.skills.invoke",
    "managing": "hermes_agent.skills.managing",
    "typed": "hermes_agent.learning.typed",
    "versions": "hermes_agent.skills.versions",
    "writing": "hermes_agent.skills.writing",
}
"""What a first answer needs none of."""


def _part(name: str) -> Any:  # noqa: ANN401 - a module of the table
    return late(PARTS[name])


LONGEST_OUTPUT = 16_000
"""Bytes that are read of what a skill's command printed."""
SKILLS = "skills"
"""The toolset without which a surface knows nothing of skills."""
SHOWN = 3
"""Skills that cannot be used and are named each."""
REMEMBERED = 256


class Reserved(frozenset[str]):
    """Names that no skill may have: the names of slash commands."""


def no_store() -> Store:
    """The default store factory: raises `ConfigError`, since skills cannot be changed without a database."""
    raise ConfigError("Skills are not changed without a database.")


class Skills:
    """The skills of a home as one process uses them: library, writer, tools and invocation by name. Construction does
    no disk access."""

    def __init__(
        self,
        home: Home,
        settings: SkillSettings,
        clock: Clock,
        open_store: Callable[[], Store] = no_store,
        place: Place | None = None,
        reserved: Reserved | None = None,
    ) -> None:
        self.home, self._settings, self._clock, self._place = home.skills, settings, clock, place
        self._ids = RandomIds()
        self.library = Library(
            index=SkillsIndex(home.cache / "skills.db"),
            places=Places(home=home.skills, external=settings.external_dirs, project=settings.project),
            state=StateFile(home.skills),
            clock=clock,
            disabled=settings.disabled,
            vouches=self._vouches,
        )
        self.usage = Usage(home.skills, clock)
        self._occasions: OrderedDict[str, Occasion] = OrderedDict()
        self._open_store, self._reserved = open_store, reserved or Reserved()

    async def _vouches(self, item: str, content: bytes) -> bool:
        return await self._open_store().versions.vouches(Kind.SKILL, item, content)

    @property
    def place(self) -> Place | None:
        """Where commands inside skills run; None: they do not run."""
        return self._place

    @cached_property
    def tools(self) -> SkillTools:
        """The toolset `skills`, as the agent uses it."""
        return self.tools_by(_part("managing").BY_THE_AGENT)

    def tools_by(self, by: By) -> SkillTools:
        """The skill tools with changes recorded under this author."""
        made: SkillTools = _part("managing").SkillTools(
            self.library,
            self.usage,
            self._occasion_of,
            lambda: (self.writer(self._open_store()), self._open_store()),
            by=by,
            reserved=lambda: self._reserved,
        )
        made.note_read = lambda session, name: self._open_store().exposures.note_read(session, name)
        return made

    def meet(self, record: SessionRecord, toolsets: Sequence[str], tools: Sequence[str]) -> Offer:
        """The skills offered to a session; none if its surface lacks the toolset."""
        occasion = Occasion.at(record.conversation, tools, toolsets)
        self._occasions[record.id] = occasion
        self._occasions.move_to_end(record.id)
        while len(self._occasions) > REMEMBERED:
            self._occasions.popitem(last=False)
        return Offer(self.library, record.workspace, occasion, told=SKILLS in toolsets)

    def occasion(self, session: str, conversation: str) -> Occasion:
        """The platform, tools and toolsets by which skills are matched to a session; without tools if it was not
        met."""
        return self._occasions.get(session) or Occasion.at(conversation)

    async def _occasion_of(self, session: str) -> Occasion:
        if session in self._occasions:
            return self._occasions[session]
        record = await self._open_store().sessions.get(session)
        return Occasion.at(record.conversation if record else "")

    def writer(self, store: Store) -> Writer:
        """The skill writer, with its version history in that store."""
        made: Writer = _part("writing").Writer(
            library=self.library,
            versions=_part("versions").SkillVersions(store, self._clock, self.home),
            ids=self._ids,
            guarded=self._settings.guard_agent_created,
            is_asked_for=partial(_part("typed").is_asked_for, store),
        )
        return made

    async def catch_up(self) -> None:
        """Apply changes that other homes of the household made to shared skills."""
        writer = self.writer(self._open_store())
        if names := await writer.versions.behind():
            await writer.mend(names)

    async def invoked(
        self, line: str, workspace: str, session: str, conversation: str, who: Principal
    ) -> tuple[Text, ...] | None:
        """Expand a line such as `/skill words` into message parts of `who`, the skill text first; None if no skill
        has that name. Raises `ToolError`."""
        ran: list[str] = []
        run, here = partial(self._run, workspace, ran), self.occasion(session, conversation)
        found: Invoked | None = await _part("invoke").invoke(
            self.library, line, workspace=workspace, session=session, run=run, occasion=here
        )
        if found is None:
            return None
        for name in found.names:
            await self.usage.count(name, "uses")
        name = f"[{who.name}] " if Conversation.parse(conversation).is_shared else ""
        words = (Text(text=f"\n\n{name}{found.words}", origin=Origin(who.standing)),) if found.words else ()
        return (Text(text=found.text, origin=Origin.TOOL if ran else found.origin), *words)

    async def preloaded(self, names: str, workspace: str, session: str, conversation: str) -> Text:
        """Text of the skills and bundles with these comma-separated names, as the first part of a message. Raises
        `ToolError`."""
        chosen = tuple(name.strip() for name in names.split(",") if name.strip())
        ran: list[str] = []
        run, here = partial(self._run, workspace, ran), self.occasion(session, conversation)
        found: Invoked = await _part("invoke").preloaded(
            self.library, chosen, workspace=workspace, session=session, run=run, occasion=here
        )
        for name in found.names:
            await self.usage.count(name, "uses")
        return Text(text=f"{found.text}\n\n", origin=Origin.TOOL if ran else found.origin)

    async def _run(self, workspace: str, ran: list[str], command: str) -> str:
        """Run a trusted skill's inline command. Returns its output, or why it did not run. What it says is not the
        skill's: it is noted in `ran`."""
        ran.append(command)
        if self._place is None:
            return f"[not run: `{command}`]"
        try:
            wanted = Command(text=command, folder=workspace, limit=self._settings.inline_shell_timeout + 1)
            running = await self._place.start(f"skills/{self._ids.short()}", wanted)
        except PlaceFailed as error:
            return f"[not run: `{command}`; {error}]"
        ended = None
        try:
            async with asyncio.timeout(self._settings.inline_shell_timeout):
                ended = await running.wait()
        except TimeoutError:
            return f"[ended: `{command}` took more than {self._settings.inline_shell_timeout} s]"
        finally:
            if ended is None:
                await running.kill()
        said = (await running.read(0, LONGEST_OUTPUT)).decode("utf-8", "replace").strip()
        return said if ended.code == 0 else f"{said}\n[`{command}` ended with {ended.code}]"

    async def close(self) -> None:
        """Close the library."""
        await self.library.close()


class Offer:
    """What a session is offered of the skills: index for its prompt, warnings, and suggestions at each message."""

    def __init__(self, library: Library, workspace: str, occasion: Occasion, *, told: bool) -> None:
        self._library, self._workspace, self._occasion, self._told = library, workspace, occasion, told

    async def index(self) -> tuple[str, tuple[str, ...]]:
        """The prompt section with the skill index, and the names in it."""
        return await index_text(self._library, self._workspace, self._occasion) if self._told else ("", ())

    async def broken(self) -> tuple[str, ...]:
        """Warnings about skills that cannot be used."""
        found = await self._library.broken(self._workspace) if self._told else ()
        told = [f"The skill in {folder} cannot be used: {problem}" for folder, problem in found[:SHOWN]]
        more = [f"{len(found) - SHOWN} more skills cannot be used: `hermes skills list`."] if len(found) > SHOWN else ()
        headers = await self._library.all(self._workspace, self._occasion, limit=WHOLE_UP_TO) if self._told else ()
        own = [header for header in headers if header.layer is Layer.USER]
        theirs = [
            f"The skill {each.name} was changed outside: `hermes learn adopt {each.name}` makes it yours."
            for each in own
            if await self._library.origin_of(each, whole=False) is Origin.TOOL
        ]
        return (*told, *more, *theirs[:SHOWN])

    @property
    def tail(self) -> tuple[Candidates, ...]:
        """Prompt tails that suggest matching skills at each message."""
        return (Candidates(self._library, self._workspace, self._occasion),) if self._told else ()


def skill_tools(needs: Needs) -> SkillTools:
    """Factory of the toolset `skills`."""
    return needs.get(Skills).tools
