"""Checkpoint store: saves, lists, compares, restores and prunes snapshots of folders."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import stat
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.locks import in_thread
from hermes_agent.tools.checkpoints.shadow import (
    INDEX,
    REFS,
    SECONDS,
    CheckpointFailed,
    Shadow,
    commit,
    in_the_way,
    lines,
    named,
    ref,
    remove,
    shadow_of,
)
from hermes_agent.tools.files.finder import SKIPPED
from hermes_agent.tools.settings import CheckpointSettings

SEEN = "seen"
log = logging.getLogger(__name__)
LATER = re.compile(
    r"(^|/)(\.github/(workflows|actions)/.*|\.gitlab-ci\.yml|\.circleci/.*|Jenkinsfile|azure-pipelines\.yml|\.envrc|[Mm]akefile"
    r"|GNUmakefile|[Jj]ustfile|package\.json|\.vscode/(tasks|launch|settings)\.json|\.idea/runConfigurations/.*|conftest\.py"
    r"|sitecustomize\.py|setup\.py|build\.rs|\.husky/.*|\.githooks/.*|\.pre-commit-config\.yaml|Dockerfile|docker-compose\.ya?ml"
    r"|AGENTS\.md|CLAUDE\.md|\.mcp\.json|\.npmrc|\.gitattributes|\.bashrc|\.profile|\.zshrc)$"
)
"""Files that programs and people run, or speak to the agent with, later and outside any wall."""
LEFT_OUT = sorted(
    {*SKIPPED, "target", "dist", "build", ".next", ".gradle", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)
"""Folders that are made again rather than kept; what is about to be changed in them is kept all the same."""
LISTED = (
    *("ls-files", "-z", "--others", "--modified", "--exclude-per-directory=.gitignore"),
    *(f"--exclude={name}/" for name in LEFT_OUT),
)
"""Names the files that are new, changed or gone since an index was brought in step."""
MANY = 100
"""Files from which on a pack is made: each alone would be a file of the store."""
TIDY_EVERY = 50
NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The tree of an empty folder, which git knows."""


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
    """Result of restoring a checkpoint: files written, files removed, those left as they are since what they hold now
    is in no checkpoint, and the checkpoint that undoes it."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    undo: Checkpoint
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a folder holds: its tree, whether of all files, and the bytes of those that were read."""

    tree: str
    whole: bool
    size: int = 0


