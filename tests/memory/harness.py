"""A home with notes, and calls of the tool as the loop makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hermes_agent.core.clock import RandomIds
from hermes_agent.core.effects import Location
from hermes_agent.host.paths import Home
from hermes_agent.memory.notes import Notes
from hermes_agent.memory.settings import MemorySettings, Person, Target
from hermes_agent.store.database import Store
from hermes_agent.store.facts.facts import Source
from hermes_agent.store.versions import Author, By
from hermes_agent.testing.clock import FakeClock

OWNER = Person(key="cli:ann", owner=True)
AGENT = By(author=Author.FOREGROUND, principal="cli:ann", session="s1", first=1, last=2)
TOLD = Source(author=Author.FOREGROUND, principal="cli:ann", session="s1", first=1, last=2)
ME = By(author=Author.OWNER, principal="cli:ann")
MEMORY = Target.MEMORY


def notes_in(folder: Path, store: Store, settings: MemorySettings | None = None) -> Notes:
    home = Home(root=folder / "home", base=folder / "home").ensure()
    return Notes(home=home, store=store, clock=FakeClock(), ids=RandomIds(), settings=settings or MemorySettings())


async def told(_: object) -> Source:
    """Who changes a fact, whatever the call."""
    return TOLD


def save(notes: Notes, text: str | bytes, item: str = "MEMORY.md") -> None:
    """What a person's editor does: a new file in the place of the old one."""
    path = notes.path(item)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name("editor")
    draft.write_bytes(text.encode() if isinstance(text, str) else text)
    draft.replace(path)


@dataclass
class Call:
    """A `CallContext` of whoever speaks."""

    speaker: str = "cli:ann"
    session: str = "s1"
    call: str = "call_1"
    workspace: str = "/"
    attach: bool = False
    begun_at: Location = field(default_factory=Location)
    run: str = ""

    @property
    def key(self) -> str:
        return f"{self.session}-{self.call}" if self.call else ""

    def ends(self) -> bool:
        return True

    def seconds_left(self) -> float | None:
        return None

    def progress(self, text: str) -> None: ...

    async def hold(self, handle: str) -> None:
        raise AssertionError

    async def ask(self, question: object) -> str:
        raise AssertionError
