"""Installs and uninstalls skills: fetched, inspected, then enabled by one write of the lock file."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.locks import held
from hermes_agent.scanner.finding import Severity
from hermes_agent.scanner.scan import scan
from hermes_agent.skills.depot import (
    Depot,
    Entry,
    Files,
    Lock,
    Locked,
    State,
    Trust,
    base_of,
    files_of_folder,
    hash_of_files,
    pinned,
    put,
    retire,
    text_or_none,
    without,
)
from hermes_agent.skills.format import BadSkill, read
from hermes_agent.skills.hub.git import HubError
from hermes_agent.skills.hub.sources import Offer, Sources
from hermes_agent.skills.invoke import commands_of
from hermes_agent.skills.skill import FILE, Layer, Skill, SkillHeader
from hermes_agent.skills.versions import Owner, Planned
from hermes_agent.skills.writing import Writer
from hermes_agent.store.versions import Author, By

PROGRAMS = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf")
MOST_PER_FILE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A finding of the scanner in a skill's file; `line` is 0 for the whole file."""

    file: str
    line: int
    severity: Severity
    what: str

    @property
    def words(self) -> str:
        """The finding as one line."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.severity.name.lower()}: {where}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Inspection of a skill: its files in bytes, findings, commands in its text, and executable files."""

    skill: Skill
    sizes: dict[str, int]
    seen: tuple[Seen, ...] = ()
    commands: tuple[str, ...] = ()
    programs: tuple[str, ...] = field(default=())

    def against(self, trust: Trust) -> tuple[str, ...]:
        """Why a skill from a source of that trust is refused unless a person insists."""
        least = Severity.BLOCK if trust is Trust.TRUSTED else Severity.WARN
        return tuple(each.words for each in self.seen if each.severity >= least)


def report(name: str, files: Files) -> Report:
    """Parse and scan a skill. Raises `BadSkill`."""
    skill = read((text_or_none(files[FILE].content) or ""), name)
    seen = [each for file, content in sorted(files.items()) for each in _seen(file, content.content)]
    return Report(
        skill=skill,
        sizes={file: len(each.content) for file, each in sorted(files.items())},
        seen=tuple(sorted(seen, key=lambda each: -each.severity)),
        commands=tuple(commands_of(skill)),
        programs=tuple(file for file, each in sorted(files.items()) if each.runs),
    )


