"""What came of a pass, found out: in the ledger and in the files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.learning.account import used_by
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.applying import Came
from hermes_agent.learning.curator.candidates import survey
from hermes_agent.learning.curator.history import QueryHistory
from hermes_agent.learning.curator.journal import CuratorJournal
from hermes_agent.learning.curator.plan import RUN, Plan, Stood
from hermes_agent.learning.curator.plan import keep as keep_plan
from hermes_agent.learning.curator.plan import kept as kept_plan
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.curator.snapshot import ENDING
from hermes_agent.skills.depot.files import files_of_folder
from hermes_agent.skills.usage import Usage
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Job
from hermes_agent.store.versions import Kind, Version

PAGE = 200
GIVEN_UP = "The pass stopped half-way."


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the curator keeps what: reports by pass, snapshots by pass, what is thrown away."""

    logs: Path
    snapshots: Path
    cache: Path

    def folder(self, job: Job) -> Path:
        """The folder of a pass, the same when it is begun again. Blocks."""
        name = f"{datetime.fromtimestamp(job.created, UTC):%Y%m%d-%H%M%S}"
        for number in count(1):
            folder = self.logs / (name if number == 1 else f"{name}-{number}")
            plan = kept_plan(folder)
            if plan is None or plan.job == job.id:
                return folder
        raise AssertionError

    def snapshot(self, folder: Path) -> Path:
        """The snapshot of a pass."""
        return self.snapshots / f"{folder.name}{ENDING}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Makes reports. Nothing in one is anybody's word."""

    store: Store
    clock: Clock
    writer: Writer
    usage: Usage
    places: Places

    async def looked(self, plan: Plan, folder: Path) -> Run:
        """The report of a pass that changes nothing."""
        files: dict[str, bytes | None] = {}
        for name, stood in plan.stood.items():
            found = await asyncio.to_thread(files_of_folder, self.writer.home / stood.place)
            files.update({f"{name}/{file}": each.content for file, each in found.items()})
        changes = []
        for step in plan.steps:
            changes.append(report.would(step, files))
            files.update({f"{step.name}/{file}": content for file, content in step.changes.items()})
        return report.run_of(folder.name, plan, changes, Account(), self.clock.now())

    async def did(self, plan: Plan, folder: Path, came: Sequence[Came], lost: Sequence[QueryHistory] = ()) -> Run:
        """The report of a pass that did what it planned, as far as that went."""
        changes = await self._changes(plan, came)
        names = {name for step, each in zip(plan.steps, changes, strict=True) if each.versions for name in step.touched}
        now = await self._stand(names)
        run = report.run_of(folder.name, plan, changes, Account(), self.clock.now())
        return msgspec.structs.replace(
            run,
            lost=tuple(dict.fromkeys(past.skill for past in lost)),
            skills=report.touched(sorted(names), plan.stood, now),
            snapshot=str(self.places.snapshot(folder)) if names else "",
        )

    async def _changes(self, plan: Plan, came: Sequence[Came]) -> list[report.Changed]:
        """What the ledger has of each step."""
        made = await self._made(plan)
        by_number = {each.number: each for each in came}
        return [
            report.changed(step, by_number[step.number], made.get(f"{plan.job}.{step.number}", []))
            for step in plan.steps
        ]

    async def _made(self, plan: Plan) -> dict[str, list[Version]]:
        """The versions of this pass by step."""
        found: dict[str, list[Version]] = {}
        before = 1 << 62
        while page := await self.store.versions.list(Kind.SKILL, limit=PAGE, before=before):
            for version in page:
                job, _, rest = version.change.key.partition(".")
                if version.id > plan.since and job == plan.job:
                    found.setdefault(f"{job}.{rest.partition('.')[0]}", []).append(version)
            before = page[-1].id
            if before <= plan.since:
                break
        return found

    async def _stand(self, names: set[str]) -> Mapping[str, Stood]:
        candidates = await survey(self.writer, self.usage, CuratorJournal()) if names else []
        home = self.writer.home
        return {
            candidate.name: Stood(place=candidate.place(home), hash=candidate.hash)
            for candidate in candidates
            if candidate.name in names
        }

    async def left_over(self) -> None:
        """Make the reports of passes that were given up half-way: what they did can be taken back too, where nobody
        came after them."""
        for folder in await asyncio.to_thread(_unreported, self.places.logs):
            plan = await asyncio.to_thread(kept_plan, folder)
            job = await self.store.learning.get(plan.job) if plan else None
            if plan is None or (job is not None and job.ended is None):
                continue
            run = await self.did(plan, folder, [Came(number=step.number, state="done") for step in plan.steps])
            latest = {name: await self._is_latest(plan, name) for name in run.skills}
            skills = {name: each for name, each in run.skills.items() if latest[name]}
            changes = [each if each.versions else _not_done(each) for each in run.changes]
            run = msgspec.structs.replace(run, skills=skills, changes=tuple(changes), failed=GIVEN_UP)
            await self.keep(run, folder, await used_by(self.store, "", plan.job))
            await self.forget(plan, folder)

    async def keep(self, run: Run, folder: Path, used: Account) -> Run:
        """Write the report, with what the pass used."""
        run = msgspec.structs.replace(
            run, calls=used.calls, input=used.input, output=used.output, cost=used.cost, ended=self.clock.now()
        )
        await asyncio.to_thread(report.keep, run, folder)
        return run

    async def forget(self, plan: Plan, folder: Path) -> None:
        """What people said stands in their conversations alone from now on, so that it goes with them."""
        await asyncio.to_thread(keep_plan, msgspec.structs.replace(plan, past=()), folder)

    async def _is_latest(self, plan: Plan, name: str) -> bool:
        """Whether nobody changed a skill after this pass."""
        history = await self.writer.versions.history(name)
        return bool(history) and history[0].change.key.startswith(f"{plan.job}.")


def _not_done(change: report.Changed) -> report.Changed:
    return msgspec.structs.replace(change, reason=GIVEN_UP)


def _unreported(logs: Path) -> list[Path]:
    folders = (each for each in logs.iterdir() if each.is_dir()) if logs.is_dir() else ()
    return sorted(each for each in folders if not (each / RUN).exists())
