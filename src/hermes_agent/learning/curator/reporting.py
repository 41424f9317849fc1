"""What came of a pass, found out: in the ledger and in the files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.history import QueryHistory
from hermes_agent.learning.curator.plan import RUN, Changed, Plan, Step
from hermes_agent.learning.curator.plan import keep as keep_plan
from hermes_agent.learning.curator.plan import kept as kept_plan
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.jobs import used_by
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Job
from hermes_agent.store.versions import Kind, Version

PAGE = 200
GIVEN_UP = "The pass was given up half-way."


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the curator keeps what: reports by pass, what is thrown away."""

    logs: Path
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Makes reports. Nothing in one is anybody's word."""

    store: Store
    clock: Clock
    writer: Writer
    places: Places

    async def looked(self, plan: Plan, folder: Path) -> Run:
        """The report of a pass that changes nothing."""
        files: dict[str, bytes | None] = {}
        for item in {f"{step.name}/{file}" for step in plan.steps for file in step.changes}:
            newest = await self.store.versions.latest(Kind.SKILL, item)
            files[item] = newest.change.after if newest else None
        changes = []
        for step in plan.steps:
            changes.append(report.would(step, files))
            files.update({f"{step.name}/{file}": content for file, content in step.changes.items()})
        return report.run_of(folder.name, plan, changes, self.clock.now())

    async def did(self, plan: Plan, folder: Path, came: Sequence[Changed], lost: Sequence[QueryHistory] = ()) -> Run:
        """The report of a pass that did what it planned, as far as that went."""
        changes = [
            report.changed(each, await self._made(plan, step)) for step, each in zip(plan.steps, came, strict=True)
        ]
        run = report.run_of(folder.name, plan, changes, self.clock.now())
        return msgspec.structs.replace(run, lost=tuple(dict.fromkeys(past.skill for past in lost)))

    async def _made(self, plan: Plan, step: Step) -> list[Version]:
        """The versions that a step left."""
        found = [each for name in step.touched for each in await self.writer.versions.history(name)]
        return [each for each in found if each.change.key.startswith(f"{plan.job}.{step.number}.")]

    async def left_over(self) -> None:
        """Make the reports of passes that were given up half-way: what they did can be taken back too."""
        for folder in await asyncio.to_thread(_unreported, self.places.logs):
            plan = await asyncio.to_thread(kept_plan, folder)
            job = await self.store.learning.get(plan.job) if plan else None
            if plan is None or (job is not None and job.ended is None):
                continue
            run = await self.did(plan, folder, [step.came("done") for step in plan.steps])
            changes = [
                each if each.versions else msgspec.structs.replace(each, reason=GIVEN_UP) for each in run.changes
            ]
            run = msgspec.structs.replace(run, changes=tuple(changes), failed=GIVEN_UP)
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


def _unreported(logs: Path) -> list[Path]:
    folders = (each for each in logs.iterdir() if each.is_dir()) if logs.is_dir() else ()
    return sorted(each for each in folders if not (each / RUN).exists())