def _seen(file: str, content: bytes) -> list[Seen]:
    if content.startswith(PROGRAMS):
        return [Seen(file=file, line=0, severity=Severity.WARN, what="a program that cannot be read")]
    text = text_or_none(content)
    if text is None:
        return [Seen(file=file, line=0, severity=Severity.NOTE, what=f"no text, {len(content):,} bytes")]
    return [
        Seen(
            file=file,
            line=text.count("\n", 0, each.start) + 1,
            severity=each.severity,
            what=f"{each.category.value}: {each.what}",
        )
        for each in scan(text)[:MOST_PER_FILE]
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A fetched and inspected skill that is not in use yet; a person can look at it in `folder`."""

    name: str
    entry: Entry
    files: Files
    report: Report
    folder: Path

    @property
    def against(self) -> tuple[str, ...]:
        """Why it is refused unless a person insists."""
        return self.report.against(self.entry.trust)


@dataclass(slots=True, kw_only=True)
class Hub:
    """Installs and uninstalls skills of one home. A change holds a file lock, so that processes take turns."""

    sources: Sources
    writer: Writer
    clock: Clock

    @property
    def home(self) -> Path:
        """The folder of skills."""
        return self.writer.home

    @property
    def lock(self) -> Lock:
        """The lock file of installed skills."""
        return Lock(self.home)

    @property
    def depot(self) -> Depot:
        """The store of their files."""
        return Depot(self.home)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold the installation lock; cleans up after killed programs before, and unused files after."""
        async with held(self.lock.folder / "busy.lock"):
            await self.writer.mend()
            await self._sweep()
            try:
                yield
            finally:
                await self._sweep()

    async def hold(self, offer: Offer) -> Held:
        """Fetch a skill into quarantine and inspect it. Raises `HubError`, `BadSkill`."""
        name = offer.skill.name
        files = await self.sources.files(offer.tap.url, offer.commit, offer.skill.path)
        seen = await asyncio.to_thread(report, name, files)
        entry = Entry(
            url=offer.tap.url,
            tap=offer.tap.name,
            trust=offer.tap.trust,
            ref=offer.ref,
            commit=offer.commit,
            path=offer.skill.path,
            hash=hash_of_files(files),
            at=self.clock.now(),
        )
        folder = await asyncio.to_thread(self.depot.hold, name, files)
        return Held(name=name, entry=entry, files=files, report=seen, folder=folder)

    async def install(self, chosen: Held, by: By, *, insist: bool = False) -> Entry:
        """Enable a quarantined skill. Raises `HubError` where it is refused or the name is taken."""
        if chosen.against and not insist:
            raise HubError(f"`{chosen.name}` was not installed: {'; '.join(chosen.against[:5])}")
        await self._free(chosen)
        entry = msgspec.structs.replace(chosen.entry, accepted=chosen.against)
        await asyncio.to_thread(self.depot.take, chosen.folder, entry.hash)
        before = (await asyncio.to_thread(self.lock.get)).skills.get(chosen.name)
        old = await asyncio.to_thread(self.depot.files, before.hash, chosen.name) if before else {}
        await self.recorded(chosen.name, old, chosen.files, by, entry, "install")
        return entry

    async def uninstall(self, name: str, by: By) -> bool:
        """Disable a skill: archives its changed copy, removes trust and pin; whether there was such a copy.
        `restore` brings everything back. Raises `HubError`."""
        locked = await asyncio.to_thread(self.lock.get)
        entry = installed(locked, name)
        copy = await self.copy(name)
        if copy is not None:
            await self.writer.archive(name, by)
        files = {} if copy else await asyncio.to_thread(self.depot.files, entry.hash, name)
        await self.recorded(name, files, {}, by, None, "uninstall")
        await self.writer.library.state.change(_forgotten(name))
        return copy is not None

    async def restore(self, name: str, by: By) -> bool:
        """Restore an uninstalled skill; False where there was none. Raises `HubError` where its files are missing."""
        entry = (await asyncio.to_thread(self.lock.get)).retired.get(name)
        if entry is None:
            return False
        files = await asyncio.to_thread(self.depot.files, entry.hash, name)
        if hash_of_files(files) != entry.hash:
            raise HubError(f"The files of `{name}` are gone: install it again from {entry.url}.")
        await self.recorded(name, {}, files, by, entry, "restore")
        return True

    async def copy(self, name: str) -> SkillHeader | None:
        """The changed copy of an installed skill, if any."""
        headers = await self.writer.library.same_name(name)
        state = await asyncio.to_thread(self.writer.library.state.get)
        mine = bool(headers) and headers[0].layer is Layer.USER and base_of(state, name)[0] == Layer.HUB.value
        return headers[0] if mine else None

    async def recorded(self, name: str, before: Files, after: Files, by: By, entry: Entry | None, action: str) -> None:
        """Change the lock, with a ledger version for each file that differs: intended before, done after."""
        who, plans = dataclasses.replace(by, author=Author.HUB), []
        for file in sorted({*before, *after}):
            was, new = (files[file].content if file in files else None for files in (before, after))
            if was != new:
                plans.append(Planned(item=f"{name}/{file}", before=was, after=new))
        intended = await self.writer.versions.intend(plans, who, action, self.writer.ids.short())
        change = put(name, entry) if entry else retire(name)
        await self.lock.change(change)
        await self.writer.versions.complete(intended)
        await self.writer.library.forget()

    async def _free(self, chosen: Held) -> None:
        """Raise where the name belongs to something else."""
        before = (await asyncio.to_thread(self.lock.get)).skills.get(chosen.name)
        if before is not None and (before.url, before.path) != (chosen.entry.url, chosen.entry.path):
            raise HubError(
                f"`{chosen.name}` is installed from {before.url} ({before.path or 'its top'}) already: "
                f"`hermes skills uninstall {chosen.name}` first."
            )
        headers = await self.writer.library.same_name(chosen.name)
        if headers and headers[0].layer is Layer.USER and await self.copy(chosen.name) is None:
            raise HubError(
                f"There is a skill `{chosen.name}` of your own in {headers[0].folder}: it would hide this one."
            )

    async def _sweep(self) -> None:
        locked = await asyncio.to_thread(self.lock.get)
        state = await asyncio.to_thread(self.writer.library.state.get)
        await asyncio.to_thread(self.depot.sweep, used(locked, state), self.clock.now())


def used(locked: Locked, state: State) -> set[tuple[str, str]]:
    """The hashes in use, with the names of their skills."""
    entries = [*locked.skills.items(), *locked.retired.items()]
    found = {(entry.hash, name) for name, entry in entries}
    found |= {(entry.before[1], name) for name, entry in entries if entry.before}
    return found | {(base_of(state, name)[1], name) for name in state.bases}


def installed(locked: Locked, name: str) -> Entry:
    """The lock entry of a skill. Raises `HubError` with the installed names."""
    if name in locked.skills:
        return locked.skills[name]
    there = ", ".join(f"`{each}`" for each in sorted(locked.skills)[:20]) or "none"
    raise HubError(f"`{name[:80]}` is not installed from anywhere. Installed: {there}.")


def _forgotten(name: str) -> Callable[[State], State]:
    return lambda state: msgspec.structs.replace(pinned(name, off=True)(state), trusted=without(state.trusted, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """Audit of one skill: its source, whether its files are those installed, and remarks. `grave` remarks need
    action."""

    name: str
    owner: str
    source: str
    commit: str
    intact: bool
    grave: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def audit(hub: Hub, workspace: str = "", *, everything: bool = False) -> list[Audited]:
    """Audit all installed skills; with `everything` also those of the person, the project and external folders."""
    locked = await asyncio.to_thread(hub.lock.get)
    urls = {tap.url for tap in await asyncio.to_thread(hub.sources.taps.all)}
    found = [await _installed(hub, name, entry, urls) for name, entry in sorted(locked.skills.items())]
    if everything:
        headers = await hub.writer.library.all(workspace, limit=100_000)
        found += [await _own(hub, header) for header in headers if header.layer not in (Layer.HUB, Layer.BUNDLED)]
    return found


async def _installed(hub: Hub, name: str, entry: Entry, urls: set[str]) -> Audited:
    files = await asyncio.to_thread(hub.depot.files, entry.hash, name)
    intact = hash_of_files(files) == entry.hash
    grave: list[str] = []
    notes: list[str] = []
    if not intact:
        grave.append(f"its files are not those that were installed: `hermes skills install {name}` puts them back")
    seen = await asyncio.to_thread(report, name, files) if intact else None
    for words in seen.against(entry.trust) if seen else ():
        (notes if words in entry.accepted else grave).append(words)
    notes += [f"you accepted: {words}" for words in entry.accepted]
    if entry.url not in urls:
        notes.append("its source is none of the taps")
    if seen and seen.commands:
        notes.append(f"holds {len(seen.commands)} commands, run only where it is trusted")
    if seen and seen.programs:
        notes.append(f"may be run: {', '.join(seen.programs)}")
    if await hub.copy(name) is not None:
        notes.append("you have changes of it")
    return Audited(
        name=name,
        owner=Owner.HUB.value,
        source=entry.url,
        commit=entry.commit,
        intact=intact,
        grave=tuple(grave),
        notes=tuple(dict.fromkeys(notes)),
    )


async def _own(hub: Hub, header: SkillHeader) -> Audited:
    owner = (await hub.writer.owner(header)).value
    try:
        seen = await asyncio.to_thread(lambda: report(header.name, files_of_folder(header.path)))
        grave = [each.words for each in seen.seen if each.severity >= Severity.WARN]
    except BadSkill as error:  # It was changed since it was listed.
        grave = [str(error)]
    return Audited(
        name=header.name, owner=owner, source=header.folder, commit="", intact=True, grave=tuple(grave), notes=()
    )
