"""The plan of a curator pass, stored whole before anything is changed, so that a killed pass continues; the skills
as the curator sees them, and the curator's state between passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import PRIVATE_FOLDER, write_private
from hermes_agent.learning.curator.history import QueryHistory, ordered
from hermes_agent.learning.settings import CuratorSettings
from hermes_agent.skills.depot import JsonFile, Usage, Used, hash_of_folder, whole
from hermes_agent.skills.invoke import bundles_of
from hermes_agent.skills.skill import FILE, Layer, SkillHeader
from hermes_agent.skills.versions import Owner
from hermes_agent.skills.writing import Writer
from hermes_agent.store.versions import UNTOUCHED, Kind, Version, VersionState


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """Grade of a skill by the curator's model: points by criterion, when it was given (seconds since 1970), and the
    hash of the skill that it is for."""

    hash: str
    points: dict[str, int]
    at: float


class CuratorJournal(msgspec.Struct, frozen=True, kw_only=True):
    """State of the curator between passes.

    `passed` is when the last pass ended, `looked` when the first (read-only) one did, `asked` when a model was
    last asked (0: never); `mended` is the fingerprint of the library after the model's work. `ages` are those of
    skills that are not active, as last reported; `since` restarts the age of skills that a person brought back;
    `apart` are pairs that a person separated again.
    """

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
    """The JSON file with the curator's state, `skills/.curator.json`."""

    def __init__(self, skills: Path) -> None:
        super().__init__(skills / ".curator.json", CuratorJournal, CuratorJournal())


def paused(said: bool) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that pauses or resumes curator passes."""
    return lambda old: msgspec.structs.replace(old, paused=said)


def brought_back(names: Iterable[str], at: float) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that restarts the age of these skills, because a person wants them."""
    wanted = dict.fromkeys(names, at)

    def change(old: CuratorJournal) -> CuratorJournal:
        ages = {name: age for name, age in old.ages.items() if name not in wanted}
        return msgspec.structs.replace(old, since={**old.since, **wanted}, ages=ages)

    return change


def kept_apart(pairs: Iterable[tuple[str, str]]) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that marks these pairs as separate."""
    return lambda old: msgspec.structs.replace(old, apart=tuple(dict.fromkeys((*old.apart, *map(ordered, pairs)))))


DAY = 86_400.0
ALL = 100_000
BATCH = 20
# What a person does to a skill without writing anything of it.
JUDGED = frozenset({"archive", "restore", "undo"})


class Age(StrEnum):
    """Age class of a skill by the time for which it was unused: `stale` skills are reported, `archived` ones are
    put aside."""

    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"


class Whose(StrEnum):
    """Owner of a skill for the curator. `ours`: made by the agent unasked and never edited by a person; `installed`:
    a copy from elsewhere."""

    OURS = "ours"
    PERSON = "person"
    INSTALLED = "installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A skill of the home as the curator sees it. `hash` covers all its files, `last` is when it was created or last
    used, `bundle` one that names it."""

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
        """Why the curator may not change it; empty where it may."""
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
        """Days since its last use."""
        return max(0.0, now - self.last) / DAY

    def age(self, now: float, settings: CuratorSettings) -> Age:
        """Its age by that, whoever owns it."""
        if self.unused(now) >= settings.archive_after_days:
            return Age.ARCHIVED
        return Age.STALE if self.unused(now) >= settings.stale_after_days else Age.ACTIVE


async def survey(
    writer: Writer, usage: Usage, journal_file: CuratorJournal, seen: Mapping[str, float] | None = None
) -> list[Candidate]:
    """Every skill of the home by name; `seen` gives the last load in a conversation."""
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
        each.change.author in UNTOUCHED
        and each.change.action not in JUDGED
        and not each.change.action.startswith("revert")
        and not each.change.key.endswith(".rolled")
        for each in versions
    )


PLAN, RUN, REPORT = "plan.json", "run.json", "REPORT.md"


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a skill's age class: active, stale, archived."""

    name: str
    was: str
    now: str
    days: int


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One planned change of a curator pass.

    `unused` archives `name`; `patch` changes its files; `join` changes `name` (or creates it, where `base` is
    empty) to cover the skills that it `absorbs` (name to hash), and archives those. `base` is the hash that `name`
    must still have; `protected` steps change what a person wrote or pinned, and become proposals.
    """

    number: int
    kind: Literal["unused", "patch", "join"]
    name: str
    base: str = ""
    changes: dict[str, bytes] = {}
    runs: tuple[str, ...] = ()
    absorbs: dict[str, str] = {}
    why: str = ""
    protected: bool = False

    @property
    def gone(self) -> tuple[str, ...]:
        """The skills that it archives."""
        return (self.name,) if self.kind == "unused" else tuple(self.absorbs)

    @property
    def touched(self) -> tuple[str, ...]:
        """Every skill that it changes."""
        return (self.name,) if self.kind == "unused" else (self.name, *self.absorbs)

    def came(self, state: State, reason: str = "", waits: Iterable[str] = (), diff: str = "") -> Changed:
        """Its outcome."""
        absorbs = tuple(self.absorbs)
        return Changed(
            kind=self.kind,
            name=self.name,
            absorbs=absorbs,
            state=state,
            reason=reason,
            why=self.why,
            waits=tuple(waits),
            diff=diff,
        )


State = Literal["done", "skipped", "waits", "back", "would"]


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one step of a curator pass. `why` is the model's reason for the person; `versions` are those of
    the ledger, `diff` their difference."""

    kind: str
    name: str
    absorbs: tuple[str, ...] = ()
    state: State = "skipped"
    reason: str = ""
    why: str = ""
    waits: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    diff: str = ""


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """A refused tool call of the curator's model, with the reason."""

    call: str
    reason: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a curator pass. `past` are the past queries that found their skill when the plan was made; with
    `looks` the pass is a dry run. `considered` are the overlaps that reviews reported, `seen` those of them that
    were confirmed. `failed` says why the model's part ended early; `said` is the model's last text, which nothing
    relies on."""

    job: str
    at: float
    looks: bool
    moves: tuple[Move, ...] = ()
    past: tuple[QueryHistory, ...] = ()
    steps: tuple[Step, ...] = ()
    ratings: dict[str, Rating] = {}
    groups: tuple[tuple[str, ...], ...] = ()
    considered: tuple[tuple[str, ...], ...] = ()
    seen: tuple[tuple[str, ...], ...] = ()
    denied: tuple[Denied, ...] = ()
    model: str = ""
    failed: str = ""
    said: str = ""


def keep(plan: Plan, folder: Path) -> None:
    """Save the plan of a pass. Blocks."""
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    write_private(folder / PLAN, msgspec.json.encode(plan))


def kept(folder: Path) -> Plan | None:
    """The saved plan; None where it is missing or incomplete. Blocks."""
    return whole(folder / PLAN, Plan)
