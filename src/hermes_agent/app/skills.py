"""The skills of one process: the library, what sessions are told of it, and its tools."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from hermes_agent.core.clock import Clock
from hermes_agent.host.paths import Home
from hermes_agent.skills.library import Library
from hermes_agent.skills.occasion import Occasion
from hermes_agent.skills.offer import Candidates, index_text
from hermes_agent.skills.places import Places
from hermes_agent.skills.reading import SkillReading
from hermes_agent.skills.settings import SkillSettings
from hermes_agent.skills.state import StateFile
from hermes_agent.skills.usage import Usage
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.skills_index import SkillsIndex

SKILLS = "skills"
"""The toolset without which a surface knows nothing of skills."""
REMEMBERED = 256


class Skills:
    """Made without touching the disk. `tools` has the tools of the toolset."""

    def __init__(self, home: Home, settings: SkillSettings, clock: Clock) -> None:
        self.library = Library(
            index=SkillsIndex(home.cache / "skills.db"),
            places=Places(home=home.skills, external=settings.external_dirs, project=settings.project),
            state=StateFile(home.skills),
            clock=clock,
            disabled=settings.disabled,
        )
        self.usage = Usage(home.skills, clock)
        self._occasions: OrderedDict[str, Occasion] = OrderedDict()
        self.tools = SkillReading(self.library, self.usage, self.occasion)

    def meet(self, record: SessionRecord, toolsets: Sequence[str], tools: Sequence[str]) -> Offer:
        """What a session is told; nothing where its surface lacks the toolset."""
        platform, _, rest = record.conversation.partition(":")
        occasion = Occasion(
            channel=platform, chat_kind=rest.partition(":")[0], tools=frozenset(tools), toolsets=frozenset(toolsets)
        )
        self._occasions[record.id] = occasion
        self._occasions.move_to_end(record.id)
        while len(self._occasions) > REMEMBERED:
            self._occasions.popitem(last=False)
        return Offer(self.library, record.workspace, occasion, told=SKILLS in toolsets)

    def occasion(self, session: str) -> Occasion:
        """Where a session is; of one that was not met only the system is known."""
        return self._occasions.get(session, Occasion())

    async def close(self) -> None:
        """Close the library."""
        await self.library.close()


class Offer:
    """What one session is told of skills."""

    def __init__(self, library: Library, workspace: str, occasion: Occasion, *, told: bool) -> None:
        self._library, self._workspace, self._occasion, self._told = library, workspace, occasion, told

    async def index(self) -> str:
        """The section of its prefix."""
        return await index_text(self._library, self._workspace, self._occasion) if self._told else ""

    @property
    def tail(self) -> tuple[Candidates, ...]:
        """What stands beside each message."""
        return (Candidates(self._library, self._workspace, self._occasion),) if self._told else ()
