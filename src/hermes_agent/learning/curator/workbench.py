"""Where a pass plans: the home's skills as they would be, with a check of every change against all past queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.core.messages import ToolCall
from hermes_agent.learning.curator.notebook import Rating
from hermes_agent.learning.curator.past import Past, lost
from hermes_agent.learning.curator.plan import Step
from hermes_agent.learning.curator.trial import Trial
from hermes_agent.learning.curator.wards import Ward
from hermes_agent.learning.drafts import Draft, Gate, Passed, Returned
from hermes_agent.learning.sources import Sources
from hermes_agent.skills.depot.files import Content, Files, hash_of_files, text_or_none
from hermes_agent.skills.skill import FILE
from hermes_agent.store.versions import Kind


@dataclass(slots=True, kw_only=True)
class Workbench:
    """`wards` are the skills of the home by name, `files` theirs as planned, `gone` those that are put aside because
    nobody uses them; nothing here is written anywhere."""

    home: Path
    wards: Mapping[str, Ward]
    files: dict[str, dict[str, Content]]
    trial: Trial
    past: Sequence[Past]
    gates: Sequence[Gate]
    apart: Collection[tuple[str, str]] = ()
    gone: set[str] = field(default_factory=set)
    covers: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    ratings: dict[str, Rating] = field(default_factory=dict)

    def here(self, name: str) -> Files:
        """The files of a skill as planned. Raises `ToolError` for one that is not there, or not any more."""
        if name in self.covers:
            raise ToolError(f"`{name[:80]}` is part of `{self.covers[name]}` now.")
        if name in self.gone or name not in self.files:
            raise ToolError(f"The home has no skill `{name[:80]}`.", hint="Only those of the list are looked after.")
        return self.files[name]

    def ours(self, name: str) -> Ward:
        """A skill that may be changed. Raises `Refused`."""
        self.here(name)
        ward = self.wards.get(name)
        if ward is not None and not ward.is_ours:
            raise Refused(f"`{name}` is not yours to change: {ward.why_not}.", hint="Leave it.")
        if ward is None:
            raise Refused(f"`{name}` was made in this pass: it is finished.")
        return ward

    def text(self, name: str) -> str:
        """SKILL.md as planned."""
        return (text_or_none(self.here(name)[FILE].content)) or ""

    def words(self, name: str) -> str:
        """All files that are text, as planned."""
        return "\n".join(filter(None, (text_or_none(each.content) for each in self.here(name).values())))

    def hash(self, name: str) -> str:
        """Of its files, as planned."""
        return hash_of_files(self.here(name))

    def folder(self, name: str) -> Path:
        """Where it stands, or would."""
        return self.wards[name].card.path if name in self.wards else self.home / name

    async def judged(self, name: str, new: str, known: str, action: str) -> None:
        """What a review's words have to pass, of words here: all that they name stands in what was there. Raises
        `Refused`."""
        call = ToolCall(id="", name="skill_manage", arguments={"action": action, "name": name, "content": new})
        draft = Draft(call=call, kind=Kind.SKILL, action=action, item=name, new=new, cited=(), key="", known=known)
        for gate in self.gates:
            verdict = await gate.judge(draft, Sources.of(()))
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
        """Add a change, where every past query finds what it found, or what covers that. Raises `Refused`."""
        old = self.files.get(name, {})
        changed = {file: each for file, each in changes.items() if old.get(file) != each}
        folders = [self.folder(each) for each in absorbs]
        texts = {self.folder(name): ({**old, **changes}[FILE].content).decode()}
        covers = {**self.covers, **dict.fromkeys(absorbs, name)}
        await self.trial.change(texts, folders)
        missing = await lost(self.past, self.trial.finds, covers, self.gone)
        if missing:
            await self.trial.back([self.folder(name), *folders])
            raise Refused(told(missing, covers), hint="Its description has to say, in such words, when to use it.")
        self.trial.keep(texts, folders)
        step = Step(
            number=len(self.steps) + 1,
            kind=kind,
            name=name,
            base=hash_of_files(old) if old else "",
            changes={file: each.content for file, each in changed.items()},
            runs=tuple(sorted(file for file, each in changed.items() if each.runs)),
            absorbs={each: self.hash(each) for each in absorbs},
            why=why,
            protected=name in self.wards and not self.wards[name].is_ours,
        )
        self.steps.append(step)
        self.covers = covers
        self.files[name] = {**old, **changes}
        return step

    async def put_aside(self, wards: Sequence[Ward], why: Mapping[str, str]) -> None:
        """Plan to put aside what nobody uses."""
        await self.trial.change({}, [ward.card.path for ward in wards])
        self.trial.keep({}, [ward.card.path for ward in wards])
        for ward in wards:
            number = len(self.steps) + 1
            self.steps.append(
                Step(number=number, kind="unused", name=ward.name, base=ward.hash, why=why.get(ward.name, ""))
            )
            self.gone.add(ward.name)


def told(missing: Sequence[Past], covers: Mapping[str, str]) -> str:
    """Which queries would find nothing."""
    first = missing[0]
    now = covers.get(first.skill)
    what = f"`{first.skill}`, or `{now}` in its place" if now else f"`{first.skill}`"
    return f"{len(missing)} past queries would no longer find what they found, for instance {what}."
