"""Where the curator stands: its last pass and the next, and each skill as it sees it."""

from __future__ import annotations

import msgspec

from hermes_agent.core.clock import moment
from hermes_agent.learning.curator.candidates import Age, Candidate
from hermes_agent.learning.curator.journal import CuratorJournal
from hermes_agent.learning.curator.rubric import grade
from hermes_agent.learning.settings import CuratorSettings


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as `status` tells it; `age` is empty where the curator leaves it alone, and `why_not` says why."""

    name: str
    age: str
    days: int
    pinned: bool
    grade: str
    why_not: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Times are seconds since 1970; `due` None: no pass begins by itself. `empty` passes of the model in a row brought
    nothing, which makes room between them. `overlaps` are skills that reviews saw overlap, for the next pass."""

    enabled: bool
    paused: bool
    passed: float
    due: float | None
    empty: int
    last: str
    skills: tuple[Row, ...]
    overlaps: tuple[tuple[str, ...], ...]
    archived: tuple[str, ...]

    @property
    def when(self) -> str:
        """In a sentence or two: when the last pass was, and when the next is."""
        last = f"The last pass ended {moment(self.passed)} ({self.last})." if self.passed else "No pass has ended yet."
        if self.paused:
            return f"Paused. {last}"
        if self.due is None:
            return f"Automatic passes are off (`curator.enabled`, `learning.mode`). {last}"
        due = f"The next is due {moment(self.due)}" if self.due else "The first, which only reports, is due"
        empty = f" {self.empty} in a row changed nothing: Hermes asks a model less often." if self.empty > 1 else ""
        return f"{last} {due}, once nobody talks.{empty}"

    @property
    def lines(self) -> list[str]:
        """All of it, a line for each skill."""
        rows = [
            f"- {each.name}: {each.age or each.why_not}, {each.days} days unused"
            + (f", {each.grade}" if each.grade else "")
            for each in self.skills
        ]
        pairs = ", ".join(" + ".join(names) for names in self.overlaps)
        rows += [f"Overlapping, for the next pass: {pairs}"] if pairs else []
        return [self.when, *rows, *([f"Archived: {', '.join(self.archived)}"] if self.archived else [])]


def row(candidate: Candidate, journal_file: CuratorJournal, settings: CuratorSettings, now: float) -> Row:
    """A skill as `status` tells it."""
    rating, age = journal_file.ratings.get(candidate.name), candidate.age(now, settings)
    shown = "due to be archived" if age is Age.ARCHIVED else str(age)
    return Row(
        name=candidate.name,
        age=shown if candidate.is_ours else "",
        days=int(candidate.unused(now)),
        pinned=candidate.pinned,
        grade=grade(rating.points) if rating and rating.hash == candidate.hash else "",
        why_not=candidate.why_not,
    )
