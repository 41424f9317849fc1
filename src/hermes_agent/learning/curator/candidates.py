"""The skills of a home as the curator sees them: whose they are, since when nobody used them, and how old that makes
them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.settings import CuratorSettings
from hermes_agent.skills.depot import hash_of_folder
from hermes_agent.skills.invoke import bundles_of
from hermes_agent.skills.skill import FILE, Layer, SkillHeader
from hermes_agent.skills.state import JsonFile, Usage, Used
from hermes_agent.skills.versions import Owner
from hermes_agent.skills.writing import Writer
from hermes_agent.store.versions import Author, Kind, Version, VersionState


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """What a skill of that hash was found to be worth: points by criterion, at a time in seconds since 1970."""

    hash: str
    points: dict[str, int]
    at: float


class CuratorJournal(msgspec.Struct, frozen=True, kw_only=True):
    """`passed` is when the last pass ended, `looked` when the first did, which only looks, `asked` when a model was
    asked last (0: never); `mended` is the library as it left it. `ages` are those of the names that are not active, as
    last told; `since` says from when on a skill's age counts, where a person brought it back; `apart` are skills that a
    person took apart again."""

    paused: bool = False
    looked: float = 0.0
    passed: float = 0.0
    asked: float = 0.0
    mended: str = ""
    ages: dict[str, str] = {}
    since: dict[str, float] = {}
    ratings: dict[str, Rating] = {}
    apart: tuple[tuple[str, str], ...] = ()


class JournalFile(JsonFile[CuratorJournal]):
    """The notebook of one home."""

    def __init__(self, skills: Path) -> None:
        super().__init__(skills / ".curator.json", CuratorJournal, CuratorJournal())


def paused(said: bool) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that stops passes, or lets them go on."""
    return lambda old: msgspec.structs.replace(old, paused=said)


def brought_back(names: Iterable[str], at: float) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that counts the age of these anew: a person wants them."""
    wanted = dict.fromkeys(names, at)

    def change(old: CuratorJournal) -> CuratorJournal:
        ages = {name: age for name, age in old.ages.items() if name not in wanted}
        return msgspec.structs.replace(old, since={**old.since, **wanted}, ages=ages)

    return change


def kept_apart(pairs: Iterable[tuple[str, str]]) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that keeps these apart from now on."""
    return lambda old: msgspec.structs.replace(old, apart=tuple(dict.fromkeys((*old.apart, *map(ordered, pairs)))))


def ordered(pair: tuple[str, str]) -> tuple[str, str]:
    """Two names as a pair, whichever comes first."""
    one, other = sorted(pair)
    return one, other


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
class Candidate:
    """A skill of the home. `hash` is that of all its files, `last` when it was made or used last, `bundle` one that
    names it."""

    header: SkillHeader
    whose: Whose
    pinned: bool
    hash: str
    last: float
    bundle: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.header.name

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


async def survey(
    writer: Writer, usage: Usage, journal_file: CuratorJournal, seen: Mapping[str, float] | None = None
) -> list[Candidate]:
    """Every skill of the home by name; `seen` says when a conversation loaded them last."""
    await writer.library.forget()
    headers = [header for header in await writer.library.all(limit=ALL) if header.layer is Layer.USER]
    for start in range(0, len(headers), BATCH):  # Whoever writes a skill meanwhile waits for one batch.
        await writer.mend([header.name for header in headers[start : start + BATCH]])
    used, state = await asyncio.to_thread(usage.all), await asyncio.to_thread(writer.library.state.get)
    bundles = await asyncio.to_thread(_in_bundles, writer.home)
    candidates = []
    for header in headers:
        first, written = await _history(writer, header.name)
        last = max(
            used.get(header.name, Used()).last,
            journal_file.since.get(header.name, 0.0),
            (seen or {}).get(header.name, 0),
        )
        candidates.append(
            Candidate(
                header=header,
                whose=await _whose(writer, header, written=written),
                pinned=header.name in state.pinned,
                hash=await asyncio.to_thread(hash_of_folder, header.path),
                last=max(last, first),
                bundle=bundles.get(header.name, ""),
            )
        )
    return candidates


def _in_bundles(skills: Path) -> dict[str, str]:
    """The skills that bundles name, each with one of these; what is no bundle names none."""
    bundles, found = bundles_of(skills), {}
    for name in bundles.names():
        with suppress(HermesError):
            found.update(dict.fromkeys(bundles.there(name).skills, name))
    return found


async def _whose(writer: Writer, header: SkillHeader, *, written: bool) -> Whose:
    owner = await writer.owner(header)
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
