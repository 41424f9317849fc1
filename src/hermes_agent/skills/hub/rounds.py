"""Updating several skills: one that cannot be updated is told, and does not hold up the others."""

from __future__ import annotations

import asyncio

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.skills.changes import By
from hermes_agent.skills.hub.installing import Hub, installed
from hermes_agent.skills.hub.merge import Conflict
from hermes_agent.skills.hub.updating import (
    Conflicted,
    Keep,
    Status,
    behind,
    follow,
    offered,
    put_back,
    standing,
    updated,
)
from hermes_agent.skills.skill import SkillHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to update: who wins where both sides changed something, whether a tag that was moved is followed, whether the
    last update is undone instead, whether what the scanner found is taken."""

    keep: Keep = Keep.NEITHER
    moved: bool = False
    back: bool = False
    insist: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one skill, in words; `ok` is off where a person has to look."""

    name: str
    ok: bool
    did: str
    conflicts: tuple[Conflict, ...] = ()


async def update_all(hub: Hub, names: tuple[str, ...], by: By, wish: Wish) -> list[Outcome]:
    """Update these skills, or (none named) every installed one and every changed copy whose original moved on."""
    known = (await asyncio.to_thread(hub.lock.get)).skills
    copies = {copy.name: (copy, original) for copy, original in await behind(hub)}
    return [
        await _one(hub, name, copies.get(name) if name not in known else None, by, wish)
        for name in names or (*sorted(known), *sorted(set(copies) - set(known)))
    ]


async def _one(hub: Hub, name: str, copy: tuple[SkillHeader, SkillHeader] | None, by: By, wish: Wish) -> Outcome:
    try:
        if name in (await asyncio.to_thread(hub.writer.library.state.get)).pinned:
            return Outcome(name=name, ok=True, did=f"pinned, left as it is; `hermes skills pin {name} --off` frees it")
        if copy is not None:
            changed = await follow(hub, *copy, by, wish.keep)
            return Outcome(name=name, ok=True, did=f"your copy follows its original, {changed} files changed")
        return await _back(hub, name, by) if wish.back else await _installed(hub, name, by, wish)
    except Conflicted as error:
        return Outcome(name=name, ok=False, did=str(error), conflicts=error.conflicts)
    except HermesError as error:
        return Outcome(name=name, ok=False, did=str(error))


async def _back(hub: Hub, name: str, by: By) -> Outcome:
    done = await put_back(hub, name, by)
    return Outcome(name=name, ok=True, did=f"back at {done.new[:12]}, instead of {done.old[:12]}")


async def _installed(hub: Hub, name: str, by: By, wish: Wish) -> Outcome:
    found = await standing(hub, name)
    match found.status:
        case Status.CURRENT | Status.FIXED:
            return Outcome(name=name, ok=True, did=found.status.value)
        case Status.GONE | Status.SILENT:
            return Outcome(name=name, ok=False, did=found.words)
        case Status.MOVED if not wish.moved:
            said = f"its tag pointed at {found.commit[:12]} and points at {found.there[:12]} now; `--moved` follows it"
            return Outcome(name=name, ok=False, did=said)
        case Status.MOVED | Status.NEWER:
            entry = installed(await asyncio.to_thread(hub.lock.get), name)
            held = await hub.hold(await offered(hub, name, entry))
            done = await updated(hub, held, by, insist=wish.insist, keep=wish.keep)
            merged = f", merged into your copy ({done.merged} files changed)" if found.changed else ""
            return Outcome(name=name, ok=True, did=f"{done.old[:12]} -> {done.new[:12]}{merged}")
