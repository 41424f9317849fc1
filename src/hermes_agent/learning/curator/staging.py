"""Staging copy of the library: the curator plans there, and each change is checked against all past queries."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.core.messages import ToolCall
from hermes_agent.host.paths import PRIVATE_FOLDER
from hermes_agent.learning.curator.history import QueryHistory, lost
from hermes_agent.learning.curator.plan import Candidate, Rating, Step
from hermes_agent.learning.drafts import Draft, Gate, Passed, Returned
from hermes_agent.learning.proposing import LessonGate
from hermes_agent.learning.sources import Sources
from hermes_agent.skills.depot import Content, Files, hash_of_files, text_or_none
from hermes_agent.skills.format import read
from hermes_agent.skills.library import Library, indexed
from hermes_agent.skills.skill import FILE, Root, found_in
from hermes_agent.store.skills_index import Indexed, SkillsIndex
from hermes_agent.store.versions import Kind

BATCH = 200
DAY = 86_400.0
NAME = "curator-"
"""What the folders of trials begin with."""


class Trial:
    """A search index of the staged skills: answers what a query would find after the planned changes. `back` reverts
    a change."""

    def __init__(self, library: Library, folder: Path) -> None:
        self._library, self._folder = library, folder
        self._index = SkillsIndex(folder / "skills.db")
        self._rows: dict[str, Indexed | None] = {}
        self._roots: tuple[Root, ...] = ()
        self._hidden: frozenset[str] = frozenset()

    async def open(self) -> None:
        """Index all skills of the home, and the bundled ones."""
        await asyncio.to_thread(_made_anew, self._folder)
        places = self._library.places
        self._roots = await asyncio.to_thread(places.roots)
        removed = (await asyncio.to_thread(self._library.state.get)).removed
        self._hidden = frozenset(str(places.bundled / name) for name in removed)
        for root in self._roots:
            rows = await asyncio.to_thread(_all_in, root)
            self._rows.update({row.folder: row for row in rows})
            for first in range(0, len(rows), BATCH):
                await self._index.update(rows[first : first + BATCH])

    async def close(self) -> None:
        """Delete the index."""
        await self._index.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def finds(self, query: str, shown: int) -> Sequence[str]:
        """See `Finds`."""
        rows = await self._index.search(query, [root.key for root in self._roots], shown * 2)
        disabled = self._library.disabled
        return [row.name for row in rows if row.folder not in self._hidden and row.name not in disabled][:shown]

    async def change(self, texts: Mapping[Path, str], gone: Sequence[Path] = ()) -> dict[str, Indexed | None]:
        """Set the SKILL.md of these folders and remove the folders `gone`; the previous rows, for `back`."""
        home = str(self._library.places.home)
        rows: dict[str, Indexed | None] = {str(folder): self._row(folder, text, home) for folder, text in texts.items()}
        rows.update(dict.fromkeys(map(str, gone)))
        before = {folder: self._rows.get(folder) for folder in rows}
        await self.back(rows)
        return before

    async def back(self, rows: Mapping[str, Indexed | None]) -> None:
        """Restore these rows (None: no such folder)."""
        self._rows.update(rows)
        await self._index.update([row for row in rows.values() if row is not None], list(rows))

    def _row(self, folder: Path, text: str, home: str) -> Indexed:
        skill = read(text, folder.name)
        category = folder.parent.name if str(folder.parent) != home else ""
        return Indexed(
            folder=str(folder),
            root=home,
            name=skill.name,
            stamp="",
            family=skill.ours.category or category,
            about=" ".join((skill.description, *skill.ours.tags)),
            body=skill.body,
        )


def _made_anew(folder: Path) -> None:
    """An empty folder; those that killed passes left beside it go after a day."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(PRIVATE_FOLDER, parents=True)
    for other in folder.parent.glob(f"{NAME}*"):
        if other.stat().st_mtime + DAY < folder.stat().st_mtime:
            shutil.rmtree(other, ignore_errors=True)


def _all_in(root: Root) -> list[Indexed]:
    return [indexed(root, each) for each in found_in(root)]


