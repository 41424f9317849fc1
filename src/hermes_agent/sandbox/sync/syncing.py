"""Makes the files of both sides alike: before a command what changed here goes there, after it the other comes back.

What both sides had when they were last alike is kept here as hashes. A file that only one side changed is copied, one
that only one side removed is removed; where both changed it, what was here stays, and theirs is put below `.theirs`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.files import write_private
from hermes_agent.sandbox.place import PlaceFailed
from hermes_agent.sandbox.sync.here import (
    THEIRS,
    Found,
    Rules,
    digest_of,
    has_room,
    look,
    packed,
    remove,
    unpacked,
    write,
)
from hermes_agent.sandbox.sync.there import There

FRESH_NS, FRESH = 2_000_000_000, 2
"""A file that changed this shortly before it was looked at may change again without looking different."""
FETCHED = 16 << 20
MANY_GONE = 20
NAMED = 5


class Alike(msgspec.Struct, array_like=True):
    """One file as both sides had it: its SHA-256, whether it is a program, and how it looked on each side."""

    digest: str
    program: bool
    here: tuple[int, ...] = ()
    there: tuple[int, ...] = ()


class Kept(msgspec.Struct):
    """What is known from the last time. `sending` are files that were on their way there."""

    files: dict[str, Alike] = {}
    sending: set[str] = set()
    at: int = 0
    there_at: int = 0


@dataclass(slots=True, kw_only=True)
class Sync:
    """One folder on both sides; `state` is the file that keeps what is known of it. `doing` says what is going on, for
    a person who waits. Both calls raise `PlaceFailed`."""

    root: Path
    there: There
    rules: Rules
    state: Path
    doing: str = ""
    _kept: Kept | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def up(self) -> tuple[str, ...]:
        """What changed here goes there; sentences for the model about what did not."""
        async with self._turn:
            kept = await self._known()
            try:
                return await self._up(kept)
            finally:
                self.doing = ""

    async def down(self) -> tuple[str, ...]:
        """What changed there comes here; sentences for the model about it."""
        async with self._turn:
            kept = await self._known()
            try:
                return await self._down(kept)
            finally:
                self.doing = ""

    async def _up(self, kept: Kept) -> tuple[str, ...]:
        self.doing = "looking for files that changed here"
        now, digests = await asyncio.to_thread(self._look, kept)
        changed = [path for path in digests if _differs(kept, path, digests[path], path in now.programs)]
        gone = [path for path in kept.files if path not in now.stamps and not await self._is_here(path)]
        notes = _left_out(now.left_out, "there") if changed or gone else ()
        if changed or gone:
            theirs = await self.there.digests([*changed, *gone])
            clashing = [path for path in changed if self._clashes(kept, path, theirs, digests[path])]
            notes += await self._keep_theirs(clashing)
            sent = [path for path in changed if theirs.get(path) != digests[path] or path in kept.files]
            await self._send(kept, sent, now.programs)
            await self.there.remove([path for path in gone if theirs.get(path) == kept.files[path].digest])
        for path in gone:
            del kept.files[path]
        for path, digest in digests.items():
            before = kept.files.get(path)
            there = before.there if before is not None and path not in changed else ()
            kept.files[path] = Alike(digest, path in now.programs, now.stamps[path], there)
        if digests or gone:
            await self._save(kept)
        return notes

    async def _down(self, kept: Kept) -> tuple[str, ...]:
        self.doing = "looking for files that changed there"
        scanned = await self.there.scan()
        if scanned is None:
            kept.files.clear()
            await self._save(kept)
            return (f"{self.there.folder} is gone there; the files here were left alone.",)
        found, second = scanned
        suspects = [path for path, stamp in found.stamps.items() if self._may_differ(kept, path, stamp)]
        theirs = await self.there.digests(suspects)
        changed = {
            path: theirs[path] for path in suspects if path in theirs and self._is_news(kept, found, path, theirs)
        }
        gone = [path for path in kept.files if path not in found.stamps and path not in found.left_out]
        gone = [path for path in gone if not self.rules.leaves_out(path)]
        notes = _left_out(found.left_out, "here") if changed else ()
        if changed or gone:
            notes += await self._take(kept, found, changed, gone)
        for path in theirs:
            if path in kept.files:
                kept.files[path].there = found.stamps[path]
        before, kept.there_at = kept.there_at, second
        if suspects or gone or before == 0:
            await self._save(kept)
        return notes

    async def _take(self, kept: Kept, found: Found, changed: Mapping[str, str], gone: Sequence[str]) -> tuple[str, ...]:
        """Take their changes here."""
        now, digests = await asyncio.to_thread(self._look, kept)
        own = {path for path in digests if _differs(kept, path, digests[path], path in now.programs)}
        own |= {path for path in kept.files if path not in now.stamps}
        ours = {path: digests.get(path, _known(kept, path, now)) for path in changed}
        alike = {path for path, digest in changed.items() if ours[path] == digest}
        alike -= found.programs ^ now.programs
        clashing = sorted(path for path in changed if path in own and path in now.stamps and path not in alike)
        wanted = sorted(set(changed) - set(clashing) - alike)
        refused = await self._fetch(kept, found, wanted)
        for path in alike:
            kept.files[path] = Alike(changed[path], path in found.programs, (), found.stamps[path])
        notes = await self._keep_theirs(clashing)
        for path in clashing:  # what is here differs from it, and goes there next time
            kept.files[path] = Alike(changed[path], path in found.programs, (), found.stamps[path])
        if refused:
            notes += (f"Not copied here, a link or the disk is in the way: {_names(refused)}.",)
        return notes + await self._remove(kept, gone, own)

    async def _fetch(self, kept: Kept, found: Found, wanted: list[str]) -> list[str]:
        """Copy these files here; those that could not be."""
        size = sum(found.stamps[path][0] for path in wanted)
        if wanted and not await asyncio.to_thread(has_room, self.root, size):
            raise PlaceFailed(f"{len(wanted)} files changed there, and the disk here has no room for {size:,} bytes.")
        refused: list[str] = []
        done = 0
        for some in _batches(wanted, found):
            self.doing = f"copying files here: {done:,} of {len(wanted):,}"
            archive = await self.there.fetch(some)
            arrived = await asyncio.to_thread(self._unpack, archive, some, found)
            for path, digest in arrived.items():
                if digest == "":
                    refused.append(path)
                else:  # it may have changed once more since it was hashed
                    kept.files[path] = Alike(digest, path in found.programs, (), found.stamps[path])
            done += len(some)
        return refused

    def _unpack(self, archive: bytes, wanted: Sequence[str], found: Found) -> dict[str, str]:
        """Write what arrived; the hash of each file, empty where it could not be written. Blocks."""
        arrived = {}
        for path, content, changed in unpacked(archive, wanted):
            program = path in found.programs
            is_there = len(content) <= self.rules.max_bytes and write(
                self.root, path, content, program=program, changed=changed
            )
            arrived[path] = digest_of(self.root, path) if is_there else ""
        return arrived

    async def _remove(self, kept: Kept, gone: Sequence[str], own: set[str]) -> tuple[str, ...]:
        """Remove what they removed and nobody changed here; where suddenly most is gone, something else happened."""
        if len(gone) > MANY_GONE and len(gone) > len(kept.files) // 2:
            for path in gone:
                del kept.files[path]
            return (
                f"{len(gone):,} files are gone there; they were kept here and go there again with the next command.",
            )
        for path in gone:
            if path not in own:
                await asyncio.to_thread(remove, self.root, path)
            del kept.files[path]
        return ()

    async def _keep_theirs(self, clashing: Sequence[str]) -> tuple[str, ...]:
        """Put what the other side has of these files below `.theirs`."""
        if not clashing:
            return ()
        archive = await self.there.fetch(clashing)

        def keep() -> None:
            for path, content, changed in unpacked(archive, clashing):
                write(self.root, f"{THEIRS}/{path}", content, program=False, changed=changed)

        await asyncio.to_thread(keep)
        return (f"Changed on both sides: {_names(clashing)}. Here stays what was here; theirs is below {THEIRS}/.",)

    async def _send(self, kept: Kept, paths: list[str], programs: frozenset[str]) -> None:
        if not paths:
            return
        kept.sending = set(paths)
        await self._save(kept)
        self.doing = f"copying {len(paths):,} files there"
        archives = packed(self.root, paths, programs)
        while archive := await asyncio.to_thread(next, archives, b""):
            await self.there.send(archive)
        kept.sending = set()

    def _look(self, kept: Kept) -> tuple[Found, dict[str, str]]:
        """The files here, and the hashes of those that do not look as they did. Blocks."""
        began = self._clock()
        now = look(self.root, self.rules)
        digests = {}
        for path, stamp in now.stamps.items():
            before = kept.files.get(path)
            if before is None or before.here != stamp or max(stamp[1:3]) > kept.at - FRESH_NS:
                digests[path] = digest_of(self.root, path)
        kept.at = began
        return now, {path: digest for path, digest in digests.items() if digest}

    def _clock(self) -> int:
        """Now, by the clock of the file system, in nanoseconds. Blocks."""
        self.state.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp = self.state.with_suffix(".now")
        stamp.touch(mode=0o600)
        return stamp.stat().st_mtime_ns

    @staticmethod
    def _clashes(kept: Kept, path: str, theirs: Mapping[str, str], digest: str) -> bool:
        before = kept.files.get(path)
        known = (digest, before.digest) if before else (digest,)
        return path in theirs and theirs[path] not in known and path not in kept.sending

    @staticmethod
    def _may_differ(kept: Kept, path: str, stamp: tuple[int, ...]) -> bool:
        before = kept.files.get(path)
        return before is None or before.there != stamp or max(stamp[1:3]) > kept.there_at - FRESH

    @staticmethod
    def _is_news(kept: Kept, found: Found, path: str, theirs: Mapping[str, str]) -> bool:
        return _differs(kept, path, theirs[path], path in found.programs)

    async def _is_here(self, path: str) -> bool:
        return await asyncio.to_thread((self.root / path).is_file)

    async def _known(self) -> Kept:
        if self._kept is None:
            self._kept = await asyncio.to_thread(_read, self.state)
        return self._kept

    async def _save(self, kept: Kept) -> None:
        await asyncio.to_thread(write_private, self.state, msgspec.json.encode(kept), durable=False)


def _read(state: Path) -> Kept:
    try:
        return msgspec.json.decode(state.read_bytes(), type=Kept)
    except (OSError, msgspec.DecodeError):
        return Kept()


def _differs(kept: Kept, path: str, digest: str, program: bool) -> bool:
    before = kept.files.get(path)
    return before is None or (before.digest, before.program) != (digest, program)


def _known(kept: Kept, path: str, now: Found) -> str:
    """The hash of a file here that looks as it did; empty where there is none."""
    return kept.files[path].digest if path in kept.files and path in now.stamps else ""


def _batches(paths: Sequence[str], found: Found) -> list[list[str]]:
    batches: list[list[str]] = []
    size = FETCHED
    for path in paths:
        if size >= FETCHED:
            batches.append([])
            size = 0
        batches[-1].append(path)
        size += found.stamps[path][0] + 1024
    return batches


def _left_out(paths: Sequence[str], where: str) -> tuple[str, ...]:
    return (f"Too large to be copied {where}: {_names(paths)}.",) if paths else ()


def _names(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
    return f"{', '.join(paths[:NAMED])}{more}"