class Kept(msgspec.Struct):
    """What is remembered of a folder between two checkpoints, and may be lost: the last checkpoint, and how many
    checkpoints and bytes were written since the last pruning."""

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
        async with shadow.turn(), asyncio.timeout(SECONDS):
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
            index = shadow.temporary()
            with suppress(FileNotFoundError):  # With its time: git knows by it which files may have changed since.
                await in_thread(lambda: shutil.copy2(shadow.folder / INDEX, index))
            now = (await self._look(shadow, index.name, touched, whole=chosen.told.whole)).tree
            rest = ["--", f":(literal){self._inside(shadow, file)}"] if file else []
            out = await shadow.run("diff", "--no-color", "--no-ext-diff", "--no-textconv", chosen.tree, now, *rest)
        text = out.decode("utf-8", "replace")
        later = [name for name in changed_in(text) if LATER.search(name)]
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
            left = await in_thread(lambda: _unkept(shadow.root, (*written, *removed), self._largest))
            written, removed = ([each for each in names if each not in left] for names in (written, removed))
            if named := await asyncio.to_thread(in_the_way, shadow.root, written, frozenset(removed)):
                stands = f"{', '.join(named)} was a file and is a folder now"
                raise CheckpointFailed(f"{stands}, with files that no checkpoint has: move it first.")
            await asyncio.to_thread(remove, shadow.root, removed)
            index = shadow.temporary().name
            await shadow.run("read-tree", chosen.tree, index=index)
            if written:
                await shadow.run("checkout-index", "--force", "-z", "--stdin", index=index, given=lines(written))
        return Restored(written=tuple(written), removed=tuple(removed), undo=undo, left=left)

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

    async def _take(self, shadow: Shadow, told: Cause, touched: Sequence[Path]) -> Checkpoint:
        await in_thread(shadow.sweep)
        kept = await in_thread(lambda: remembered(shadow))
        last = kept.last or next(iter(await self._list(shadow)), None)
        if last is not None and not (shadow.folder / INDEX).exists():
            await shadow.run("read-tree", last.tree, index=INDEX)
        try:
            look = await self._look(shadow, INDEX, touched, whole=told.whole)
        except CheckpointFailed:  # A damaged index would fail for ever: it is made again, once.
            (shadow.folder / INDEX).unlink(missing_ok=True)
            await shadow.run("read-tree", last.tree if last is not None else "--empty", index=INDEX)
            look = await self._look(shadow, INDEX, touched, whole=told.whole)
        told = msgspec.structs.replace(told, whole=look.whole, absent=_absent(shadow.root, touched))
        if last is None or not _stands_for(last, look.tree, told):
            number, at = (last.number if last else 0) + 1, self._clock.now()
            content = commit(look.tree, at, msgspec.json.encode(_quoted(told)))
            made = await shadow.run("hash-object", "-t", "commit", "-w", "--stdin", given=content)
            last = Checkpoint(number=number, commit=made.decode().strip(), tree=look.tree, at=at, told=told)
            kept = Kept(last, kept.since + 1, kept.written + look.size)
            await in_thread(lambda: self._record(shadow, kept, made))
            if kept.since >= TIDY_EVERY or kept.written > (self._settings.max_mb << 20) // 4:
                kept.since = kept.written = 0
                await in_thread(lambda: _remember(shadow, kept))
                try:
                    await self._tidy(shadow, self._settings.keep)
                except CheckpointFailed as error:  # The checkpoint is there all the same.
                    log.warning("Old checkpoints of %s stay: %s", shadow.root, error)
        return last

    def _record(self, shadow: Shadow, kept: Kept, made: bytes) -> None:
        """Write the reference of a checkpoint, in place of one that is too old. Blocks."""
        assert kept.last is not None  # it was made just now
        (shadow.folder / REFS).mkdir(parents=True, exist_ok=True)  # Git takes an empty one away.
        shadow.put(ref(kept.last.number), made)
        (shadow.folder / ref(kept.last.number - self._settings.keep)).unlink(missing_ok=True)
        _remember(shadow, kept)

    async def _look(self, shadow: Shadow, index: str, touched: Sequence[Path], *, whole: bool) -> Look:
        """Bring an index in step with the folder; what it holds then. Without `whole`, and of too many changed files,
        a look at those that are `touched` alone."""
        if not shadow.root.is_dir():
            return Look(tree=NOTHING, whole=whole)
        out = await shadow.run(*LISTED, index=index) if whole else b""
        changed = {name for name in named(out) if not name.endswith("/")}  # A folder is a repository of its own.
        whole = whole and len(changed) <= self._settings.max_files
        named_too = {name for path in touched if (name := _relative(shadow.root, path))}
        new = changed if whole else frozenset()
        index = index if whole else shadow.temporary().name  # Which has nothing that nobody looked at.
        names, size = await in_thread(lambda: _keepable(shadow.root, new, named_too, self._largest))
        if names:
            packs = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=1") if len(names) > MANY else ()
            words = (*packs, "update-index", "-z", "--add", "--remove", "--replace", "--stdin")
            await shadow.run(*words, index=index, given=lines(names))
        tree = (await shadow.run("write-tree", index=index)).decode().strip()
        return Look(tree=tree, whole=whole, size=size)

    async def _list(self, shadow: Shadow) -> list[Checkpoint]:
        if await asyncio.to_thread(shadow.is_empty):
            return []
        form = "%(refname:lstrip=2)%00%(objectname)%00%(tree)%00%(committerdate:unix)%00%(contents:subject)"
        out = await shadow.run("for-each-ref", "--sort=-refname", f"--format={form}", REFS)
        return [_checkpoint(line) for line in out.decode("utf-8", "replace").splitlines()]

    async def _names(self, shadow: Shadow, chosen: Checkpoint) -> list[str]:
        out = await shadow.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", chosen.tree)
        return named(out)

    async def _changes(self, shadow: Shadow, chosen: Checkpoint, now: Checkpoint) -> tuple[list[str], list[str]]:
        """The files to write and those to remove for a restore."""
        out = await shadow.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", chosen.tree, now.tree)
        fields = [os.fsdecode(field) for field in out.split(b"\0")]
        pairs = list(zip(fields[::2], fields[1::2], strict=False))
        whole = chosen.told.whole and now.told.whole
        removed = [name for status, name in pairs if status == "A" and (whole or name in chosen.told.absent)]
        return [name for status, name in pairs if status != "A"], removed

    async def _tidy(self, shadow: Shadow, keep: int) -> int:
        await in_thread(lambda: shadow.sweep(below=True))
        found, gone = await self._list(shadow), 0
        while True:
            for each in found[keep:]:
                await shadow.run("update-ref", "-d", ref(each.number))
                gone += 1
            if not (found := found[:keep]):
                (shadow.folder / INDEX).unlink(missing_ok=True)
            await shadow.run("gc", "--quiet", "--prune=now", index=INDEX)
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


def _remember(shadow: Shadow, kept: Kept) -> None:
    last = kept.last and replace(kept.last, told=_quoted(kept.last.told))
    shadow.put(SEEN, msgspec.msgpack.encode(msgspec.structs.replace(kept, last=last)))


def _absent(root: Path, touched: Sequence[Path]) -> tuple[str, ...]:
    """The files that are about to be created."""
    return tuple(name for path in touched if (name := _relative(root, path)) and not os.path.lexists(path))


def _keepable(root: Path, changed: Set[str], touched: Set[str], largest: int) -> tuple[list[str], int]:
    """The names of which git is to look at what is there, and the bytes of their files: not what is reached through a
    link, is too large, cannot be read, or is no file. Blocks."""
    kept, total = list[str](), 0
    for name in sorted(changed | touched):
        path, size = root / name, 0
        if os.path.realpath(path.parent) != str(path.parent):
            continue
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            kept.append(name)
            continue
        except OSError:
            continue  # It stays as it is known.
        if stat.S_ISREG(found.st_mode):
            size, fits = found.st_size, _fits(path, found, largest)
        else:
            fits = stat.S_ISLNK(found.st_mode) or (stat.S_ISDIR(found.st_mode) and name in changed)
        kept += [name] if fits else []
        total += size if fits else 0
    return kept, total


def _fits(path: Path, found: os.stat_result, largest: int) -> bool:
    return found.st_size <= largest and os.access(path, os.R_OK)


def _unkept(root: Path, names: Sequence[str], largest: int) -> tuple[str, ...]:
    """Those of the names where a file stands that no checkpoint takes. Blocks."""
    left = list[str]()
    for name in names:
        with suppress(OSError):
            found = (root / name).lstat()
            left += [name] if stat.S_ISREG(found.st_mode) and not _fits(root / name, found, largest) else []
    return tuple(left)


def changed_in(diff: str) -> list[str]:
    """The files that a diff of git names."""
    return re.findall(r'^diff --git .* "?b/(.+?)"?$', diff, re.MULTILINE)


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
