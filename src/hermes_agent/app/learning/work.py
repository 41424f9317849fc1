"""Learning jobs of a home: what runs reviews, curator passes, probes and undo, and the gate they write through."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.agent.agent import Proposed
from hermes_agent.app.auxiliary.background_models import Auxiliary
from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.folder_trust import TrustedFolders
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.core.chat import Conversation, Standings
from hermes_agent.core.clock import Clock, Ids, RandomIds
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.events import Notice
from hermes_agent.core.messages import Model, ToolCall
from hermes_agent.core.quick_replies import LESSON
from hermes_agent.core.spending import Limit, Scope, nanos
from hermes_agent.core.tool import Answer, Tool
from hermes_agent.host.late import Needs, late
from hermes_agent.host.paths import read_small
from hermes_agent.learning.drafts import Draft, Evidence, Waits, draft_of, evidence_of
from hermes_agent.learning.jobs import Does, Jobs
from hermes_agent.learning.learned import Learned, Retracting, Undoing
from hermes_agent.learning.probing import Probing
from hermes_agent.learning.proposing import DICTATED, MEANT, LessonGate, Proposing, question_of, sources_of
from hermes_agent.learning.reviewing import Reviewer
from hermes_agent.learning.typed import TOOL, objection
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.settings import label_of, person_of, target_of
from hermes_agent.memory.tools import MemoryTools
from hermes_agent.replay.seam import Book, StoredLedger
from hermes_agent.runs.front import Hermes
from hermes_agent.sandbox.place import Command, Place, PlaceFailed
from hermes_agent.skills.format import inside
from hermes_agent.skills.skill import FILE, MOST, Layer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Job, JobKind
from hermes_agent.store.learning.proposals import Proposal
from hermes_agent.store.sessions import Session, Session as SessionRecord
from hermes_agent.store.versions import Author, Backing, By, Kind
from hermes_agent.tools.schema import collect

if TYPE_CHECKING:
    from hermes_agent.app.learning.curating import Curating

CURATING = "hermes_agent.app.learning.curating:Curating"


class LearningWork:
    """Builds and holds what runs the learning jobs of a home. `auxiliary` gives models; `tools` returns the names of
    available tools."""

    def __init__(self, needs: Needs, auxiliary: Auxiliary, tools: Callable[[], Collection[str]]) -> None:
        self._needs, self._auxiliary, self._tools = needs, auxiliary, tools
        self._store, self._clock, self._ids = needs.get(Store), needs.get(Clock), RandomIds()
        self._settings, self._skills = needs.get(Settings), needs.get(Skills)
        self.proposing = Proposing(
            store=self._store, clock=self._clock, hands_of=self.writers, days=self._settings.learning.waits_days
        )
        self.undoing = Undoing(
            store=self._store, writer=lambda: self._skills.writer(self._store), notes=needs.later(Notes)
        )
        self.learned = Learned(store=self._store, clock=self._clock, undoing=self.undoing, proposing=self.proposing)

    @cached_property
    def curating(self) -> Curating:
        """The skill curator; created when first needed."""
        made: Curating = late(CURATING)(self._needs, self._auxiliary, self.proposing, lambda: self.jobs.ring())
        return made

    @cached_property
    def jobs(self) -> Jobs:
        """The job runner, with a handler for each kind of job."""
        reviewer = Reviewer(
            store=self._store,
            clock=self._clock,
            ids=self._ids,
            settings=self._settings.learning,
            model_for=self._model,
            hands_of=self.writers,
            proposing=self.proposing,
            own=lambda record: label_of(self._needs.get(Standings).of(record.principal), record.conversation),
            effort=self._settings.model.reasoning_effort,
        )
        retracting = Retracting(store=self._store, undoing=self.undoing, proposing=self.proposing)
        does: dict[JobKind, Does] = {
            JobKind.REVIEW: reviewer,
            JobKind.RETRACT: retracting,
            JobKind.CURATOR: lambda claim: self.curating.curator(claim),
        }
        if self._skills.place is not None:
            does[JobKind.PROBE] = self._probing(self._skills.place)
        return Jobs(self._store, does, self._report)

    def _probing(self, place: Place) -> Probing:
        return Probing(
            store=self._store,
            clock=self._clock,
            settings=self._settings.learning,
            hands_of=self.writers,
            proposing=self.proposing,
            passes=Probes(place=place, tools=self._tools, ids=self._ids),
        )

    def writers(self, record: SessionRecord) -> HomeWriters:
        """The tools of a review of this conversation."""
        is_owner = self._needs.get(Standings).is_owner
        return HomeWriters(record=record, skills=self._skills, notes=self._needs.get(Notes), is_owner_key=is_owner)

    async def _model(self, record: SessionRecord) -> Model:
        """The model for reviews: `auxiliary.review`, else the conversation's own, within the limits of one review."""
        learning, book = self._settings.learning, self._needs.get(Book)
        money = None if learning.max_money is None else nanos(learning.max_money)
        own = Limit(scope=Scope.RUN, money=money, tokens=learning.max_tokens)
        ledger = StoredLedger(book.within(own), record.principal)
        return await self._auxiliary(Purpose.REVIEW, record, ledger)

    async def _report(self, job: Job) -> bool:
        """Post a job's result into its conversation; False while the conversation is busy elsewhere."""
        record = await self._store.sessions.get(job.session)
        if record is None:
            return True
        try:
            questions = await self._questions(record, job=job.id) if job.account.waiting else []
            told = job.account.kept or job.account.overlaps or not questions
            notes = [Notice(text=job.account.note, level="news")] if told else []
            await self._needs.get(Hermes).notify(record, *notes, *questions)
        except HermesError:
            return False
        return True

    async def ask(self, record: SessionRecord, began: int) -> None:
        """Ask the owner under a reply about the folder, once, and about what the agent proposed since that event."""
        questions = await self._questions(record, began=began)
        folders = self._needs.get(TrustedFolders)
        if Conversation.parse(record.conversation).chat_kind == "dm" and self._is_asked(record):
            news = await asyncio.to_thread(folders.question, record.workspace)
            questions += [news.notice] if news is not None and news.files else []
        if questions:
            with suppress(HermesError):
                await self._needs.get(Hermes).notify(record, *questions)

    async def _questions(self, record: SessionRecord, *, began: int = 0, job: str = "") -> list[Notice]:
        """A line for each thing that the agent proposed since that event, or a review proposed, then how many more."""
        mine: dict[str, Proposal] = {}
        for each in await self._store.proposals.waiting() if self._is_asked(record) else ():
            by_run = evidence_of(each.evidence).through == "foreground" and each.last >= began
            if each.session == record.id and (each.job == job if job else by_run):
                mine.setdefault(each.whole, each)
        asked, more = list(mine.values())[:MOST_ASKED], len(mine) - MOST_ASKED
        lines = [Notice(text=question_of(each), level="news", question=f"{LESSON}{each.name}") for each in asked]
        return lines + [Notice(text=f"And {more} more: `hermes learn log`.", level="news")] * (more > 0)

    def _is_asked(self, record: SessionRecord) -> bool:
        """Whether the owner reads this conversation, and nobody else."""
        options, kind = self._needs.get(Options), Conversation.parse(record.conversation).chat_kind
        reads = options.attended and options.reviews and kind in ("dm", "folder")
        return reads and self._needs.get(Standings).is_owner(record.principal)


