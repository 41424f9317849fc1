"""Doing what a pass planned: step by step, each under the lease and only while things are as they were; then the check
that past queries are still answered."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import field

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, StoreError
from hermes_agent.core.messages import ToolCall
from hermes_agent.learning.curator.history import QueryHistory, lost
from hermes_agent.learning.curator.plan import Changed, Plan, Step
from hermes_agent.learning.curator.reporting import put_back
from hermes_agent.learning.drafts import Evidence, Waits, draft_of
from hermes_agent.learning.proposing import Proposing
from hermes_agent.skills.changes import Conflict
from hermes_agent.skills.depot import hash_of_folder
from hermes_agent.skills.skill import FILE, Layer, SkillHeader
from hermes_agent.skills.state import Usage, Used
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Claim
from hermes_agent.store.learning.proposals import PART, Why
from hermes_agent.store.versions import Author, Backing, By

PUT_BACK = "Past queries no longer found their skill: restored."


@dataclass(slots=True, kw_only=True)
class Applying:
    """One pass at work. `asks` says that nothing is changed without the owner's yes. What was done before a crash is
    known by its key and not done again."""

    store: Store
    writer: Writer
    usage: Usage
    proposing: Proposing
    claim: Claim
    plan: Plan
    asks: bool
    came: list[Changed] = field(default_factory=list)

    async def all(self) -> None:
        """Every step, in order."""
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
        """Look for what past queries do not find any more, and put back what it is due to; what is lost even then."""
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
    """The steps that touch what this one touches, and so on, the newest first."""
    touched: Collection[str] = set(step.touched)
    found = [step]
    while more := [each for each in standing if each not in found and set(each.touched) & set(touched)]:
        found += more
        touched = {name for each in found for name in each.touched}
    return sorted(found, key=lambda each: -each.number)


def calls_of(step: Step) -> list[dict[str, str]]:
    """A step as calls of `skill_manage`; what is no text stays out."""
    calls: list[dict[str, str]] = []
    for file, content in step.changes.items():
        if file == FILE:
            action = "edit" if step.base else "create"
            calls.insert(0, {"action": action, "name": step.name, "content": content.decode()})
        elif b"\0" not in content:
            text = content.decode("utf-8", "replace")
            calls.append({"action": "write_file", "name": step.name, "file": file, "content": text})
    return [*calls, *({"action": "delete", "name": name} for name in step.gone)]
