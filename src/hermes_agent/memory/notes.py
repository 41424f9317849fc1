"""Notes: plain files that a person may edit at any time; every change is a version in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, HomeError, Protected
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.core.section import fenced
from hermes_agent.host.atomic_swap import aside_of, replace_known
from hermes_agent.host.locks import held, in_thread
from hermes_agent.host.paths import PRIVATE_FOLDER, Home, read_small
from hermes_agent.memory.entries import BETWEEN, Operation, applied, decoded, entries_of, joined, merged, size_of
from hermes_agent.memory.settings import MemorySettings, Person, Target
from hermes_agent.scanner.scan import screened
from hermes_agent.store.database import Store
from hermes_agent.store.versions import (
    ADOPTING,
    OUTSIDE,
    UNTOUCHED,
    Author,
    By,
    Change,
    Kind,
    Overtaken,
    Version,
    VersionState,
)
from hermes_agent.store.working_copy import AGAIN, Standing, WorkingCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Result of a change: the version (0: nothing changed), the entries, and whether another change was found in
    the file and recorded first."""

    version: int
    entries: tuple[str, ...]
    edited: bool = False


SOUL = "SOUL.md"
"""Whom the agent is to be, in the owner's words: kept in the ledger as the notes are, and by each home for itself."""
Draft = Callable[[bytes | None], bytes | None]


