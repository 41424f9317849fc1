"""Applies the plan of a curator pass step by step, under the job's lease and where the skills are as planned; then
checks that past queries still find their skills, writes the report, and can roll the pass back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from itertools import combinations, count
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, StoreError
from hermes_agent.core.messages import ToolCall
from hermes_agent.learning.curator import report
from hermes_agent.learning.curator.history import QueryHistory, lost
from hermes_agent.learning.curator.plan import (
    RUN,
    Changed,
    JournalFile,
    Plan,
    Step,
    brought_back,
    keep as keep_plan,
    kept as kept_plan,
    kept_apart,
)
from hermes_agent.learning.curator.report import Run
from hermes_agent.learning.drafts import Evidence, Waits, draft_of
from hermes_agent.learning.jobs import used_by
from hermes_agent.learning.proposing import Proposing
from hermes_agent.skills.changes import ARCHIVE, Conflict
from hermes_agent.skills.depot import Usage, Used, files_of_folder, hash_of_folder
from hermes_agent.skills.skill import FILE, Layer, SkillHeader
from hermes_agent.skills.versions import files_at
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Job
from hermes_agent.store.learning.proposals import PART, Why
from hermes_agent.store.versions import Author, Backing, By, Kind, Version

PAGE = 200
GIVEN_UP = "The pass stopped half-way."


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Folders of the curator: `logs` has a folder with plan and report for each pass, `cache` is for temporary
    files."""

    logs: Path
    cache: Path

    def folder(self, job: Job) -> Path:
        """The folder of a pass, the same when it is resumed. Blocks."""
        name = f"{datetime.fromtimestamp(job.created, UTC):%Y%m%d-%H%M%S}"
        for number in count(1):
            folder = self.logs / (name if number == 1 else f"{name}-{number}")
            plan = kept_plan(folder)
            if plan is None or plan.job == job.id:
                return folder
        raise AssertionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Builds and stores the reports of curator passes; what a pass changed comes from the version ledger and the
    files, not from what the model says."""

    store: Store
    clock: Clock
    writer: Writer
    places: Places

    async def looked(self, plan: Plan, folder: Path) -> Run:
        """The report of a read-only pass."""
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
        """The report of a pass that applied its plan, as far as it got."""
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
        """Write the reports of abandoned passes, so that they can be rolled back too."""
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
        """Write the report, with the cost of the pass."""
        run = msgspec.structs.replace(
            run, calls=used.calls, input=used.input, output=used.output, cost=used.cost, ended=self.clock.now()
        )
        await asyncio.to_thread(report.keep, run, folder)
        return run

    async def forget(self, plan: Plan, folder: Path) -> None:
        """Remove people's words from the plan, so that only their conversations hold them and deleting those deletes
        them."""
        await asyncio.to_thread(keep_plan, msgspec.structs.replace(plan, past=()), folder)


def _unreported(logs: Path) -> list[Path]:
    folders = (each for each in logs.iterdir() if each.is_dir()) if logs.is_dir() else ()
    return sorted(each for each in folders if not (each / RUN).exists())


async def put_back(writer: Writer, job: str, name: str, by: By) -> str:
    """Restore a skill from the ledger to its state before the pass, unless somebody changed it since; the outcome.
    Raises `HermesError`."""
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
    """Roll back the pass of that name (none: the newest that changed something); `by` makes the author from the key
    of each change. Returns a sentence for each skill. Joined skills stay separate, and their age restarts. Raises
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


PUT_BACK = "Past queries no longer found their skill: restored."


