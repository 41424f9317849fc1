"""Working copy of the version ledger in a home's files: which version each file shows, and local edits since."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.host.paths import PRIVATE_FOLDER, read_small, write_private
from hermes_agent.store.database import Store
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.versions import Author, Change, Kind, Overtaken, Version, VersionState, hash_of

LARGEST = 1 << 26
AGAIN = 20
"""How often a change is made anew because somebody else was faster."""

Merge = Callable[[bytes | None, bytes | None, bytes | None], bytes | None]
"""(base, ours, theirs): what both made of the base."""

Edit = Callable[[bytes | None, bytes | None, Author], Change]
"""(before, after, author): a change that was found in a file."""


Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


def again(change: Callable[Parameters, Awaitable[Result]]) -> Callable[Parameters, Awaitable[Result]]:
    """Decorator: retries a change that another home overtook; nothing of it was written then."""

    @wraps(change)
    async def repeated(*arguments: Parameters.args, **more: Parameters.kwargs) -> Result:
        for _ in range(AGAIN):
            with suppress(Overtaken):
                return await change(*arguments, **more)
        return await change(*arguments, **more)

    return repeated


class Shown(msgspec.Struct, frozen=True):
    """The version that a file shows, its content's hash, and its author."""

    version: int
    hash: str
    author: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """State of an item: its newest version (0: none) with author and folder, and the content that its file should
    have; `edit` is a local edit to record once the file has that content."""

    version: int
    content: bytes | None
    author: Author = Author.OWNER
    folder: str = ""
    private: bool = False
    edit: Change | None = None


class WorkingCopy:
    """The items of one kind in one home; the caller holds the home's lock.

    A file that differs from what this home wrote last has a local edit; one that equals it but not the ledger is
    behind. Where the database is the home's own, the last write is the newest version; otherwise the file
    `record` tracks it per item.
    """

    def __init__(self, store: Store, kind: Kind, record: Path, merge: Merge) -> None:
        self._store, self._kind, self._record, self._merge = store, kind, record, merge

    async def compare(self, item: str, found: bytes | None, edit: Edit, *, private: bool = False) -> Standing:
        """Complete this home's intended change and return the state of the item; call `show` when the file has its
        content."""
        versions = self._store.versions
        mine = await self._settled(item, found, private)
        if private or not versions.machine:
            head, base, author = mine, mine.change.after if mine else None, Author.FOUND
        else:
            head = await versions.latest(self._kind, item)
            base, author = await self._base(item, found, mine)
        now = head.change.after if head else None
        standing = _standing(head, private)
        if found in (base, now):
            return standing
        after = found if base == now else self._merge(base, found, now)
        if after == now:  # The ledger has it all: what this home rendered was not noted down before it was killed.
            return standing
        return replace(standing, content=after, author=author, edit=edit(now, after, author))

    async def record(self, change: Change, state: VersionState, follows: int) -> int:
        """Write a version that follows `follows`. Raises `Overtaken`."""
        versions, after = self._store.versions, None if change.private else follows
        return await self._store.write(lambda tx: versions.record(tx, change, state, follows=after))

    async def show(self, standings: Mapping[str, Standing]) -> dict[str, Standing]:
        """Record that these files show their content, and the local edits in them. Returns those that another home
        did not change again meanwhile."""
        kept = {}
        for item, standing in standings.items():
            version = standing.version
            if standing.edit is not None:
                try:
                    version = await self.record(standing.edit, VersionState.DONE, version)
                except Overtaken:
                    continue
            kept[item] = replace(standing, version=version)
        if self._store.versions.machine:
            shown = {
                item: Shown(each.version, hash_of(each.content), each.author.value)
                for item, each in kept.items()
                if not each.private
            }
            await asyncio.to_thread(self._write, shown)
        return kept

    async def behind(self) -> list[str]:
        """The items that another home changed since their files were written."""
        if not self._store.versions.machine:
            return []
        shown = await asyncio.to_thread(self._read)
        heads = await self._store.versions.heads(self._kind)
        return [item for item, head in heads.items() if item not in shown or shown[item].version != head]

    async def drop(self, version: Version) -> bool:
        """Drop an intended change; False where another home has built on it, which makes it done."""
        versions = self._store.versions
        dropped = await self._store.write(lambda tx: versions.drop(tx, version), durable=False)
        if not dropped:
            await self.done(version.id)
        return dropped

    async def done(self, *numbers: int) -> None:
        """Mark these changes as in place. A mark lost in a power failure is found out again from the files."""
        versions = self._store.versions

        async def change(tx: Transaction) -> None:
            for number in numbers:
                await versions.complete(tx, number, VersionState.DONE)

        await self._store.write(change, durable=False)

    async def _settled(self, item: str, found: bytes | None, private: bool) -> Version | None:
        """The newest version of this home's own, after what a crash left intended was settled by the file."""
        versions = self._store.versions
        while (mine := await versions.latest(self._kind, item, mine=True, private=private)) is not None:
            if mine.state is not VersionState.INTENDED:
                return mine
            change = mine.change
            if found == change.after or (found != change.before and not versions.machine):
                await self.done(mine.id)
                return mine
            if versions.machine:  # The others know it, and may have built upon it: the file is brought in step with it.
                return mine
            await self.drop(mine)
        return None

    async def _base(self, item: str, found: bytes | None, mine: Version | None) -> tuple[bytes | None, Author]:
        """What this home rendered last, and whose the difference of the file is."""
        versions, last, base = self._store.versions, 0, None
        shown = (await asyncio.to_thread(self._read)).get(item)
        if shown is not None:
            version, last = await versions.get(shown.version), shown.version
            if version is None or hash_of(version.change.after) != shown.hash:
                # The database went back to a state before this version: what the file holds is put back.
                return None, Author(shown.author) if hash_of(found) == shown.hash else Author.FOUND
            base = version.change.after
        elif mine is not None:
            base = mine.change.after if mine.state is VersionState.DONE else mine.change.before
        # A crash between the rendering of a file and the note about it.
        is_rendered = found != base and await versions.holds(self._kind, item, last, found)
        return (found if is_rendered else base), Author.FOUND

    def _read(self) -> dict[str, Shown]:
        content = read_small(self._record, LARGEST)
        try:
            return {} if content is None else msgspec.json.decode(content, type=dict[str, Shown])
        except msgspec.DecodeError as error:
            raise HomeError(f"{self._record} cannot be read ({error}): move it out of the way.") from error

    def _write(self, shown: Mapping[str, Shown]) -> None:
        known = self._read()
        if any(known.get(item) != each for item, each in shown.items()):
            self._record.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            write_private(self._record, msgspec.json.encode({**known, **shown}))


def _standing(head: Version | None, private: bool) -> Standing:
    if head is None:
        return Standing(version=0, content=None, private=private)
    change = head.change
    return Standing(version=head.id, content=change.after, author=change.author, folder=change.folder, private=private)