@dataclass(slots=True, kw_only=True)
class Notes:
    """The notes files of one home.

    Every change holds the home's lock file, so that processes take turns, and starts from the file as it is: it
    records first what the file holds that nobody known wrote, and writes changes of other homes of the household to
    the file. A change is recorded as intended, written, then recorded as done; after a crash, the file's content
    decides an intended change.
    """

    home: Home
    store: Store
    clock: Clock
    ids: Ids
    settings: MemorySettings
    _files: WorkingCopy = field(init=False)

    def __post_init__(self) -> None:
        self._files = WorkingCopy(self.store, Kind.MEMORY, self.home.memories / ".shown.json", merged)

    def path(self, item: str) -> Path:
        """Path of a notes file, or of SOUL.md."""
        return self.home.soul_file if item == SOUL else self.home.memories / item

    def limit(self, target: Target) -> int:
        """Its maximum size in characters."""
        return self.settings.user_char_limit if target is Target.USER else self.settings.memory_char_limit

    async def read(self, person: Person, target: Target) -> tuple[str, ...]:
        """The current entries. Raises `HomeError`."""
        content = await asyncio.to_thread(read_small, self.path(person.item(target)))
        return tuple(entries_of(decoded(content)))

    async def change(self, person: Person, target: Target, operations: Sequence[Operation], by: By) -> Saved:
        """Apply all operations or none. Raises `ToolError`, `HomeError`.

        Idempotent for the same key.
        """
        if by.key and (done := await self.store.versions.by_key(by.key)):
            return Saved(version=done.id, entries=tuple(entries_of(decoded(done.change.after))))
        item, limit = person.item(target), self.limit(target)
        protected = await self._protected(item, by)

        def draft(content: bytes | None) -> bytes | None:
            before = entries_of(decoded(content))
            after = applied(before, operations, limit)
            if touched := [entry for entry in before if entry not in after and entry in protected]:
                quoted = Quoted(text=touched[0][:80], origin=Origin.TOOL)
                raise Protected("A person wrote this entry, and only a person changes it:", quoted=quoted)
            return joined(after).encode("utf-8", "replace")

        return await self._write(item, draft, by, "+".join(dict.fromkeys(each.action for each in operations)))

    async def put(self, item: str, content: bytes | None, by: By, *, expected: bytes | None) -> Saved:
        """Write a content derived from `expected`. Raises `HermesError` where the file has changed."""

        def draft(found: bytes | None) -> bytes | None:
            if found != expected:
                raise HermesError(f"{item} was changed meanwhile: nothing was written.")
            return content

        return await self._write(item, draft, by, "edit")

    async def undo(self, version: Version, by: By) -> Saved:
        """Undo a change: byte for byte where it is the latest, otherwise its entries only."""
        change = version.change

        def draft(content: bytes | None) -> bytes | None:
            if content == change.after:
                return change.before
            old, new = (entries_of(decoded(each)) for each in (change.before, change.after))
            stays = [entry for entry in entries_of(decoded(content)) if entry not in new or entry in old]
            back = [entry for entry in old if entry not in new and entry not in stays]
            return joined([*stays, *back]).encode("utf-8", "replace")

        return await self._write(change.item, draft, replace(by, undoes=version.id), "undo")

    async def notice(self, items: Sequence[str]) -> None:
        """Record manual edits, and update the files with other homes' changes."""
        async with self._held():
            for item in items:
                await self._in_step(item)

    async def catch_up(self) -> None:
        """Update the files with other homes' changes."""
        if items := await self._files.behind():
            await self.notice(items)

    async def _write(self, item: str, draft: Draft, by: By, action: str) -> Saved:
        async with self._held():
            edited = False
            for _ in range(AGAIN):
                standing = await self._in_step(item)
                edited, before = edited or _is_found(standing.edit), standing.content
                after = draft(before)
                if after == before:
                    return Saved(version=0, entries=tuple(entries_of(decoded(after))), edited=edited)
                change = self._change(item, by, action, before, after)
                try:
                    number = await self._files.record(change, VersionState.INTENDED, standing.version)
                except Overtaken:
                    continue
                if await in_thread(partial(self._replaced, item, after, before)):
                    await self._files.show({item: Standing(version=number, content=after, author=by.author)})
                    await self._files.done(number)
                elif await self._files.drop(Version(id=number, state=VersionState.INTENDED, change=change)):
                    continue
                return Saved(version=number, entries=tuple(entries_of(decoded(after))), edited=edited)
        raise HermesError(f"{item} is being saved again and again by another program: nothing was written.")

    async def _in_step(self, item: str) -> Standing:
        """Bring ledger and file in step; where they stand then, with the last edit that was found in the file."""
        edit = None
        for _ in range(AGAIN):
            found = await self._found(item)
            edit_of = partial(self._edit, item)
            standing = await self._files.compare(item, found, edit_of, private=item == SOUL)
            content = standing.content
            if content == found or await in_thread(partial(self._replaced, item, content, found)):
                edit = standing.edit or edit
                if kept := await self._files.show({item: standing}):
                    return replace(kept[item], edit=edit)
        raise HermesError(f"{item} is being saved again and again by another program: nothing was written.")

    async def _found(self, item: str) -> bytes | None:
        """The file as it is. What a person saved in the very moment in which a program died is put back first."""
        path = self.path(item)
        aside = aside_of(path)
        taken = await asyncio.to_thread(read_small, aside)
        if taken is not None:
            if not await self.store.versions.holds(Kind.MEMORY, item, 0, taken):
                await self._put_back(item, taken)
            await asyncio.to_thread(aside.unlink, missing_ok=True)
        return await asyncio.to_thread(read_small, path)

    async def _put_back(self, item: str, taken: bytes) -> None:
        last = await self.store.versions.latest(Kind.MEMORY, item, mine=True)
        intended = last is not None and last.state is VersionState.INTENDED
        if not intended:
            last = await self.store.versions.latest(Kind.MEMORY, item)
        after = last.change.after if last else None
        replaced = await in_thread(partial(replace_known, self.path(item), taken, after))
        if last and intended and replaced:
            await self._files.drop(last)

    def _edit(self, item: str, before: bytes | None, after: bytes | None, author: Author) -> Change:
        action = OUTSIDE if author is Author.FOUND else "put back"
        return self._change(item, By(author=author, principal=""), action, before, after)

    def _replaced(self, item: str, content: bytes | None, before: bytes | None) -> bool:
        path = self.path(item)
        path.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        return replace_known(path, content, before)

    async def _protected(self, item: str, by: By) -> frozenset[str]:
        """The entries that these may not change."""
        if by.author not in (Author.BACKGROUND, Author.CURATOR) or by.backing.approved:
            return frozenset()
        return frozenset(entry for entry, author in (await self.writers(item)).items() if author in UNTOUCHED)

    async def writers(self, item: str) -> dict[str, Author]:
        """Each entry of the current file with its author."""
        await self.notice([item])
        wrote: dict[str, Author] = {}
        for version in reversed(await self.store.versions.list(Kind.MEMORY, item, limit=10_000)):
            before, after = (entries_of(decoded(each)) for each in (version.change.before, version.change.after))
            author, adopts = version.change.author, (version.change.author, version.change.action) in ADOPTING
            wrote.update((entry, author) for entry in after if adopts or entry not in before)
        return {
            entry: wrote.get(entry, Author.FOUND)
            for entry in entries_of(decoded(await asyncio.to_thread(read_small, self.path(item))))
        }

    async def found(self, person: Person, target: Target) -> frozenset[str]:
        """The entries that nobody known wrote, and that the owner has not taken on."""
        item = person.item(target)
        if await self.is_known(item):
            return frozenset()
        return frozenset(entry for entry, author in (await self.writers(item)).items() if author is Author.FOUND)

    async def is_known(self, item: str) -> bool:
        """Whether somebody known answers for a file as it is, or there is none."""
        content = await asyncio.to_thread(read_small, self.path(item))
        return content is None or await self.store.versions.vouches(Kind.MEMORY, item, content, private=item == SOUL)

    def _change(self, item: str, by: By, action: str, before: bytes | None, after: bytes | None) -> Change:
        return Change(
            kind=Kind.MEMORY,
            item=item,
            at=self.clock.now(),
            private=item == SOUL,
            author=by.author,
            action=action,
            before=before,
            after=after,
            change=self.ids.short(),
            principal=by.principal,
            session=by.session,
            first=by.first,
            last=by.last,
            key=by.key,
            undoes=by.undoes,
            evidence=by.backing.evidence,
            taint=by.backing.taint,
            cost=by.backing.cost,
            note=by.backing.note,
        )

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[None]:
        async with held(self.home.locks / "memories.lock"):
            await asyncio.to_thread(self.home.memories.mkdir, parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
            yield


def _is_found(edit: Change | None) -> bool:
    return edit is not None and edit.author is Author.FOUND


UNKNOWN = "Nobody known wrote this note."
HEAD = "# What you noted in earlier conversations (tool memory; as it was when this one began)"
TITLES = {Target.MEMORY: "Notes", Target.USER: "The person"}


def snapshot(
    home: Home, settings: MemorySettings, person: Person, found: frozenset[str] = frozenset()
) -> tuple[str, tuple[str, ...]]:
    """The prompt section with a person's notes, empty where there are none and in shared conversations; and
    sentences for the person about what was left out. Entries that were `found` stand fenced.

    Dangerous entries by the scanner are replaced by a note; what exceeds the limit is cut, with a note. Blocking.
    """
    if person.shared:
        return "", ()
    wanted = {
        Target.MEMORY: (settings.memory_enabled, settings.memory_char_limit),
        Target.USER: (settings.user_profile_enabled, settings.user_char_limit),
    }
    parts = [_part(home, person, target, (limit, found)) for target, (on, limit) in wanted.items() if on]
    shown = [text for text, _ in parts if text]
    return "\n\n".join([HEAD, *shown]) if shown else "", tuple(said for _, told in parts for said in told)


def _part(home: Home, person: Person, target: Target, bounds: tuple[int, frozenset[str]]) -> tuple[str, list[str]]:
    limit, found = bounds
    try:
        entries = entries_of(decoded(read_small(home.memories / person.item(target))))
    except HomeError as error:
        return f"## {TITLES[target]}\n[{error}]", [str(error)]
    if not entries:
        return "", []
    size, clean, told = size_of(entries), [], []
    if size > limit:
        entries = _within(entries, limit, target.file)
        told.append(f"{target.file} has {size:,} characters, {limit:,} are shown to the agent: shorten it.")
    for number, entry in enumerate(entries, 1):
        text, reason = screened(entry, f"{target.file}, entry {number}")
        clean.append(fenced(text, UNKNOWN) if _is_among(entry, found) else text)
        told += [f"{target.file}: entry {number} was left out of the prompt ({reason})."] if reason else []
    if any(_is_among(entry, found) for entry in entries):
        told.append(f"{target.file} was changed outside: `hermes learn adopt {target.file}` makes it yours.")
    used = f"{size:,} of {limit:,} characters"
    return f"## {TITLES[target]} ({target.file}, {used})\n" + BETWEEN.join(clean), told


def _is_among(entry: str, found: frozenset[str]) -> bool:
    """Whether an entry, perhaps cut, is one of these."""
    return any(each.startswith(entry) for each in found)


def _within(entries: list[str], limit: int, name: str) -> list[str]:
    """The entries up to the limit, the last one a note."""
    kept: list[str] = []
    for entry in entries:
        room = limit - (size_of(kept) + len(BETWEEN) if kept else 0)
        if len(entry) > room:
            cut = [entry[:room]] if room > 0 else []
            left = len(entries) - len(kept) - len(cut)
            said = f"[{name} is over its limit of {limit:,} characters: the rest ({left} more entries) is not shown]"
            return [*kept, *cut, said]
        kept.append(entry)
    return kept
