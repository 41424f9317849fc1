"""What came of a pass, found out: in the ledger and in the files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations, count
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.candidates import JournalFile, brought_back, kept_apart
from hermes_agent.learning.curator.history import QueryHistory
from hermes_agent.learning.curator.plan import RUN, Changed, Plan, Step
from hermes_agent.learning.curator.plan import keep as keep_plan
from hermes_agent.learning.curator.plan import kept as kept_plan
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.jobs import used_by
from hermes_agent.skills.changes import ARCHIVE
from hermes_agent.skills.depot import files_of_folder
from hermes_agent.skills.versions import files_at
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Job
from hermes_agent.store.versions import By, Kind, Version

PAGE = 200
GIVEN_UP = "The pass stopped half-way."


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


async def put_back(writer: Writer, job: str, name: str, by: By) -> str:
    """Make a skill what it was before a pass first changed it, by the ledger, where nobody changed it since; what came
    of it. Raises `HermesError`."""
    await writer.mend([name])
    history, done = await writer.versions.history(name), f"`{name}` is as it was."
    others = [each.id for each in history if not each.change.key.startswith(f"{job}.")]
    first = min({each.id for each in history} - {*others}, default=0)
    number = max((each for each in others if each < first), default=0)
    was, now = (_there(files_at(history, each)) for each in (number, 1 << 62))
    if not first or was == now:
        return done
    if max(others, default=0) > first:
        return f"`{name}` was changed since: it stays (`hermes skills history {name}`)."
    if not was:
        await writer.archive(name, by)
        return f"`{name}`, which the pass made, is archived."
    aside = await asyncio.to_thread(files_of_folder, writer.home / ARCHIVE / name)
    if not now and {f"{name}/{file}": each.content for file, each in aside.items()} == was:
        await writer.restore(name, by)
    else:
        await writer.revert(name, number, by)
    return done


def _there(files: Mapping[str, bytes | None]) -> dict[str, bytes]:
    return {item: content for item, content in files.items() if content is not None}


async def rollback(
    reporting: Reporting, journal_file: JournalFile, by: Callable[[str], By], name: str = ""
) -> list[str]:
    """Take back the pass of that name (none: the newest that changed something), in the name of `by`, which is given
    the key of each change; a sentence for each skill. What was joined stays apart, and its age counts anew. Raises
    `HermesError`."""
    run = await asyncio.to_thread(_chosen, reporting.places.logs, name)
    lines = [await put_back(reporting.writer, run.job, each, by(f"{run.job}.{each}.rolled")) for each in run.touched]
    joined = [each for each in run.changes if each.kind == "join" and each.state == "done"]
    pairs = [pair for each in joined for pair in combinations((each.name, *each.absorbs), 2)]
    now = reporting.clock.now()
    await journal_file.change(brought_back(run.touched, now))
    await journal_file.change(kept_apart(pairs))
    done = msgspec.structs.replace(run, rolled_back=now)
    await asyncio.to_thread(report.keep, done, reporting.places.logs / run.id)
    return lines


def _chosen(logs: Path, name: str) -> Run:
    """The pass to take back. Blocks. Raises `HermesError`."""
    runs = [report.one_kept(logs, name)] if name else report.all_kept(logs)
    run = next((each for each in runs if name or (each.touched and not each.rolled_back)), None)
    if run is None:
        raise HermesError("There is no pass left to undo.")
    if run.rolled_back or not run.touched:
        raise HermesError(f"The pass {run.id} {'was undone already' if run.touched else 'changed nothing'}.")
    return run
