"""Checkpoint store: saves, lists, compares, restores and prunes snapshots of folders."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.locks import LockFile, in_thread
from hermes_agent.tools.checkpoints.shadow import (
    LOCK,
    REFS,
    SECONDS,
    CheckpointFailed,
    Loose,
    Pack,
    Shadow,
    commit,
    lines,
    ref,
    shadow_of,
)
from hermes_agent.tools.checkpoints.snapshot import MOMENT, Scan, Seen
from hermes_agent.tools.settings import CheckpointSettings

SEEN = "seen"
LATER = re.compile(
    r"(^|/)(\.github/(workflows|actions)/.*|\.gitlab-ci\.yml|\.circleci/.*|Jenkinsfile|azure-pipelines\.yml|\.envrc|[Mm]akefile"
    r"|GNUmakefile|[Jj]ustfile|package\.json|\.vscode/(tasks|launch|settings)\.json|\.idea/runConfigurations/.*|conftest\.py"
    r"|sitecustomize\.py|setup\.py|build\.rs|\.husky/.*|\.githooks/.*|\.pre-commit-config\.yaml|Dockerfile|docker-compose\.ya?ml"
    r"|AGENTS\.md|CLAUDE\.md|\.mcp\.json|\.npmrc|\.gitattributes|\.bashrc|\.profile|\.zshrc)$"
)
"""Files that programs and people run, or speak to the agent with, later and outside any wall."""
MANY = 100
"""Files from which on a pack is made: each alone would be a file of the store."""
TIDY_EVERY = 50
SOON = 0.02
"""Seconds in which most folders are looked through; what takes longer begins again, and lets a stop come between."""


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Metadata of a checkpoint: the tool call it was taken before, the session, and whether it covers the whole folder.
    `absent`: files that were about to be created."""

    why: str
    session: str = ""
    whole: bool = True
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A saved state of a folder: its number there (increasing), its git objects, its time, and its metadata."""

    number: int
    commit: str
    tree: str
    at: float
    told: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Result of restoring a checkpoint: files written, files removed, and the checkpoint that undoes it."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    undo: Checkpoint


class Kept(msgspec.Struct):
    """What is remembered of a folder between two checkpoints, and may be lost: the last scan, the last checkpoint, and
    how many checkpoints and bytes were written since the last pruning."""

    seen: Seen = msgspec.field(default_factory=Seen)
    last: Checkpoint | None = None
    since: int = 0
    written: int = 0


class Checkpoints:
    """Store of file checkpoints below `folder` (`HERMES_HOME/checkpoints`), kept with git."""

    def __init__(self, folder: Path, settings: CheckpointSettings, clock: Clock, *, git: str = "git") -> None:
        self.folder = folder
        self._settings = settings
        self._clock = clock
        self._git = git
        self._largest = settings.max_file_mb << 20

    async def save(self, root: Path, told: Cause, touched: Sequence[Path] = ()) -> Checkpoint:
        """Save the folder's current state; if nothing changed, return the last checkpoint. `touched` files are saved
        even if they are otherwise excluded. Raises `CheckpointFailed`."""
        shadow = shadow_of(root, self.folder, self._git)
        done = await asyncio.to_thread(self._at_once, shadow, told, touched)
        if done is not None and not done[1]:
            return done[0]
        async with shadow.turn(), asyncio.timeout(SECONDS):
            if done is not None:
                await self._tidy(shadow, self._settings.keep)
                return done[0]
            return await self._take(shadow, told, touched)

    async def of(self, root: Path) -> list[Checkpoint]:
        """The folder's checkpoints, latest first."""
        shadow = shadow_of(root, self.folder, self._git)
        return await self._list(shadow) if shadow.is_made else []

    async def find(self, root: Path, number: int) -> Checkpoint:
        """One checkpoint by number. Raises `CheckpointFailed` with the existing numbers."""
        found = await self.of(root)
        if not found:
            raise CheckpointFailed(f"There are no checkpoints of {root}.")
        chosen = next((each for each in found if each.number == number), None)
        if chosen is None:
            raise CheckpointFailed(
                f"There is no checkpoint {number}; there are {found[-1].number} to {found[0].number}."
            )
        return chosen

    async def diff(self, root: Path, number: int, file: str = "") -> str:
        """Diff of the folder, or of one file, from the checkpoint to now."""
        shadow, chosen = shadow_of(root, self.folder, self._git), await self.find(root, number)
        async with shadow.turn():
            names = await self._names(shadow, chosen)
            touched = [shadow.root / name for name in names]
            kept, look = await self._compare(shadow, whole=chosen.told.whole, touched=touched)
            loose = await self._packed(shadow, kept, look)
            while await in_thread(lambda: look.read(loose, self._largest)):
                pass
            now = (await in_thread(lambda: look.keep(loose))).hex()
            rest = ["--", f":(literal){self._inside(shadow, file)}"] if file else []
            out = await shadow.run("diff", "--no-color", "--no-ext-diff", "--no-textconv", chosen.tree, now, *rest)
        text = out.decode("utf-8", "replace")
        later = [name for name in re.findall(r"^diff --git a/.* b/(.+)$", text, re.MULTILINE) if LATER.search(name)]
        return f"Runs later, outside the wall: {', '.join(later)}\n{text}" if later else text

    async def restore(self, root: Path, number: int, file: str = "") -> Restored:
        """Restore the folder, or one file; takes a checkpoint first, so that this can be undone."""
        shadow, chosen = shadow_of(root, self.folder, self._git), await self.find(root, number)
        async with shadow.turn():
            names = await self._names(shadow, chosen)
            told = Cause(why=f"rollback to {number}", whole=chosen.told.whole)
            undo = await self._take(shadow, told, [shadow.root / name for name in (*names, *chosen.told.absent)])
            written, removed = await self._changes(shadow, chosen, undo)
            if file:
                wanted = self._inside(shadow, file)
                written, removed = (
                    [each for each in written if each == wanted],
                    [each for each in removed if each == wanted],
                )
                if not written and not removed and wanted not in names:
                    raise CheckpointFailed(f"{file} is not in checkpoint {number}.")
            await asyncio.to_thread(_remove, shadow.root, removed)
            index = shadow.temporary().name
            await shadow.run("read-tree", chosen.tree, index=index)
            if written:
                await shadow.run("checkout-index", "--force", "-z", "--stdin", index=index, given=lines(written))
        return Restored(written=tuple(written), removed=tuple(removed), undo=undo)

    async def prune(self, root: Path, keep: int | None = None) -> int:
        """Delete old checkpoints beyond the limits of number and size. Returns their number."""
        shadow = shadow_of(root, self.folder, self._git)
        if not shadow.is_made:
            return 0
        async with shadow.turn():
            return await self._tidy(shadow, self._settings.keep if keep is None else keep)

    async def roots(self) -> list[Path]:
        """The folders that have checkpoints, including deleted ones."""
        named = await asyncio.to_thread(lambda: sorted(self.folder.glob("*/root")))
        return [Path(path.read_text(errors="surrogateescape").rstrip("\n")) for path in named]

    async def forget(self, root: Path) -> None:
        """Delete all checkpoints of a folder."""
        await asyncio.to_thread(shadow_of(root, self.folder, self._git).remove)

    def _at_once(self, shadow: Shadow, told: Cause, touched: Sequence[Path]) -> tuple[Checkpoint, bool] | None:
        """Fast path of `_take` in one thread, for little change, no other writer and no need of git: less than half
        the time. None if it does not apply. Blocks briefly."""
        with suppress(OSError):  # Whoever goes on says what is wrong.
            if not shadow.is_made:
                return None
            with closing(LockFile(shadow.folder / LOCK)) as lock:
                if not lock.try_lock():
                    return None
                kept, look, _ = self._begun(shadow, touched, whole=told.whole, moment=SOON)
                if look.is_over and kept.last is not None and look.number() <= MANY:
                    return self._record(shadow, kept, look, told, Loose(shadow.folder))
        return None

    async def _take(self, shadow: Shadow, told: Cause, touched: Sequence[Path]) -> Checkpoint:
        kept, look = await self._compare(shadow, whole=told.whole, touched=touched)
        if kept.last is None:
            kept.last = next(iter(await self._list(shadow)), None)
        loose = await self._packed(shadow, kept, look)
        while (done := await in_thread(lambda: self._record(shadow, kept, look, told, loose))) is None:
            pass
        taken, is_full = done
        if is_full:
            await self._tidy(shadow, self._settings.keep)
        return taken

    async def _compare(self, shadow: Shadow, *, whole: bool, touched: Sequence[Path]) -> tuple[Kept, Scan]:
        """The cached state of the folder, and a finished scan of it."""
        kept, look, names = await in_thread(lambda: self._begun(shadow, touched, whole=whole))
        while not look.is_over:
            ignored = await shadow.ignored(names) if names else None
            names = await in_thread(partial(look.go_on, ignored))
        return kept, look

    def _begun(
        self, shadow: Shadow, touched: Sequence[Path], *, whole: bool, moment: float = MOMENT
    ) -> tuple[Kept, Scan, list[bytes]]:
        """A started scan, and the names to check against git's ignore rules. Blocks."""
        now, kept = shadow.sweep(), remembered(shadow)
        names = [os.fsencode(name) for path in touched if (name := _relative(shadow.root, path))]
        root, most = os.fsencode(shadow.root), self._settings.max_files
        look = Scan(root, kept.seen, whole=whole, touched=names, now=now, most=most)
        return kept, look, look.go_on(moment=moment)

    async def _packed(self, shadow: Shadow, kept: Kept, look: Scan) -> Loose:
        """The object store for the rest; many files are written as one pack first."""
        if look.number() > MANY:
            path = shadow.temporary()
            file = await in_thread(lambda: path.open("w+b"))
            with file:
                pack = Pack(file)
                while await in_thread(lambda: look.read(pack, self._largest)):
                    pass
                await in_thread(lambda: look.keep(pack))
                await in_thread(pack.finish)
                kept.written += file.tell()
            await shadow.run("index-pack", "--stdin", given=path)
            await in_thread(path.unlink)
        return Loose(shadow.folder)

    def _record(
        self, shadow: Shadow, kept: Kept, look: Scan, told: Cause, loose: Loose
    ) -> tuple[Checkpoint, bool] | None:
        """Write the checkpoint, unless the last one is equal, and say whether to prune; None if more files must be
        read first. Blocks."""
        if look.read(loose, self._largest):
            return None
        absent = tuple(map(os.fsdecode, look.absent))
        told = msgspec.structs.replace(told, whole=look.whole, absent=absent)
        if kept.last is not None and not look.changed and _stands_for(kept.last, kept.last.tree, told):
            return kept.last, False
        taken, tree = kept.last, look.keep(loose).hex()
        if taken is None or not _stands_for(taken, tree, told):
            number, at = (taken.number if taken else 0) + 1, self._clock.now()
            made = loose.write("commit", commit(tree, at, msgspec.json.encode(_quoted(told)))).hex()
            (shadow.folder / REFS).mkdir(parents=True, exist_ok=True)  # Git takes an empty one away.
            shadow.put(ref(number), f"{made}\n".encode())
            taken = kept.last = Checkpoint(number=number, commit=made, tree=tree, at=at, told=told)
            (shadow.folder / ref(number - self._settings.keep)).unlink(missing_ok=True)
        since, written = kept.since + 1, kept.written + loose.written
        is_full = since >= TIDY_EVERY or written > (self._settings.max_mb << 20) // 4
        since, written = (0, 0) if is_full else (since, written)
        again = Kept(kept.seen, replace(taken, told=_quoted(taken.told)), since, written)
        # Some file systems wait for the disk where a file takes another's place; this one may be lost.
        (shadow.folder / SEEN).unlink(missing_ok=True)
        shadow.put(SEEN, msgspec.msgpack.encode(again))
        return taken, is_full

    async def _list(self, shadow: Shadow) -> list[Checkpoint]:
        if await asyncio.to_thread(shadow.is_empty):
            return []
        form = "%(refname:lstrip=2)%00%(objectname)%00%(tree)%00%(committerdate:unix)%00%(contents:subject)"
        out = await shadow.run("for-each-ref", "--sort=-refname", f"--format={form}", REFS)
        return [_checkpoint(line) for line in out.decode("utf-8", "replace").splitlines()]

    async def _names(self, shadow: Shadow, chosen: Checkpoint) -> list[str]:
        out = await shadow.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", chosen.tree)
        return [os.fsdecode(name) for name in out.split(b"\0") if name]

    async def _changes(self, shadow: Shadow, chosen: Checkpoint, now: Checkpoint) -> tuple[list[str], list[str]]:
        """The files to write and those to remove for a restore."""
        out = await shadow.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", chosen.tree, now.tree)
        fields = [os.fsdecode(field) for field in out.split(b"\0")]
        pairs = list(zip(fields[::2], fields[1::2], strict=False))
        whole = chosen.told.whole and now.told.whole
        removed = [name for status, name in pairs if status == "A" and (whole or name in chosen.told.absent)]
        return [name for status, name in pairs if status != "A"], removed

    async def _tidy(self, shadow: Shadow, keep: int) -> int:
        found, gone = await self._list(shadow), 0
        while True:
            for each in found[keep:]:
                await shadow.run("update-ref", "-d", ref(each.number))
                gone += 1
            await shadow.run("gc", "--quiet", "--prune=now")
            found = found[:keep]
            too_large = await asyncio.to_thread(shadow.size) > self._settings.max_mb << 20
            if not too_large or len(found) <= 1:
                return gone
            keep = len(found) // 2

    @staticmethod
    def _inside(shadow: Shadow, file: str) -> str:
        name = _relative(shadow.root, shadow.root / file)
        if not name:
            raise CheckpointFailed(f"{file} is not below {shadow.root}.")
        return name