@dataclass(slots=True, kw_only=True)
class Applying:
    """Applies the steps of a curator pass's plan. `asks`: nothing is changed without the owner's approval. Steps
    that were done before a crash are recognised by their key and skipped."""

    store: Store
    writer: Writer
    usage: Usage
    proposing: Proposing
    claim: Claim
    plan: Plan
    asks: bool
    came: list[Changed] = field(default_factory=list)

    async def all(self) -> None:
        """Apply every step in order."""
        names = {name for step in self.plan.steps for name in step.touched}
        await self.writer.mend(sorted(names))
        for step in self.plan.steps:
            await self.store.learning.check(self.claim)
            try:
                came = await self._put_back(step) or await self._one(step)
            except StoreError:
                raise
            except HermesError as error:
                came = step.came("skipped", str(error))
            self.came.append(came)

    async def check(self) -> list[QueryHistory]:
        """Repeat past queries, and revert the steps that broke some; the queries lost even then."""
        missing = await self._lost()
        while missing:
            standing = self._standing()
            if not standing:
                return missing
            wanted = {past.skill for past in missing}
            guilty = [step for step in standing if wanted & set(step.touched)] or standing
            await self._take_back(guilty[-1], standing)
            missing = await self._lost()
        return missing

    async def _put_back(self, step: Step) -> Changed | None:
        """What came of a step that an earlier attempt put back."""
        for name in step.touched:
            if await self.writer.versions.done_by(self._by(step, f"back.{name}").key):
                return step.came("back", PUT_BACK)
        return None

    async def _one(self, step: Step) -> Changed:
        if self.asks or step.protected:
            return step.came("waits", waits=[f"p{number}" for number in await self._proposed(step)])
        if step.kind == "unused":
            used = (await asyncio.to_thread(self.usage.all)).get(step.name, Used())
            if used.last > self.plan.at:
                raise Conflict(f"`{step.name}` was used meanwhile.")
            await self._aside(step, step.name, step.base)
            return step.came("done")
        await self._written(step)
        left = [await self._aside_or_why(step, name, found) for name, found in step.absorbs.items()]
        return step.came("done", " ".join(filter(None, left)))

    async def _written(self, step: Step) -> None:
        """The files of the skill that is changed or made."""
        by = self._by(step, "text")
        if not step.changes or await self.writer.versions.done_by(by.key):
            return
        changes, expected = dict(step.changes), step.base
        if not step.base:
            text, born = changes.pop(FILE).decode(), self._by(step, "made")
            expected = ""
            if not await self.writer.versions.done_by(born.key):
                await self.writer.create(step.name, text, born)
        if changes:
            await self.writer.update(step.name, changes, by, runs=step.runs, expected=expected)

    async def _aside_or_why(self, step: Step, name: str, found: str) -> str:
        try:
            await self._aside(step, name, found)
        except StoreError:
            raise
        except HermesError as error:
            return f"`{name}` stays: {error}"
        return ""

    async def _aside(self, step: Step, name: str, found: str) -> None:
        by = self._by(step, f"aside.{name}")
        if await self.writer.versions.done_by(by.key):
            return
        header = await self._own(name)
        if header is None or await asyncio.to_thread(hash_of_folder, header.path) != found:
            raise Conflict(f"`{name}` was changed meanwhile.")
        await self.writer.archive(name, by)

    async def _proposed(self, step: Step) -> list[int]:
        """Put a step aside, as the calls that it comes to."""
        job, numbers = self.claim.job, []
        waits = Waits(why=Why.PROTECTED if step.protected else Why.ASKED, taint="")
        for place, arguments in enumerate(calls_of(step)):
            key = f"{job.id}.{step.number}{PART}{place}"
            draft = draft_of(ToolCall(id="", name="skill_manage", arguments=arguments), "", key)
            assert draft is not None
            header = await self._own(step.name)
            base = await asyncio.to_thread((header.path / FILE).read_bytes) if header else None
            numbers.append(await self.proposing.put(draft, waits, job, self._evidence(), base))
        return numbers

    async def _take_back(self, step: Step, standing: Sequence[Step]) -> None:
        """Put back what a step touched, and with it the steps that touched the same."""
        for each in together(step, standing):
            by = {name: self._by(each, f"back.{name}") for name in each.touched}
            lines = [await put_back(self.writer, self.plan.job, name, one) for name, one in by.items()]
            stays = [line for line in lines if "it stays" in line]
            self.came[self.plan.steps.index(each)] = each.came("back", " ".join([PUT_BACK, *stays]))

    async def _lost(self) -> list[QueryHistory]:
        library = self.writer.library

        async def finds(query: str, shown: int) -> list[str]:
            return [header.name for header in await library.candidates(query, limit=shown)]

        await library.forget()
        standing = self._standing()
        there = {header.name for header in await library.all(limit=100_000)}
        covers = {name: step.name for step in standing for name in step.absorbs if name not in there}
        gone = {step.name for step in standing if step.kind == "unused"}
        return await lost(self.plan.past, finds, covers, gone)

    def _standing(self) -> list[Step]:
        return [step for step, came in zip(self.plan.steps, self.came, strict=True) if came.state == "done"]

    async def _own(self, name: str) -> SkillHeader | None:
        """The home's own skill of that name."""
        headers = await self.writer.library.same_name(name)
        return next((header for header in headers if header.layer is Layer.USER), None)

    def _by(self, step: Step, what: str) -> By:
        backing = Backing(evidence=self._evidence(), note=step.why or None)
        key = f"{self.claim.job.id}.{step.number}.{what}"
        return By(author=Author.CURATOR, key=key, backing=backing)

    def _evidence(self) -> str:
        return Evidence(review=self.claim.job.id, through="curator").text


def together(step: Step, standing: Sequence[Step]) -> list[Step]:
    """The steps connected to this one by common skills, the newest first."""
    touched: Collection[str] = set(step.touched)
    found = [step]
    while more := [each for each in standing if each not in found and set(each.touched) & set(touched)]:
        found += more
        touched = {name for each in found for name in each.touched}
    return sorted(found, key=lambda each: -each.number)


def calls_of(step: Step) -> list[dict[str, str]]:
    """A step as calls of `skill_manage`; without binary files."""
    calls: list[dict[str, str]] = []
    for file, content in step.changes.items():
        if file == FILE:
            action = "edit" if step.base else "create"
            calls.insert(0, {"action": action, "name": step.name, "content": content.decode()})
        elif b"\0" not in content:
            text = content.decode("utf-8", "replace")
            calls.append({"action": "write_file", "name": step.name, "file": file, "content": text})
    return [*calls, *({"action": "delete", "name": name} for name in step.gone)]