@dataclass(slots=True, kw_only=True)
class Staging:
    """The skills as the plan would leave them: `candidates` by name, their `files`, and those that are `gone`
    because unused. Nothing is written to disk."""

    home: Path
    candidates: Mapping[str, Candidate]
    files: dict[str, dict[str, Content]]
    trial: Trial
    past: Sequence[QueryHistory]
    gates: Sequence[Gate]
    apart: Collection[tuple[str, str]] = ()
    gone: set[str] = field(default_factory=set)
    covers: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    ratings: dict[str, Rating] = field(default_factory=dict)

    def here(self, name: str) -> Files:
        """The staged files of a skill. Raises `ToolError` for a missing one."""
        if name in self.covers:
            raise ToolError(f"`{name[:80]}` is part of `{self.covers[name]}` now.")
        if name in self.gone or name not in self.files:
            raise ToolError(f"The home has no skill `{name[:80]}`.", hint="Only those of the list are looked after.")
        return self.files[name]

    def ours(self, name: str) -> Candidate:
        """A skill that the curator may change. Raises `Refused`."""
        self.here(name)
        candidate = self.candidates.get(name)
        if candidate is not None and not candidate.is_ours:
            raise Refused(f"`{name}` is not yours to change: {candidate.why_not}.", hint="Leave it.")
        if candidate is None:
            raise Refused(f"`{name}` was made in this pass: it is finished.")
        return candidate

    def text(self, name: str) -> str:
        """The staged SKILL.md."""
        return (text_or_none(self.here(name)[FILE].content)) or ""

    def words(self, name: str) -> str:
        """The staged text files together."""
        return "\n".join(filter(None, (text_or_none(each.content) for each in self.here(name).values())))

    def hash(self, name: str) -> str:
        """Hash of the staged files."""
        return hash_of_files(self.here(name))

    def folder(self, name: str) -> Path:
        """The present or future folder of a skill."""
        return self.candidates[name].header.path if name in self.candidates else self.home / name

    async def judged(self, name: str, new: str, known: str, action: str) -> None:
        """Run a review's gates on the model's words: everything they name must be in the earlier text. Raises
        `Refused`."""
        call = ToolCall(id="", name="skill_manage", arguments={"action": action, "name": name, "content": new})
        draft = Draft(call=call, kind=Kind.SKILL, action=action, item=name, new=new, cited=(), key="", known=known)
        for gate in (*self.gates, LessonGate()):
            verdict = await gate.judge(draft, Sources())
            if isinstance(verdict, Passed):
                continue
            reason = verdict.reason if isinstance(verdict, Returned) else f"It would wait: {verdict.taint}"
            said = reason.replace("The cited messages do not hold", "No skill that it comes from holds")
            raise Refused(said, hint="Add nothing that was not there.")

    async def plan(
        self,
        kind: Literal["patch", "join"],
        name: str,
        changes: Mapping[str, Content],
        *,
        absorbs: Sequence[str] = (),
        why: str = "",
    ) -> Step:
        """Add a step, if every past query still finds its skill or one that covers it. Raises `Refused`."""
        old = self.files.get(name, {})
        changed = {file: each for file, each in changes.items() if old.get(file) != each}
        folders = [self.folder(each) for each in absorbs]
        texts = {self.folder(name): ({**old, **changes}[FILE].content).decode()}
        covers = {**self.covers, **dict.fromkeys(absorbs, name)}
        before = await self.trial.change(texts, folders)
        missing = await lost(self.past, self.trial.finds, covers, self.gone)
        if missing:
            await self.trial.back(before)
            raise Refused(
                missing_report(missing, covers), hint="Its description has to say, in such words, when to use it."
            )
        step = Step(
            number=len(self.steps) + 1,
            kind=kind,
            name=name,
            base=hash_of_files(old) if old else "",
            changes={file: each.content for file, each in changed.items()},
            runs=tuple(sorted(file for file, each in changed.items() if each.runs)),
            absorbs={each: self.hash(each) for each in absorbs},
            why=why,
            protected=name in self.candidates and not self.candidates[name].is_ours,
        )
        self.steps.append(step)
        self.covers = covers
        self.files[name] = {**old, **changes}
        return step

    async def put_aside(self, candidates: Sequence[Candidate], why: Mapping[str, str]) -> None:
        """Add steps that archive unused skills."""
        await self.trial.change({}, [candidate.header.path for candidate in candidates])
        for candidate in candidates:
            number = len(self.steps) + 1
            self.steps.append(
                Step(
                    number=number,
                    kind="unused",
                    name=candidate.name,
                    base=candidate.hash,
                    why=why.get(candidate.name, ""),
                )
            )
            self.gone.add(candidate.name)


def missing_report(missing: Sequence[QueryHistory], covers: Mapping[str, str]) -> str:
    """A sentence about the queries that would find nothing."""
    first = missing[0]
    now = covers.get(first.skill)
    what = f"`{first.skill}`, or `{now}` in its place" if now else f"`{first.skill}`"
    return f"{len(missing)} past queries would no longer find what they found, for instance {what}."