def remembered(shadow: Shadow) -> Kept:
    """The cached state of a folder; empty if it does not match the store. Blocks."""
    try:
        kept = msgspec.msgpack.decode((shadow.folder / SEEN).read_bytes(), type=Kept)
    except (FileNotFoundError, msgspec.DecodeError):
        return Kept()
    if kept.last is None or not shadow.has(kept.last.number) or shadow.has(kept.last.number + 1):
        return Kept()
    kept.last = replace(kept.last, told=_unquoted(kept.last.told))
    return kept


def _stands_for(taken: Checkpoint, tree: str, told: Cause) -> bool:
    """Whether an existing checkpoint is equivalent to a new one."""
    before = taken.told
    return taken.tree == tree and before.whole == told.whole and set(told.absent) <= set(before.absent)


def _quoted(told: Cause) -> Cause:
    """The metadata with non-UTF-8 names escaped."""
    absent = tuple(quote_from_bytes(os.fsencode(name)) for name in told.absent)
    return msgspec.structs.replace(told, why=told.why.encode("utf-8", "replace").decode(), absent=absent)


def _unquoted(told: Cause) -> Cause:
    return msgspec.structs.replace(told, absent=tuple(os.fsdecode(unquote_to_bytes(name)) for name in told.absent))


def _checkpoint(line: str) -> Checkpoint:
    number, commit, tree, at, subject = line.split("\0", 4)
    try:
        told = _unquoted(msgspec.json.decode(subject, type=Cause))
    except msgspec.DecodeError:
        told = Cause(why="unknown", whole=False)
    return Checkpoint(number=int(number), commit=commit, tree=tree, at=float(at), told=told)


def _relative(root: Path, path: Path) -> str:
    named = Path(os.path.normpath(path))
    return str(named.relative_to(root)) if named != root and named.is_relative_to(root) else ""


def _is_below(path: Path, root: Path) -> bool:
    return path == root or path.is_relative_to(root)


def _remove(root: Path, names: Sequence[str]) -> None:
    """Remove files, and folders left empty."""
    for name in names:
        path = root / name
        if not _is_below(path.parent.resolve(), root):
            continue
        with suppress(FileNotFoundError):
            path.unlink()
        for folder in path.parents:
            if folder == root or not folder.is_relative_to(root):
                break
            with suppress(OSError):
                folder.rmdir()
