"""Schedules and runs the skill curator of one home, and reports on its passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from hermes_agent.app.auxiliary.background_models import Auxiliary
from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.household import local_owner
from hermes_agent.app.process import Options
from hermes_agent.app.settings import Settings
from hermes_agent.app.skills import Skills
from hermes_agent.core.clock import Clock, RandomIds, moment
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Model
from hermes_agent.core.spending import Limit, Scope, nanos
from hermes_agent.host.late import Needs
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.applying import Places, rollback
from hermes_agent.learning.curator.curating import Curator, What
from hermes_agent.learning.curator.history import there
from hermes_agent.learning.curator.plan import Age, Candidate, CuratorJournal, JournalFile, brought_back, paused, survey
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.curator.tools import grade
from hermes_agent.learning.drafts import Gate
from hermes_agent.learning.jobs import Jobs, stretched
from hermes_agent.learning.proposing import Proposing
from hermes_agent.learning.reviewing import usual_gates
from hermes_agent.learning.settings import CuratorSettings
from hermes_agent.learning.typed import TypedGate
from hermes_agent.replay.seam import Book, StoredLedger
from hermes_agent.skills.changes import ARCHIVE
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Job, JobKind
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.versions import Author, By


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as the skill curator sees it; `age` is empty if the curator leaves it alone (`why_not` says why)."""

    name: str
    age: str
    days: int
    pinned: bool
    grade: str
    why_not: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """State of the skill curator. Times are seconds since 1970; `due` None: no automatic passes. `empty` counts passes
    in a row without a result, which lengthens the interval. `overlaps`: overlapping skills that reviews reported."""

    enabled: bool
    paused: bool
    passed: float
    due: float | None
    empty: int
    last: str
    skills: tuple[Row, ...]
    overlaps: tuple[tuple[str, ...], ...]
    archived: tuple[str, ...]

    @property
    def when(self) -> str:
        """When the last pass ended and when the next is due, as a sentence."""
        last = f"The last pass ended {moment(self.passed)} ({self.last})." if self.passed else "No pass has ended yet."
        if self.paused:
            return f"Paused. {last}"
        if self.due is None:
            return f"Automatic passes are off (`curator.enabled`, `learning.mode`). {last}"
        due = f"The next is due {moment(self.due)}" if self.due else "The first, which only reports, is due"
        empty = f" {self.empty} in a row changed nothing: Hermes asks a model less often." if self.empty > 1 else ""
        return f"{last} {due}, once nobody talks.{empty}"

    @property
    def lines(self) -> list[str]:
        """The whole status as text lines, one for each skill."""
        rows = [
            f"- {each.name}: {each.age or each.why_not}, {each.days} days unused"
            + (f", {each.grade}" if each.grade else "")
            for each in self.skills
        ]
        pairs = ", ".join(" + ".join(names) for names in self.overlaps)
        rows += [f"Overlapping, for the next pass: {pairs}"] if pairs else []
        return [self.when, *rows, *([f"Archived: {', '.join(self.archived)}"] if self.archived else [])]


def row(candidate: Candidate, journal_file: CuratorJournal, settings: CuratorSettings, now: float) -> Row:
    """The status row of a skill."""
    rating, age = journal_file.ratings.get(candidate.name), candidate.age(now, settings)
    shown = "due to be archived" if age is Age.ARCHIVED else str(age)
    return Row(
        name=candidate.name,
        age=shown if candidate.is_ours else "",
        days=int(candidate.unused(now)),
        pinned=candidate.pinned,
        grade=grade(rating.points) if rating and rating.hash == candidate.hash else "",
        why_not=candidate.why_not,
    )


HOUR = 3_600.0
SOON = 60.0
"""Seconds after which it is looked again at the earliest."""
NEVER = 24 * HOUR
"""Seconds until it is looked again where nothing is due at all."""


