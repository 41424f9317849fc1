"""The skills of a home as the curator sees them: whose they are, since when nobody used them, and how old that makes
them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.curator.notebook import Notebook
from hermes_agent.learning.settings import CuratorSettings
from hermes_agent.skills.bundles import bundles_of
from hermes_agent.skills.depot.files import files_of_folder, hash_of_files
from hermes_agent.skills.skill import FILE, Card, Layer
from hermes_agent.skills.usage import Usage, Used
from hermes_agent.skills.versions import Owner
from hermes_agent.skills.writing import Writer
from hermes_agent.store.versions import Author, Kind, Version, VersionState

DAY = 86_400.0
ALL = 100_000
BATCH = 20
PERSONS = frozenset({Author.OWNER, Author.MEMBER})
# What a person does to a skill without writing anything of it.
JUDGED = frozenset({"archive", "restore", "undo"})


class Age(StrEnum):
    """How long nobody used a skill: `stale` ones are told, the last ones are put aside."""

    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"


class Whose(StrEnum):
    """`ours`: the agent made it, unasked, and no person wrote in it; `installed`: a copy of what came from
    elsewhere."""

    OURS = "ours"
    PERSON = "person"
    INSTALLED = "installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ward:
    """A skill of the home. `hash` is that of all its files, `last` when it was made or used last, `bundle` one that
    names it."""

    card: Card
    whose: Whose
    pinned: bool
    hash: str
    last: float
    bundle: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.card.name

    @property
    def is_ours(self) -> bool:
        """Whether the curator may change it."""
        return self.whose is Whose.OURS and not self.pinned and not self.bundle

    @property
    def why_not(self) -> str:
        """Why the curator leaves it alone; empty where it does not."""
        if self.pinned:
            return "a person pinned it"
        if self.whose is Whose.OURS and self.bundle:
            return f"the bundle `{self.bundle}` names it"
        words = {
            Whose.OURS: "",
            Whose.PERSON: "it is a person's",
            Whose.INSTALLED: "it is a copy of an installed one",
        }
        return words[self.whose]

    def unused(self, now: float) -> float:
        """Days since it was used last."""
        return max(0.0, now - self.last) / DAY

    def age(self, now: float, settings: CuratorSettings) -> Age:
        """What that makes it, be it the curator's or not."""
        if self.unused(now) >= settings.archive_after_days:
            return Age.ARCHIVED
        return Age.STALE if self.unused(now) >= settings.stale_after_days else Age.ACTIVE

    def place(self, home: Path) -> str:
        """Its folder below that of all skills, with `/`."""
        return self.card.path.relative_to(home).as_posix()


async def survey(
    writer: Writer, usage: Usage, notebook: Notebook, seen: Mapping[str, float] | None = None
) -> list[Ward]:
    """Every skill of the home by name; `seen` says when a conversation loaded them last."""
    await writer.library.forget()
    cards = [card for card in await writer.library.all(limit=ALL) if card.layer is Layer.USER]
    for start in range(0, len(cards), BATCH):  # Whoever writes a skill meanwhile waits for one batch.
        await writer.mend([card.name for card in cards[start : start + BATCH]])
    used, state = await asyncio.to_thread(usage.all), await asyncio.to_thread(writer.library.state.get)
    bundles = await asyncio.to_thread(_in_bundles, writer.home)
    wards = []
    for card in cards:
        first, written = await _history(writer, card.name)
        last = max(used.get(card.name, Used()).last, notebook.since.get(card.name, 0.0), (seen or {}).get(card.name, 0))
        wards.append(
            Ward(
                card=card,
                whose=await _whose(writer, card, written=written),
                pinned=card.name in state.pinned,
                hash=await asyncio.to_thread(hash_of, card.path),
                last=max(last, first),
                bundle=bundles.get(card.name, ""),
            )
        )
    return wards


def _in_bundles(skills: Path) -> dict[str, str]:
    """The skills that bundles name, each with one of these; what is no bundle names none."""
    bundles, found = bundles_of(skills), {}
    for name in bundles.names():
        with suppress(HermesError):
            found.update(dict.fromkeys(bundles.there(name).skills, name))
    return found


def hash_of(folder: Path) -> str:
    """The hash of a skill's files; empty where there are none. Blocks."""
    files = files_of_folder(folder) if folder.is_dir() else {}
    return hash_of_files(files) if files else ""


async def _whose(writer: Writer, card: Card, *, written: bool) -> Whose:
    owner = await writer.owner(card)
    if owner in (Owner.BUNDLED, Owner.HUB):
        return Whose.INSTALLED
    return Whose.PERSON if written or owner is Owner.USER else Whose.OURS


async def _history(writer: Writer, name: str) -> tuple[float, bool]:
    """When a skill was made, and whether a person wrote in it."""
    store = writer.versions.store
    rows = await store.versions.list(Kind.SKILL, f"{name}/{FILE}", limit=ALL)
    done = [row for row in rows if row.state is VersionState.DONE]
    born = min((row.change.at for row in done), default=0.0)
    return born, _is_written(done)


def _is_written(versions: Sequence[Version]) -> bool:
    return any(
        each.change.author in PERSONS
        and each.change.action not in JUDGED
        and not each.change.action.startswith("revert")
        and not each.change.key.endswith(".rolled")
        for each in versions
    )
