"""Looking again at what is installed: whether it is what it was, and what the scanner says of it today."""

from __future__ import annotations

import asyncio

from hermes_agent.core.dataclass import dataclass
from hermes_agent.scanner.finding import Severity
from hermes_agent.skills.depot import Entry, files_of_folder, hash_of_files
from hermes_agent.skills.format import BadSkill
from hermes_agent.skills.hub.installing import Hub, report
from hermes_agent.skills.skill import Layer, SkillHeader
from hermes_agent.skills.versions import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One skill: where from, whether its files are those that were installed, and what is to be known of it. `grave`
    are things that somebody should do something about."""

    name: str
    owner: str
    source: str
    commit: str
    intact: bool
    grave: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def audit(hub: Hub, workspace: str = "", *, everything: bool = False) -> list[Audited]:
    """All installed skills; with `everything` also those of the person, the project and external folders."""
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
