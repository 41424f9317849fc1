"""A home with skills of all ages and owners, whose curator lives some days ahead of what was done in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes_agent.app.learning.curating import Curating
from hermes_agent.core.clock import Clock, RandomIds, SystemClock
from hermes_agent.learning.curator.tools import OPENING
from hermes_agent.providers.demo.script import Call, Heard, Piece, Say
from hermes_agent.skills.depot import Usage
from hermes_agent.skills.versions import SkillVersions
from hermes_agent.skills.writing import Writer
from hermes_agent.store.versions import Author, By
from hermes_agent.testing.scripted import Step
from tests.app.place import Place
from tests.learning.harness import learning_place
from tests.skills.shelf import skill_text

DAY = 86_400.0
OLD = "skills:\n  creation_nudge_interval: 0\nmemory:\n  nudge_interval: 0\n"
QUIET = f"{OLD}curator:\n  min_idle_hours: 0\n"


class Shifted(SystemClock):
    """The machine's clock, some days off."""

    def __init__(self, days: float) -> None:
        self.days = days

    def now(self) -> float:
        return super().now() + self.days * DAY


@dataclass
class Upkeep:
    """The script of a model that talks, and that looks after skills: by how often it has spoken there."""

    steps: Sequence[Step] = (Say("Nothing to do."),)
    talk: Callable[[Heard], Step] = lambda heard: Say("Done.")
    asked: int = 0

    def __call__(self, heard: Heard) -> Step:
        began = next((n for n, m in enumerate(heard.messages) if OPENING in m.text), None)
        if began is None:
            return self.talk(heard)
        self.asked += 1
        spoken = sum(message.role == "assistant" for message in heard.messages[began:])
        return self.steps[spoken] if spoken < len(self.steps) else Say("Done: I deleted 14 skills and wrote 9.")


def loads(heard: Heard) -> Step:
    """A conversation in which "do the X thing" loads what was asked for, as `X: words`."""
    said = next(m.text for m in reversed(heard.messages) if m.role == "user" and ": " in m.text)
    name = said.partition(": ")[0].strip()
    last = heard.messages[-1]
    return Say("It is done.") if last.role == "tool" else Call("skill_view", {"name": name})


@dataclass
class Kept:
    """A home and its curator."""

    here: Place
    root: Path

    @property
    def curating(self) -> Curating:
        return self.here.runtime.learner.work.curating

    def writer(self, days: float = 0.0) -> Writer:
        """What writes as of so many days from now."""
        store = self.here.runtime.store
        library = self.here.runtime.skills.library
        versions = SkillVersions(store, Shifted(days), library.places.home)
        return Writer(library=library, versions=versions, ids=RandomIds())

    async def make(
        self,
        name: str,
        body: str = "1. Do it.",
        *,
        days: float = 0.0,
        author: Author = Author.BACKGROUND,
        description: str = "",
        category: str = "",
    ) -> None:
        """A skill that was made so many days from now."""
        text = skill_text(name, description, body)
        await self.writer(days).create(name, text, By(author=author), category)

    async def used(self, name: str, days: float) -> None:
        await Usage(self.here.runtime.skills.home, Shifted(days)).count(name, "uses")

    async def ask(self, name: str, words: str) -> None:
        """A conversation in which a person asked for something, and that skill was loaded."""
        await self.here.say(f"{name}: {words}")

    def ahead(self, days: float) -> None:
        """The curator lives so many days from now on."""
        self.here.runtime.snapshots.now.needs.put(Clock, Shifted(days))
        self.here.runtime.learner.__dict__.pop("work", None)

    def tree(self) -> dict[str, bytes]:
        """Every file of a skill, by its path, with whether it may be run."""
        found = {}
        for path in sorted(self.here.runtime.skills.home.rglob("*")):
            name = path.relative_to(self.here.runtime.skills.home).as_posix()
            if path.is_file() and not any(part.startswith(".") for part in name.split("/")):
                found[name] = b"x" * bool(path.stat().st_mode & 0o100) + path.read_bytes()
        return found

    async def found(self, words: str, shown: int = 5) -> list[str]:
        library = self.here.runtime.skills.library
        await library.forget()
        return [card.name for card in await library.candidates(words, limit=shown)]


@asynccontextmanager
async def kept_home(folder: Path, script: Upkeep | None = None, *, more: str = OLD) -> AsyncIterator[Kept]:
    async with learning_place(folder, script or Upkeep(), more=more) as here:  # type: ignore[arg-type]  # a script too
        yield Kept(here=here, root=folder / "home")


def join(into: str, *absorbs: str, content: str = "", keep: Sequence[str] = (), why: str = "They overlap.") -> Piece:
    arguments: dict[str, object] = {"into": into, "absorbs": list(absorbs), "content": content, "why": why}
    return Call("skill_join", {**arguments, "keep": list(keep)})


def points(name: str, each: int = 2) -> Piece:
    names = ("trigger", "steps", "pitfalls", "check", "scope", "brief")
    return Call("skill_grade", {"name": name, "points": dict.fromkeys(names, each)})
