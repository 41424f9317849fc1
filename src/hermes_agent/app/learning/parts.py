"""What does the learning of one home: its reviews, their tools, the checks of lessons, the curator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.learning.home import LearningHome
from hermes_agent.app.skills import Skills
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.ids import Ids
from hermes_agent.core.inbound import Standing
from hermes_agent.core.model import Model
from hermes_agent.core.spending import Limit, Rules, Scope, nanos
from hermes_agent.core.tool import Tool
from hermes_agent.host.files import read_small
from hermes_agent.host.late import late
from hermes_agent.learning.drafts import Draft
from hermes_agent.learning.jobs import Does, Jobs, Tells
from hermes_agent.learning.learned import Learned
from hermes_agent.learning.probing import Probing
from hermes_agent.learning.proposing import Proposing
from hermes_agent.learning.retracting import Retracting, Undoing
from hermes_agent.learning.reviewing import Reviewer
from hermes_agent.learning.settings import CuratorSettings, LearningSettings
from hermes_agent.learning.typed import TOOL, objection
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.tools import MemoryTools
from hermes_agent.memory.whose import person_of, target_of
from hermes_agent.replay.ledger import StoredLedger
from hermes_agent.sandbox.place import Command, Place, PlaceFailed
from hermes_agent.skills.changes import By
from hermes_agent.skills.format import inside
from hermes_agent.skills.places import MOST
from hermes_agent.skills.skill import FILE, Layer
from hermes_agent.store.learning.jobs import JobKind
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Author, Backing, Kind
from hermes_agent.tools.schema import collect

if TYPE_CHECKING:
    from hermes_agent.app.learning.curating import Curating

CURATING = "hermes_agent.app.learning.curating:Curating"
LARGEST = 1 << 22


class Parts:
    """The workers of one home's learning, each made when it is needed."""

    def __init__(self, home: LearningHome, tells: Tells) -> None:
        self._home, self._tells = home, tells

    @cached_property
    def jobs(self) -> Jobs:
        """Who does the work of this process."""
        home, settings = self._home, self._home.settings
        reviewer = Reviewer(
            store=home.store,
            clock=home.clock,
            ids=home.ids,
            settings=settings.learning,
            model_for=lambda record: self.model(Purpose.REVIEW, record, settings.learning),
            hands_of=self.writers,
            proposing=self.proposing,
            effort=settings.model.reasoning_effort,
        )
        retracting = Retracting(store=home.store, undoing=self.undoing, proposing=self.proposing)
        does: dict[JobKind, Does] = {
            JobKind.REVIEW: reviewer,
            JobKind.RETRACT: retracting,
            JobKind.CURATOR: lambda claim: self.curating.curator(claim),
        }
        if home.skills.place is not None:
            does[JobKind.PROBE] = Probing(
                store=home.store,
                clock=home.clock,
                settings=settings.learning,
                hands_of=self.writers,
                proposing=self.proposing,
                passes=Probes(place=home.skills.place, tools=home.tools, ids=home.ids),
            )
        return Jobs(home.store, does, self._tells)

    @cached_property
    def curating(self) -> Curating:
        """The upkeep of what was learned."""
        made: Curating = late(CURATING)(self._home, self.proposing, self.model, lambda: self.jobs.ring())
        return made

    @cached_property
    def proposing(self) -> Proposing:
        """What waits."""
        home = self._home
        return Proposing(
            store=home.store, clock=home.clock, hands_of=self.writers, days=home.settings.learning.waits_days
        )

    @cached_property
    def undoing(self) -> Undoing:
        """One undo for everything."""
        home = self._home
        return Undoing(store=home.store, writer=lambda: home.skills.writer(home.store), notes=lambda: home.notes)

    @cached_property
    def learned(self) -> Learned:
        """What was learned, for the person."""
        home = self._home
        return Learned(store=home.store, clock=home.clock, undoing=self.undoing, proposing=self.proposing)

    def writers(self, record: Session) -> HomeWriters:
        """The tools of a review of this conversation."""
        home = self._home
        return HomeWriters(
            record=record,
            skills=home.skills,
            notes=home.notes,
            is_owner_key=lambda principal: home.standing(principal) is Standing.OWNER,
        )

    async def model(self, purpose: Purpose, record: Session, most: LearningSettings | CuratorSettings) -> Model:
        """Who is asked: the model of that purpose, else the one that answers, within the limits of one job."""
        home = self._home
        money = None if most.max_money is None else nanos(most.max_money)
        own = Limit(scope=Scope.RUN, money=money, tokens=most.max_tokens)
        book = replace(home.book, rules=within(home.book.rules, own))
        return await home.auxiliary(purpose, record, StoredLedger(book, record.principal))


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


def within(rules: Rules, own: Limit) -> Rules:
    """The rules with the limit of one review in the place of that of a run, where it is the lower one."""
    run = next((limit for limit in rules.limits if limit.scope is Scope.RUN), Limit(scope=Scope.RUN))
    both = Limit(scope=Scope.RUN, money=_least(run.money, own.money), tokens=_least(run.tokens, own.tokens))
    others = tuple(limit for limit in rules.limits if limit.scope is not Scope.RUN)
    return replace(rules, limits=others if both == Limit(scope=Scope.RUN) else (*others, both))


def _least(one: int | None, other: int | None) -> int | None:
    known = [each for each in (one, other) if each is not None]
    return min(known) if known else None