class Curating:
    """Schedule of the skill curator of one home: queues passes that are due, and runs those that a person asks for.
    `auxiliary` gives models, `ring` signals new work."""

    def __init__(self, needs: Needs, auxiliary: Auxiliary, proposing: Proposing, ring: Callable[[], None]) -> None:
        self._store, self._clock, self._ids = needs.get(Store), needs.get(Clock), RandomIds()
        self._settings, self._skills, self._book = needs.get(Settings), needs.get(Skills), needs.get(Book)
        self._taped = needs.get(Options).tape is not None
        self._auxiliary, self._proposing, self._ring = auxiliary, proposing, ring
        root = self._skills.home.parent
        self.journal_file = JournalFile(self._skills.home)
        self.places = Places(logs=root / "logs" / "curator", cache=root / "cache")

    @cached_property
    def writer(self) -> Writer:
        """The skill writer, with version history."""
        return self._skills.writer(self._store)

    @cached_property
    def curator(self) -> Curator:
        """The curator that executes a pass."""
        return Curator(
            store=self._store,
            clock=self._clock,
            ids=self._ids,
            settings=self._settings.curator,
            writer=self.writer,
            usage=self._skills.usage,
            journal_file=self.journal_file,
            places=self.places,
            proposing=self._proposing,
            model=self._model,
            why_not=self._why_not,
            asks=self._settings.learning.mode == "propose",
            effort=self._settings.model.reasoning_effort,
            gates=self._gates,
        )

    def _gates(self, tools: frozenset[str]) -> Sequence[Gate]:
        """The gates of a review."""
        days, most = self._settings.learning.constraint_days, self._settings.learning.max_constraints
        return (*usual_gates(tools), TypedGate(store=self._store, clock=self._clock, days=days, most=most))

    # When

    async def when_idle(self) -> float:
        """Queue a pass if one is due and nobody is talking. Returns seconds until the next check."""
        due = await self.due()
        if due is None:
            return NEVER
        wait = max(await self._quiet(), due - self._clock.now())
        if wait > 0:
            return max(SOON, wait)
        open_ = [job for job in await self._store.learning.list(JobKind.CURATOR, limit=10) if job.ended is None]
        if not open_:
            await self._queue(await self._subjects())
        self._ring()
        return NEVER

    async def due(self) -> float | None:
        """When the next automatic pass may begin; None: never."""
        settings, journal_file = self._settings, await asyncio.to_thread(self.journal_file.get)
        if journal_file.paused or not settings.curator.enabled or settings.learning.mode == "off" or self._taped:
            return None
        return journal_file.passed + settings.curator.interval_hours * HOUR if journal_file.looked else 0.0

    async def _subjects(self) -> list[str]:
        """What the next automatic pass does: the first only surveys and asks no model."""
        settings, journal_file = self._settings.curator, await asyncio.to_thread(self.journal_file.get)
        if not journal_file.looked:
            return [What.LOOK]
        rest = settings.interval_hours * HOUR * stretched(1, await self._empty())
        model = settings.consolidate and self._clock.now() >= journal_file.asked + rest
        return [What.STATES, What.UPKEEP] if model else [What.STATES]

    async def _quiet(self) -> float:
        """Seconds until the home has been idle long enough."""
        newest = await self._store.sessions.list(limit=1)
        if not newest:
            return 0.0
        return max(0.0, newest[0].updated + self._settings.curator.min_idle_hours * HOUR - self._clock.now())

    async def _why_not(self) -> str:
        """Why an automatic pass may not begin now; empty if it may."""
        if await self._quiet():
            return "Somebody is at work again: another time."
        due = await self.due()
        return "" if due is not None and due <= self._clock.now() else "It is not due any more."

    async def _empty(self) -> int:
        """Number of model passes in a row without a result."""
        store = self._store
        found: Mapping[str, int] = await store.read(lambda tx: store.pace.empty(tx, local_owner().key))
        return found.get(What.UPKEEP, 0)

    async def _queue(self, subjects: list[str]) -> str:
        job = Job(
            id=self._ids.short(),
            kind=JobKind.CURATOR,
            session="",
            principal=local_owner().key,
            what="+".join(subjects),
            first=0,
            last=0,
            created=self._clock.now(),
        )
        await self._store.write(lambda tx: self._store.learning.queue(tx, job))
        return job.id

    async def _model(self, claim: Claim) -> Model:
        """The model for a pass: `auxiliary.curator`, else the main model, within the limits of a pass."""
        settings, now = self._settings.curator, claim.job.created
        money = None if settings.max_money is None else nanos(settings.max_money)
        own_limit = Limit(scope=Scope.RUN, money=money, tokens=settings.max_tokens)
        book = self._book.within(own_limit)
        principal = claim.job.principal
        record = SessionRecord(
            id="", principal=principal, conversation="", surface="", created=now, updated=now, workspace=""
        )
        return await self._auxiliary(Purpose.CURATOR, record, StoredLedger(book, principal))

    # What a person asks

    async def run(self, *, look: bool = False) -> Run:
        """Run a pass now and return its report. The first ever, and one with `look`, changes nothing. Raises
        `HermesError`."""
        settings = self._settings
        if settings.learning.mode == "off":
            raise HermesError("Learning and the curator are off (`learning.mode: off`).")
        first = not (await asyncio.to_thread(self.journal_file.get)).looked
        wanted = [What.LOOK] if first or look else [What.STATES]
        if settings.curator.consolidate and (look or not first):
            wanted.append(What.TRIAL if look else What.UPKEEP)
        number = await self._queue([What.ASKED, *wanted])
        await Jobs(self._store, {JobKind.CURATOR: self.curator}, _untold).run()
        run = next((each for each in await self.runs() if each.job == number), None)
        if run is None:
            job = await self._store.learning.get(number)
            account = job.account if job else Account()
            raise HermesError(f"The pass did not finish: {account.note or 'another process is running it'}")
        return run

    async def status(self) -> Status:
        """The current state of the curator."""
        settings, journal_file = self._settings.curator, await asyncio.to_thread(self.journal_file.get)
        candidates = await survey(self.writer, self._skills.usage, journal_file)
        runs, aside = await self.runs(), self.writer.home / ARCHIVE
        reported = await self._store.learning.overlaps()
        return Status(
            enabled=settings.enabled,
            paused=journal_file.paused,
            passed=journal_file.passed,
            due=await self.due(),
            empty=await self._empty(),
            last=runs[0].id if runs else "",
            skills=tuple(row(candidate, journal_file, settings, self._clock.now()) for candidate in candidates),
            overlaps=tuple(there(reported, {candidate.name for candidate in candidates}, journal_file.apart)),
            archived=tuple(await asyncio.to_thread(_names, aside)),
        )

    async def pause(self, said: bool) -> None:
        """Pause automatic passes, or resume them."""
        await self.journal_file.change(paused(said))

    async def restore(self, name: str) -> None:
        """Restore an archived skill; its age counts from now. Raises `HermesError`."""
        await self.writer.restore(name, self._by(""))
        await self.journal_file.change(brought_back([name], self._clock.now()))

    async def rollback(self, name: str = "") -> list[str]:
        """Roll back a pass (empty: the last). Raises `HermesError`."""
        return await rollback(self.curator.reporting, self.journal_file, self._by, name)

    async def runs(self) -> list[Run]:
        """The finished passes, newest first."""
        return await asyncio.to_thread(report.all_kept, self.places.logs)

    async def one(self, name: str = "") -> Run:
        """The pass of that name; the newest if empty. Raises `HermesError`."""
        return await asyncio.to_thread(report.one_kept, self.places.logs, name)

    def _by(self, key: str) -> By:
        return By(author=Author.OWNER, principal=local_owner().key, key=key)


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []


async def _untold(_: Job) -> bool:
    """Reviews tell their conversations when their turn comes."""
    return False
