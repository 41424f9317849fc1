"""The ledger of notes as people read it: who changed what, when, from which messages, and what it was before."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.memory.entries import decoded
from hermes_agent.memory.notes import Notes, Saved
from hermes_agent.memory.settings import Person, Target
from hermes_agent.store.versions import By, Kind, Version

PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One version for a person: `diff` has a line for each line that came (`+`) or went (`-`)."""

    id: int
    at: float
    item: str
    author: str
    principal: str
    action: str
    session: str
    first: int
    last: int
    undoes: int | None
    diff: tuple[str, ...]


def line_of(version: Version) -> LedgerRow:
    """The version as a person reads it."""
    change = version.change
    before, after = (decoded(body).splitlines() for body in (change.before, change.after))
    changed = list(unified_diff(before, after, lineterm="", n=0))[2:]
    return LedgerRow(
        id=version.id,
        at=change.at,
        item=change.item,
        author=change.author.value,
        principal=change.principal,
        action=change.action,
        session=change.session,
        first=change.first,
        last=change.last,
        undoes=change.undoes,
        diff=tuple(each for each in changed if not each.startswith("@@")),
    )


async def log(notes: Notes, items: Sequence[str] = (), limit: int = PAGE) -> list[LedgerRow]:
    """The newest versions first, of these files (none given: all that there is); what was edited by hand is recorded
    before."""
    known = items or await _items(notes)
    await notes.notice(known)
    found = [version for item in known for version in await notes.store.versions.list(Kind.MEMORY, item, limit=limit)]
    return [line_of(version) for version in sorted(found, key=lambda each: -each.id)[:limit]]


async def undo(notes: Notes, number: int | None, by: By, items: Sequence[str] = ()) -> tuple[Version, Saved]:
    """Take the change of that number back, or the newest that was not taken back yet. Raises `HermesError` where there
    is none; `items` are the files that it may be of (none given: all)."""
    await notes.notice(items or await _items(notes))
    version = await _newest(notes, items) if number is None else await notes.store.versions.get(number)
    if version is None or version.change.kind is not Kind.MEMORY or (items and version.change.item not in items):
        raise HermesError("There is nothing to undo." if number is None else f"There is no version {number} of notes.")
    if await notes.store.versions.undone(version.id):
        raise HermesError(f"Version {version.id} was undone already.")
    return version, await notes.undo(version, by)


async def _newest(notes: Notes, items: Sequence[str]) -> Version | None:
    for version in await notes.store.versions.list(Kind.MEMORY, limit=10 * PAGE):
        fits = not items or version.change.item in items
        if fits and version.change.undoes is None and not await notes.store.versions.undone(version.id):
            return version
    return None


async def _items(notes: Notes) -> list[str]:
    """The owner's files, and those of all other people that the ledger knows."""
    own = [Person(key="", owner=True).item(target) for target in Target]
    return list(dict.fromkeys([*own, *await notes.store.versions.items(Kind.MEMORY)]))