MOST_ASKED = 3
"""Proposals that are asked about at once."""

LARGEST = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeWriters:
    """The skill and memory tools that a review writes with, bound to the person of one conversation. `is_owner_key`
    recognises owners."""

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
        """Names of the home's own skills."""
        return {header.name for header in await self.skills.library.all(limit=MOST) if header.layer is Layer.USER}

    async def content(self, draft: Draft) -> bytes | None:
        """The current file that a draft would change; None if there is none."""
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
    """Runs the check commands of lessons in a jail. Implements `Checks`; `tools` returns the available tools' names."""

    place: Place
    tools: Callable[[], Collection[str]]
    ids: Ids
    seconds: float = SECONDS

    async def __call__(self, check: str, workspace: str) -> bool:
        """Whether the check passes now. One that cannot run, or that does more than read, does not pass."""
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


class PutAside(ToolError):
    """What the agent wanted to keep waits for the person."""

    kind = "put_aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningHook:
    """Tool-call hook that lets a write to notes or skills wait where `LessonGate` does not let it pass."""

    store: Store
    clock: Clock
    standings: Standings
    proposing: Proposing

    async def before_call(self, proposed: Proposed) -> None:
        """Raise `PutAside` for what waits, `Refused` for what would and was rejected before."""
        context = proposed.context
        call = ToolCall(id="", name=proposed.tool.schema.name, arguments=proposed.arguments)
        draft = draft_of(call, "", context.key)
        record = await self.store.sessions.get(context.session)
        if draft is None or record is None:
            return
        base = await self.proposing.hands_of(record).content(draft)
        draft = replace(draft, known=(base or b"").decode("utf-8", "replace"))
        own = label_of(self.standings.of(record.principal), record.conversation)
        entries = await self.store.history.entries(context.session)
        sources = await sources_of(self.store, entries, own)
        trust = max(sources.trust, context.trust)
        gate = LessonGate(trust=trust, share=DICTATED if trust else MEANT)
        verdict = await gate.judge(draft, sources)
        if isinstance(verdict, Waits):
            await self.proposing.check(draft)
            number = await self._put(draft, verdict, (record, len(entries)), base)
            raise PutAside(
                f"Put aside as p{number}: it is not live, and waits until the person says so.",
                hint="Do not write it again; go on, and mention it in your reply.",
            )

    async def after_call(self, proposed: Proposed, answer: Answer) -> Answer:  # noqa: ARG002 - the Protocol's shape
        """Nothing to add."""
        return answer

    async def _put(self, draft: Draft, waits: Waits, seen: tuple[Session, int], base: bytes | None) -> int:
        record, last = seen
        job = Job(
            id=draft.key,
            kind=JobKind.REVIEW,
            session=record.id,
            principal=record.principal,
            what="",
            first=1,
            last=last,
            created=self.clock.now(),
        )
        evidence = Evidence(through="foreground", sort=draft.teaches.value).text
        return await self.proposing.put(draft, waits, job, evidence, base)


def learning_hook(needs: Needs) -> LearningHook:
    """Factory of the hook of one run."""
    store, clock, standings = needs.get(Store), needs.get(Clock), needs.get(Standings)
    skills, notes, settings = needs.get(Skills), needs.get(Notes), needs.get(Settings)
    writers = partial(HomeWriters, skills=skills, notes=notes, is_owner_key=standings.is_owner)
    proposing = Proposing(
        store=store, clock=clock, hands_of=lambda record: writers(record=record), days=settings.learning.waits_days
    )
    return LearningHook(store=store, clock=clock, standings=standings, proposing=proposing)
