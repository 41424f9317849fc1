"""The curator of one home: when a pass is due, and what a person asks of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_agent.app.auxiliary.settings import Purpose
from hermes_agent.app.learning.status import Status, row
from hermes_agent.app.local_owner import local_owner
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.model import Model
from hermes_agent.core.spending import Limit, Rules, Scope, nanos
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.candidates import survey
from hermes_agent.learning.curator.curating import Curator, What
from hermes_agent.learning.curator.journal import JournalFile, brought_back, paused
from hermes_agent.learning.curator.overlaps import there
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.curator.reporting import Places
from hermes_agent.learning.curator.rollback import Rollback
from hermes_agent.learning.drafts import Gate
from hermes_agent.learning.jobs import Jobs
from hermes_agent.learning.reviewing import usual_gates
from hermes_agent.learning.triggers import stretched
from hermes_agent.learning.typed import TypedGate
from hermes_agent.replay.ledger import StoredLedger
from hermes_agent.skills.changes import By
from hermes_agent.skills.swap import ARCHIVE
from hermes_agent.skills.writing import Writer
from hermes_agent.store.learning.jobs import Account, Claim, Job, JobKind
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.versions import Author

if TYPE_CHECKING:
    from hermes_agent.app.settings import Settings
    from hermes_agent.app.skills import Skills
    from hermes_agent.core.clock import Clock
    from hermes_agent.core.ids import Ids
    from hermes_agent.learning.proposing import Proposing
    from hermes_agent.providers.broker import Ledger
    from hermes_agent.replay.ledger import Book
    from hermes_agent.store.database import Store

HOUR = 3_600.0
SOON = 60.0
"""Seconds after which it is looked again at the earliest."""
NEVER = 24 * HOUR
"""Seconds until it is looked again where nothing is due at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the curator has of its process. `within` gives the rules with a limit of a pass's own, `ring` says that
    there is work; where it is `taped`, nothing begins by itself."""

    store: Store
    clock: Clock
    ids: Ids
    settings: Settings
    skills: Skills
    book: Book
    auxiliary: Callable[[Purpose, SessionRecord, Ledger], Awaitable[Model]]
    proposing: Proposing
    within: Callable[[Rules, Limit], Rules]
    ring: Callable[[], None]
    taped: bool = False


class Curating:
    """The upkeep of one home's skills."""

    def __init__(self, means: Means) -> None:
        self._means = means
        root = means.skills.home.parent
        self.journal_file = JournalFile(means.skills.home)
        self.places = Places(
            logs=root / "logs" / "curator", snapshots=root / "backups" / "curator", cache=root / "cache"
        )

    @cached_property
    def writer(self) -> Writer:
        """What changes skills."""
        return self._means.skills.writer(self._means.store)

    @cached_property
    def curator(self) -> Curator:
        """Who does a pass."""
        means = self._means
        return Curator(
            store=means.store,
            clock=means.clock,
            ids=means.ids,
            settings=means.settings.curator,
            writer=self.writer,
            usage=means.skills.usage,
            journal_file=self.journal_file,
            places=self.places,
            proposing=means.proposing,
            model=self._model,
            why_not=self._why_not,
            asks=means.settings.learning.mode == "propose",
            effort=means.settings.model.reasoning_effort,
            gates=self._gates,
        )

    def _gates(self, tools: frozenset[str]) -> Sequence[Gate]:
        """Those of a review."""
        means = self._means
        settings = means.settings.learning
        days, most = settings.constraint_days, settings.max_constraints
        return (*usual_gates(tools), TypedGate(store=means.store, clock=means.clock, days=days, most=most))

    # When

    async def when_idle(self) -> float:
        """Put a pass in line where one is due and nobody talks; seconds until it is worth looking again."""
        means, due = self._means, await self.due()
        if due is None:
            return NEVER
        wait = max(await self._quiet(), due - means.clock.now())
        if wait > 0:
            return max(SOON, wait)
        open_ = [job for job in await means.store.learning.list(JobKind.CURATOR, limit=10) if job.ended is None]
        if not open_:
            await self._queue(await self._subjects())
        means.ring()
        return NEVER

    async def due(self) -> float | None:
        """When a pass may begin by itself; None: never."""
        settings, journal_file = self._means.settings, await asyncio.to_thread(self.journal_file.get)
        if journal_file.paused or not settings.curator.enabled or settings.learning.mode == "off" or self._means.taped:
            return None
        return journal_file.passed + settings.curator.interval_hours * HOUR if journal_file.looked else 0.0

    async def _subjects(self) -> list[str]:
        """What the next pass does by itself: the first only looks, and asks no model."""
        settings, journal_file = self._means.settings.curator, await asyncio.to_thread(self.journal_file.get)
        if not journal_file.looked:
            return [What.LOOK]
        rest = settings.interval_hours * HOUR * stretched(1, await self._empty())
        model = settings.consolidate and self._means.clock.now() >= journal_file.asked + rest
        return [What.STATES, What.UPKEEP] if model else [What.STATES]

    async def _quiet(self) -> float:
        """Seconds until nobody has talked for long enough."""
        means = self._means
        newest = await means.store.sessions.list(limit=1)
        if not newest:
            return 0.0
        return max(0.0, newest[0].updated + means.settings.curator.min_idle_hours * HOUR - means.clock.now())

    async def _why_not(self) -> str:
        """Why a pass that nobody asked for may not begin now; empty where it may."""
        if await self._quiet():
            return "Somebody is at work again: another time."
        due = await self.due()
        return "" if due is not None and due <= self._means.clock.now() else "It is not due any more."

    async def _empty(self) -> int:
        """How many passes of the model in a row brought nothing."""
        store = self._means.store
        found: Mapping[str, int] = await store.read(lambda tx: store.pace.empty(tx, local_owner().key))
        return found.get(What.UPKEEP, 0)

    async def _queue(self, subjects: list[str]) -> str:
        means = self._means
        job = Job(
            id=means.ids.short(),
            kind=JobKind.CURATOR,
            session="",
            principal=local_owner().key,
            what="+".join(subjects),
            first=0,
            last=0,
            created=means.clock.now(),
        )
        await means.store.write(lambda tx: means.store.learning.queue(tx, job))
        return job.id

    async def _model(self, claim: Claim) -> Model:
        """Who is asked: `auxiliary.curator`, else the model that answers, within the limits of a pass."""
        means, settings, now = self._means, self._means.settings.curator, claim.job.created
        money = None if settings.max_money is None else nanos(settings.max_money)
        own_limit = Limit(scope=Scope.RUN, money=money, tokens=settings.max_tokens)
        book = replace(means.book, rules=means.within(means.book.rules, own_limit))
        principal = claim.job.principal
        record = SessionRecord(
            id="", principal=principal, conversation="", surface="", created=now, updated=now, workspace=""
        )
        return await means.auxiliary(Purpose.CURATOR, record, StoredLedger(book, principal))

    # What a person asks

    async def run(self, *, look: bool = False) -> Run:
        """A pass now; what came of it. The first ever, and one that only `look`s, changes nothing. Raises
        `HermesError`."""
        means, settings = self._means, self._means.settings
        if settings.learning.mode == "off":
            raise HermesError("Learning and the curator are off (`learning.mode: off`).")
        first = not (await asyncio.to_thread(self.journal_file.get)).looked
        wanted = [What.LOOK] if first or look else [What.STATES]
        if settings.curator.consolidate and (look or not first):
            wanted.append(What.TRIAL if look else What.UPKEEP)
        number = await self._queue([What.ASKED, *wanted])
        await Jobs(means.store, {JobKind.CURATOR: self.curator}, _untold).run()
        run = next((each for each in await self.runs() if each.job == number), None)
        if run is None:
            job = await means.store.learning.get(number)
            account = job.account if job else Account()
            raise HermesError(f"The pass did not finish: {account.note or 'another process is running it'}")
        return run

    async def status(self) -> Status:
        """Where everything stands."""
        settings, journal_file = self._means.settings.curator, await asyncio.to_thread(self.journal_file.get)
        candidates = await survey(self.writer, self._means.skills.usage, journal_file)
        runs, aside = await self.runs(), self.writer.home / ARCHIVE
        reported = await self._means.store.learning.overlaps()
        return Status(
            enabled=settings.enabled,
            paused=journal_file.paused,
            passed=journal_file.passed,
            due=await self.due(),
            empty=await self._empty(),
            last=runs[0].id if runs else "",
            skills=tuple(row(candidate, journal_file, settings, self._means.clock.now()) for candidate in candidates),
            overlaps=tuple(there(reported, {candidate.name for candidate in candidates}, journal_file.apart)),
            archived=tuple(await asyncio.to_thread(_names, aside)),
        )

    async def pause(self, said: bool) -> None:
        """No pass begins by itself, or again."""
        await self.journal_file.change(paused(said))

    async def restore(self, name: str) -> None:
        """Bring back what was put aside, to where it stood; its age counts anew. Raises `HermesError`."""
        touched = (run.skills[name] for run in await self.runs() if name in run.skills)
        place = next((each.place for each in touched if not each.after), name)
        await self.writer.restore(name, self._by(""), place.rpartition("/")[0])
        await self.journal_file.change(brought_back([name], self._means.clock.now()))

    async def rollback(self, name: str = "") -> list[str]:
        """Take a pass back, as `Rollback`. Raises `HermesError`."""
        back = Rollback(
            clock=self._means.clock, writer=self.writer, journal_file=self.journal_file, places=self.places, by=self._by
        )
        return await back(name)

    async def runs(self) -> list[Run]:
        """The passes that ended, the newest first."""
        return await asyncio.to_thread(report.all_kept, self.places.logs)

    async def one(self, name: str = "") -> Run:
        """The pass of that name; the newest without one. Raises `HermesError`."""
        return await asyncio.to_thread(report.one_kept, self.places.logs, name)

    def _by(self, key: str) -> By:
        return By(author=Author.OWNER, principal=local_owner().key, key=key)


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []


async def _untold(_: Job) -> bool:
    """Reviews tell their conversations when their turn comes."""
    return False
