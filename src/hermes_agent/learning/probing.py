"""Re-checks learned constraints: one whose check passes, that expired, or that newer ones displace is retired, by a
version in the ledger that can be undone."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, Protected
from hermes_agent.core.messages import ToolCall
from hermes_agent.learning.constraints import Constraint, added, cut_out, ends_at, guessed_check, sort_of
from hermes_agent.learning.drafts import Draft, Evidence, OtherWriters, Waits, Writers, draft_of
from hermes_agent.learning.proposing import Proposing
from hermes_agent.learning.settings import LearningSettings
from hermes_agent.memory.entries import decoded, entries_of
from hermes_agent.memory.settings import is_shared, target_of
from hermes_agent.skills.skill import FILE
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Job
from hermes_agent.store.learning.lessons import Lesson, LessonState, Sort
from hermes_agent.store.learning.proposals import Why
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Author, Backing, Kind, Version, VersionState

log = logging.getLogger(__name__)

AUTHORS = frozenset({Author.FOREGROUND, Author.BACKGROUND, Author.CURATOR})
"""Whose lines are taken for lessons: what a person wrote, or installed, is not checked and runs nothing."""
HOUR = 3600.0
AT_ONCE = 500
WHY = {
    LessonState.PASSED: "its check passes now",
    LessonState.EXPIRED: "it expired",
    LessonState.CROWDED: "newer ones took its place",
}

Checks = Callable[[str, str], Awaitable[bool]]
"""Whether a check passes now: the command, or `tool NAME`, and the folder of the conversation that it is from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """Message about a constraint that was retired, or (`waits`) that the owner has to decide about, and the
    principal to tell."""

    words: str
    whose: str
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """Re-checks learned constraints: handles learning jobs of the kind `probe`. `passes` runs a check."""

    store: Store
    clock: Clock
    settings: LearningSettings
    hands_of: Callable[[Session], Writers]
    proposing: Proposing
    passes: Checks

    async def __call__(self, claim: Claim) -> Account:
        """Take up what the ledger brought, then look at what is due, and at what is too many."""
        await self._sweep()
        told: list[ProbeReport] = []
        for lesson in await self.store.lessons.due(self.clock.now()):
            await self.store.learning.check(claim)
            told += await self._probe(lesson, claim)
        for lesson in await self._crowded():
            await self.store.learning.check(claim)
            told += await self._retire(lesson, LessonState.CROWDED, claim)
        waiting = sum(each.waits for each in told)
        return Account(kept=len(told) - waiting, waiting=waiting, note=await self._note(told, claim.job))

    async def _note(self, told: Sequence[ProbeReport], job: Job) -> str:
        """What the conversation is told: its own person's lessons word for word, and of others that there were some."""
        here = await self.store.sessions.get(job.session)
        alone = here is not None and not is_shared(here.conversation)
        mine = [each.words for each in told if alone and each.whose == job.principal]
        others = len(told) - len(mine)
        more = [f"{others} {'more' if mine else 'lessons'} (`/learn log`)"] if others else []
        return f"Retired: {'; '.join([*mine, *more])}." if told else ""

    async def _sweep(self) -> None:
        """Find the constraints in what agents wrote since the last time."""
        for number in await self.store.lessons.after(AT_ONCE):
            version = await self.store.versions.get(number)
            if version is not None and version.state is VersionState.INTENDED and self._is_fresh(version):
                return  # It is being written just now.
            await self.store.lessons.sweep(number, self._brought(version) if version else [])

    def _is_fresh(self, version: Version) -> bool:
        return self.clock.now() - version.change.at < HOUR

    def _brought(self, version: Version) -> list[Lesson]:
        change = version.change
        if version.state is not VersionState.DONE or change.author not in AUTHORS or change.after is None:
            return []
        before, after = _text(change.kind, change.before), _text(change.kind, change.after)
        found = [(line, _sort_of(line)) for line in added(change.kind, before, after)]
        return [self._lesson(version, line, sort) for line, sort in found if sort]

    def _lesson(self, version: Version, line: Constraint, sort: Sort) -> Lesson:
        change, mark = version.change, line.mark
        expires = ends_at(mark.until) if mark else None
        if sort is Sort.AVOID and mark is None:
            expires = change.at + self.settings.constraint_days * 24 * HOUR
        soon = change.at + self.settings.probe_hours * HOUR
        return Lesson(
            sort=sort,
            kind=change.kind,
            item=change.item,
            line=line.whole,
            probe=mark.check if mark else guessed_check(line),
            version=version.id,
            session=change.session,
            principal=change.principal,
            at=change.at,
            expires=expires,
            next=soon if expires is None else min(soon, expires),
        )

    async def _crowded(self) -> Sequence[Lesson]:
        """The oldest of too many from one person's conversations; a person's own rules are never."""
        counts: Counter[str] = Counter()
        over: list[Lesson] = []
        for lesson in await self.store.lessons.live():
            if lesson.sort is not Sort.PREFER:
                counts[lesson.principal] += 1
                over += [lesson] if counts[lesson.principal] > self.settings.max_constraints else []
        return over

    async def _probe(self, lesson: Lesson, claim: Claim) -> list[ProbeReport]:
        """Look at one that is due; a word for the person where it ended, else nothing."""
        now = self.clock.now()
        if lesson.expires is not None and lesson.expires <= now:
            return await self._retire(lesson, LessonState.EXPIRED, claim)
        record = await self._record(lesson)
        if lesson.probe and await self.passes(lesson.probe, record.workspace):
            return await self._retire(lesson, LessonState.PASSED, claim)
        later = now + self.settings.probe_hours * HOUR
        if await self._draft(lesson, record, claim) is None:
            await self.store.lessons.end(lesson.id, LessonState.GONE, now)
        else:
            await self.store.lessons.postpone(lesson.id, min(later, lesson.expires or later))
        return []

    async def _retire(self, lesson: Lesson, state: LessonState, claim: Claim) -> list[ProbeReport]:
        """Take the line out of its file; a word for the person, empty where it was out already or cannot be."""
        record, now = await self._record(lesson), self.clock.now()
        draft = await self._draft(lesson, record, claim)
        if draft is None:
            await self.store.lessons.end(lesson.id, LessonState.GONE, now)
            return []
        hands, why = self.hands_of(record), WHY[state]
        evidence = Evidence(review=claim.job.id, through="probe", sort=lesson.sort.value).text
        backing = Backing(evidence=evidence, note=f"retired: {why}")
        context = OtherWriters(
            key=draft.key, session=lesson.session, workspace=record.workspace, speaker=lesson.principal
        )
        try:
            if self.settings.mode == "propose":
                raise Protected("You want to be asked.")
            await hands.tools(backing)[draft.call.name].run(draft.call.arguments, context)
        except Protected as error:
            asked = self.settings.mode == "propose"
            waits = Waits(why=Why.ASKED if asked else Why.PROTECTED, taint="" if asked else str(error))
            job = replace(claim.job, session=lesson.session, principal=lesson.principal)
            number = await self.proposing.put(draft, waits, job, evidence, await hands.content(draft))
            await self.store.lessons.end(lesson.id, LessonState.PROPOSED, now)
            words = f"p{number} would retire {_named(lesson)}: {why}"
            return [ProbeReport(words=words, whose=lesson.principal, waits=True)]
        except HermesError as error:
            log.warning("the lesson %d cannot be retired: %s", lesson.id, error)
            await self.store.lessons.postpone(lesson.id, now + 24 * HOUR)
            return []
        version = await self.store.versions.by_key(draft.key)
        number = version.id if version else 0
        await self.store.lessons.end(lesson.id, state, now, number)
        words = f"{_named(lesson)}: {why} (undo: /learn undo {number})"
        return [ProbeReport(words=words, whose=lesson.principal)]

    async def _record(self, lesson: Lesson) -> Session:
        """The conversation that it is from, with the person whose it is (in a group there are others)."""
        found = await self.store.sessions.get(lesson.session)
        if found is not None:
            return replace(found, principal=lesson.principal or found.principal)
        return Session(
            id=lesson.session,
            principal=lesson.principal,
            conversation="",
            surface="",
            created=lesson.at,
            updated=lesson.at,
        )

    async def _draft(self, lesson: Lesson, record: Session, claim: Claim) -> Draft | None:
        """The call that takes the line out; None where it stands there no more."""
        key = f"{claim.job.id}.lesson.{lesson.id}"
        draft = draft_of(ToolCall(id="", name=_tool(lesson), arguments=_arguments(lesson, lesson.line)), "", key)
        assert draft is not None
        text = _text(lesson.kind, await self.hands_of(record).content(draft))
        if lesson.kind is Kind.MEMORY:
            return draft if lesson.line in entries_of(text) else None
        if not (lines := cut_out(text, lesson.line)):
            return None
        line = lines[0]
        # As a whole line where it is one: the same words may be part of another.
        old, new = (f"\n{line}\n", "\n") if f"\n{line}\n" in text else (line, "")
        return draft_of(ToolCall(id="", name=_tool(lesson), arguments=_arguments(lesson, old, new)), "", key)


def _sort_of(line: Constraint) -> Sort | None:
    """What a line is; that something never works, which the agent noted by itself, ends too."""
    return Sort.AVOID if line.mark is None and line.fails_ever else sort_of(line)


def _tool(lesson: Lesson) -> str:
    return "memory" if lesson.kind is Kind.MEMORY else "skill_manage"


def _arguments(lesson: Lesson, line: str, left: str = "") -> dict[str, object]:
    if lesson.kind is Kind.MEMORY:
        return {"action": "remove", "target": target_of(lesson.item).value, "old_text": line}
    name, _, file = lesson.item.partition("/")
    more = {} if file == FILE else {"file": file}
    return {"action": "patch", "name": name, "old_string": line, "new_string": left, "replace_all": True, **more}


def _text(kind: Kind, content: bytes | None) -> str:
    return decoded(content) if kind is Kind.MEMORY else (content or b"").decode("utf-8", "replace")


def _named(lesson: Lesson) -> str:
    words = lesson.line.partition(" [in: ")[0].strip("-* ")
    item = lesson.item.removesuffix("/SKILL.md")
    return f'{lesson.kind.value} `{item}`, "{words if len(words) <= 80 else f"{words[:79]}…"}"'
