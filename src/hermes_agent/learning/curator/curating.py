"""Runs one curator pass: survey the skills, plan, save the plan, apply it, check, report."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, LimitReached, ProviderError
from hermes_agent.core.messages import Message, Model, Origin
from hermes_agent.core.section import Section, freeze
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.applying import Applying, Places, Reporting
from hermes_agent.learning.curator.history import QueryHistory, groups, remember, that_find, there
from hermes_agent.learning.curator.plan import (
    DAY,
    Age,
    Candidate,
    CuratorJournal,
    JournalFile,
    Move,
    Plan,
    Whose,
    keep as keep_plan,
    kept as kept_plan,
    survey,
)
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.curator.staging import NAME, Staging, Trial
from hermes_agent.learning.curator.tools import Asking, CuratorTools, question, system
from hermes_agent.learning.dispatch import Pass
from hermes_agent.learning.jobs import Unfinished, used_by
from hermes_agent.learning.proposing import Proposing
from hermes_agent.learning.reviewing import Gates, usual_gates
from hermes_agent.learning.settings import CuratorSettings
from hermes_agent.skills.depot import Usage, files_of_folder
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Upkept
from hermes_agent.tools.schema import collect

LONGEST_NOTE = 500
PAGE = 200


class What:
    """Subjects of a curator job: `states` archives what was unused for long, `upkeep` also asks a model; `look` is
    a dry run, to which `trial` adds the model; `asked` means that a person requested the pass."""

    STATES, LOOK, UPKEEP, TRIAL, ASKED = "states", "look", "upkeep", "trial", "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curator:
    """Runs curator passes: handles learning jobs of the kind `curator`. `model` gives the model to ask; `asks`: nothing
    is changed without the owner's approval; `why_not` gives the reason why an unrequested pass may not start now."""

    store: Store
    clock: Clock
    ids: Ids
    settings: CuratorSettings
    writer: Writer
    usage: Usage
    journal_file: JournalFile
    places: Places
    proposing: Proposing
    model: Callable[[Claim], Awaitable[Model]]
    why_not: Callable[[], Awaitable[str]]
    asks: bool = False
    effort: str = "medium"
    gates: Gates = usual_gates

    async def __call__(self, claim: Claim) -> Account:
        """One pass; what came of it. Raises `HermesError` where it could not be done."""
        folder = await asyncio.to_thread(self.places.folder, claim.job)
        plan = await asyncio.to_thread(kept_plan, folder)
        if plan is None:
            why = "" if What.ASKED in claim.job.subjects else await self.why_not()
            if why:
                raise HermesError(why)
            plan = await self._planned(claim)
            await asyncio.to_thread(keep_plan, plan, folder)
        used = await used_by(self.store, claim.job.session, claim.job.id)
        run = await asyncio.to_thread(report.kept, folder)
        if run is None:  # Else it died between its report and its end.
            run = await (self.reporting.looked(plan, folder) if plan.looks else self._done(claim, plan, folder))
            await self._noted(plan)
            run = await self.reporting.keep(run, folder, used)
        await self.reporting.forget(plan, folder)
        return _account(run, used, plan.considered)

    # What is to be done

    @property
    def reporting(self) -> Reporting:
        """The reporting of its passes."""
        return Reporting(store=self.store, clock=self.clock, writer=self.writer, places=self.places)

    async def _planned(self, claim: Claim) -> Plan:
        await self.reporting.left_over()
        now, job = self.clock.now(), claim.job
        journal_file = await asyncio.to_thread(self.journal_file.get)
        remembered = await remember(self.store, now - self.settings.archive_after_days * DAY)
        candidates = await survey(self.writer, self.usage, journal_file, remembered.loaded)
        trial = Trial(self.writer.library, self.places.cache / f"{NAME}{job.id}")
        plan = Plan(
            job=job.id,
            at=now,
            looks=What.LOOK in job.subjects,
            moves=tuple(self._moves(candidates, journal_file, now)),
        )
        try:
            await trial.open()
            past = await that_find(remembered.past, trial.finds)
            bench = await self._bench(candidates, journal_file, trial, past)
            old = [
                candidate
                for candidate in candidates
                if candidate.is_ours and candidate.age(now, self.settings) is Age.ARCHIVED
            ]
            await bench.put_aside(old, {each.name: f"unused for {int(each.unused(now))} days" for each in old})
            plan = msgspec.structs.replace(plan, past=tuple(past))
            if {What.UPKEEP, What.TRIAL} & job.subjects:
                plan = await self._with_model(claim, plan, bench, journal_file)
            return msgspec.structs.replace(plan, steps=tuple(bench.steps), ratings=bench.ratings)
        finally:
            await trial.close()

    async def _bench(
        self, candidates: Sequence[Candidate], journal_file: CuratorJournal, trial: Trial, past: Sequence[QueryHistory]
    ) -> Staging:
        files = {
            candidate.name: await asyncio.to_thread(files_of_folder, candidate.header.path) for candidate in candidates
        }
        return Staging(
            home=self.writer.home,
            candidates={candidate.name: candidate for candidate in candidates},
            files=files,
            trial=trial,
            past=past,
            gates=self.gates(frozenset()),
            apart=journal_file.apart,
        )

    async def _with_model(self, claim: Claim, plan: Plan, bench: Staging, journal_file: CuratorJournal) -> Plan:
        """Let the model plan on the staging copy, where there is something that it has not seen."""
        known = [each for each in bench.candidates.values() if await self._is_own(each)]
        bench.files = {each.name: bench.files[each.name] for each in known}  # What others wrote is not shown.
        candidates = [
            candidate
            for candidate in known
            if candidate.name not in bench.gone
            and candidate.whose is not Whose.INSTALLED
            and (candidate.is_ours or not candidate.pinned)
        ]
        texts = {candidate.name: bench.text(candidate.name) for candidate in candidates if candidate.is_ours}
        reported = await self.store.learning.overlaps()
        seen = there(reported, bench.candidates.keys() - bench.gone, journal_file.apart)
        plan = msgspec.structs.replace(plan, considered=tuple(reported), seen=tuple(seen))
        news = (
            any(texts.keys() >= {*each} for each in seen)
            or fingerprint(bench.candidates, bench.gone) != journal_file.mended
        )
        if not texts or not news:
            return plan
        found = await asyncio.to_thread(groups, texts, journal_file.apart)
        rated = {name for name, each in journal_file.ratings.items() if name in texts and each.hash == bench.hash(name)}
        tools = collect([CuratorTools(bench, self.clock)])[0]
        asking = Asking(job=claim.job.id, tools={each.schema.name: each for each in tools})
        plan = msgspec.structs.replace(plan, groups=tuple(map(tuple, found)))
        failed = said = name = ""
        try:
            model = await self.model(claim)
            name = model.name
            said = await self._pass(claim, model, asking, question(bench, candidates, found, rated, seen)).run()
        except (ProviderError, LimitReached) as error:
            failed = str(error)
        denied = tuple(asking.denied)
        return msgspec.structs.replace(plan, model=name, failed=failed, said=said[:LONGEST_NOTE], denied=denied)

    async def _is_own(self, candidate: Candidate) -> bool:
        return await self.writer.library.origin_of(candidate.header) is Origin.SKILL

    def _pass(self, claim: Claim, model: Model, asking: Asking, asked: Message) -> Pass:
        prefix = freeze((Section(name="curator", text=system()),), tuple(each.schema for each in asking.tools.values()))
        return Pass(
            model=model,
            prefix=prefix,
            messages=[asked],
            store=self.store,
            claim=claim,
            act=asking.act,
            clock=self.clock,
            ids=self.ids,
            turns=self.settings.max_turns,
            deadline=self.clock.monotonic() + self.settings.max_seconds,
            effort=self.effort,
        )

    def _moves(self, candidates: Sequence[Candidate], journal_file: CuratorJournal, now: float) -> list[Move]:
        found = []
        for candidate in candidates:
            if candidate.is_ours:
                was, age = journal_file.ages.get(candidate.name, Age.ACTIVE), candidate.age(now, self.settings)
                if was != age:
                    found.append(Move(name=candidate.name, was=was, now=age, days=int(candidate.unused(now))))
        return found

    # Doing it

    async def _done(self, claim: Claim, plan: Plan, folder: Path) -> Run:
        """The report of a pass that does what it planned."""
        applying = Applying(
            store=self.store,
            writer=self.writer,
            usage=self.usage,
            proposing=self.proposing,
            claim=claim,
            plan=plan,
            asks=self.asks,
        )
        await applying.all()
        lost = await applying.check() if any(came.state == "done" for came in applying.came) else []
        return await self.reporting.did(plan, folder, applying.came, lost)

    async def _noted(self, plan: Plan) -> None:
        """What the next pass has to know."""
        journal_file = await asyncio.to_thread(self.journal_file.get)
        candidates = {candidate.name: candidate for candidate in await survey(self.writer, self.usage, journal_file)}
        now = self.clock.now()
        states = {
            name: candidate.age(now, self.settings) for name, candidate in candidates.items() if candidate.is_ours
        }
        moved = {each.name: each.now for each in plan.moves if each.name in candidates}
        ages = {name: age for name, age in {**states, **moved}.items() if age is not Age.ACTIVE}
        ratings = {**journal_file.ratings, **plan.ratings}
        asked = bool(plan.model) and not plan.looks
        mended = fingerprint(candidates, ()) if asked and not plan.failed else journal_file.mended

        def change(old: CuratorJournal) -> CuratorJournal:
            return msgspec.structs.replace(
                old,
                looked=old.looked or now,
                passed=old.passed if plan.looks and old.looked else now,  # A dry run puts nothing off.
                asked=now if asked else old.asked,
                mended=mended,
                ages=old.ages if plan.looks else {name: str(age) for name, age in ages.items()},
                ratings={name: each for name, each in ratings.items() if name in candidates},
            )

        await self.journal_file.change(change)


def fingerprint(candidates: Mapping[str, Candidate], gone: Sequence[str] | set[str]) -> str:
    """Fingerprint of the skills that the model would examine."""
    lines = [
        f"{name} {candidate.hash}"
        for name, candidate in sorted(candidates.items())
        if candidate.is_ours and name not in gone
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _account(run: Run, used: Account, considered: tuple[tuple[str, ...], ...]) -> Account:
    """What came of a pass. A model that was asked and brought nothing is asked more seldom; what is put aside for its
    age it did not bring. Raises `Unfinished` where the model's part ended early."""
    states = [each.state for each in run.changes]
    made = replace(
        used,
        kept=states.count("done"),
        waiting=sum(len(each.waits) for each in run.changes),
        refused=len(run.refused),
        note=f"{'looked only; ' if run.looks else ''}{report.summary(run)} (hermes curator report {run.id})",
        considered=() if run.looks or run.failed else considered,
    )
    if run.failed:
        raise Unfinished(run.failed, made)
    if not run.model or run.looks:
        return made
    brought = any(each.kind != "unused" and each.state in ("done", "waits") for each in run.changes)
    return Upkept(**asdict(made), what=What.UPKEEP, brought=brought)
