"""What the tests of skills share: a home with skills, and its library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes_agent.core.clock import SystemClock
from hermes_agent.skills.depot import StateFile
from hermes_agent.skills.library import Library
from hermes_agent.skills.skill import Occasion, Places
from hermes_agent.store.skills_index import SkillsIndex


def skill_text(name: str, description: str = "", body: str = "Do it.", more: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description or f'Does {name}. Use it to {name}.'}\n{more}---\n\n{body}\n"


def put(root: Path, name: str, description: str = "", body: str = "Do it.", more: str = "") -> Path:
    """A skill in a root; its folder."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(skill_text(folder.name, description, body, more))
    return folder


@dataclass
class Shelf:
    """A library over the folders `home`, `bundled` and `external` of a temporary folder; `work` is a workspace."""

    root: Path
    library: Library

    def folder(self, layer: str) -> Path:
        return self.root / layer


@asynccontextmanager
async def shelf(root: Path, **more: object) -> AsyncIterator[Shelf]:
    index = SkillsIndex(root / "skills.db")
    places = Places(home=root / "home", external=(str(root / "external"),), bundled=root / "bundled")
    library = Library(index=index, places=places, state=StateFile(root / "home"), clock=SystemClock(), **more)
    try:
        yield Shelf(root=root, library=library)
    finally:
        await library.close()


async def terminal(_: str) -> Occasion:
    """Every session is at the terminal."""
    return Occasion()
