"""Takes checkpoints of folders, tells what changed since, and puts files back."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.tools.checkpoints.settings import CheckpointSettings
from hermes_agent.tools.checkpoints.shadow import CheckpointFailed, Shadow, lines, shadow_of

REFS = "refs/checkpoints/"
TIDY_EVERY = 10


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a checkpoint says of itself: before what it was taken, in which session, and whether of the whole folder.
    `absent` are files that were about to be made."""

    why: str
    session: str = ""
    whole: bool = True
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One checkpoint: its number in its folder (they only grow), when it was taken, and what it says of itself."""

    number: int
    commit: str
    tree: str
    at: float
    told: Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore did: the files put back, those removed, and the checkpoint that undoes it."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    undo: Checkpoint


class Checkpoints:
    """The checkpoints below `folder` (`HERMES_HOME/checkpoints`), taken with `git`."""

    def __init__(self, folder: Path, settings: CheckpointSettings, clock: Clock, *, git: str = "git") -> None:
        self.folder = folder
        self._settings = settings
        self._clock = clock
        self._git = git

    async def take(self, root: Path, told: Told, touched: Sequence[Path] = ()) -> Checkpoint:
        """How the folder is now; where nothing changed since the last checkpoint, that one. `touched` are kept whatever
        else is left out. Raises `CheckpointFailed`."""
        shadow = shadow_of(root, self.folder, self._git)
        async with shadow.turn():
            return await self._take(shadow, told, touched)

    async def of(self, root: Path) -> list[Checkpoint]:
        """The folder's checkpoints, the latest first."""
        shadow = shadow_of(root, self.folder, self._git)
        return await self._list(shadow) if (shadow.folder / "objects").is_dir() else []

    async def find(self, root: Path, number: int) -> Checkpoint:
        """One checkpoint. Raises `CheckpointFailed` with those that there are."""
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
        """What changed in the folder, or in one file, from the checkpoint to now."""
        shadow, chosen = shadow_of(root, self.folder, self._git), await self.find(root, number)
        async with shadow.turn():
            now, _ = await self._now(shadow, whole=chosen.told.whole, touched=await self._names(shadow, chosen))
            rest = ["--", self._inside(shadow, file)] if file else []
            out = await shadow.run("diff", "--no-color", "--no-ext-diff", "--no-textconv", chosen.tree, now, *rest)
        return out.decode("utf-8", "replace")

    async def restore(self, root: Path, number: int, file: str = "") -> Restored:
        """Put the folder, or one file, back to how it was; a checkpoint is taken first, so that this can be undone."""
        shadow, chosen = shadow_of(root, self.folder, self._git), await self.find(root, number)
        async with shadow.turn():
            names = await self._names(shadow, chosen)
            told = Told(why=f"rollback to {number}", whole=chosen.told.whole)
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
            await shadow.run("read-tree", chosen.tree, index="at.restore")
            if written:
                await shadow.run("checkout-index", "--force", "-z", "--stdin", index="at.restore", given=lines(written))
        return Restored(written=tuple(written), removed=tuple(removed), undo=undo)

    async def prune(self, root: Path, keep: int | None = None) -> int:
        """Forget all but the latest, and those beyond the limit of size; how many those were."""
        shadow = shadow_of(root, self.folder, self._git)
        if not (shadow.folder / "objects").is_dir():
            return 0
        async with shadow.turn():
            return await self._tidy(shadow, self._settings.keep if keep is None else keep)

    async def roots(self) -> list[Path]:
        """The folders that have checkpoints, also those that are gone by now."""
        named = await asyncio.to_thread(lambda: sorted(self.folder.glob("*/root")))
        return [Path(path.read_text(errors="surrogateescape").rstrip("\n")) for path in named]

    async def forget(self, root: Path) -> None:
        """Remove everything that is kept of a folder."""
        await asyncio.to_thread(shadow_of(root, self.folder, self._git).remove)

    async def _take(self, shadow: Shadow, told: Told, touched: Sequence[Path]) -> Checkpoint:
        names = [name for path in touched if (name := _relative(shadow.root, path))]
        tree, whole = await self._now(shadow, whole=told.whole, touched=names)
        absent = await asyncio.to_thread(_absent, shadow.root, names)
        before = await self._list(shadow)
        told = msgspec.structs.replace(told, whole=whole, absent=absent)
        if (
            before
            and before[0].tree == tree
            and set(absent) <= set(before[0].told.absent)
            and before[0].told.whole == whole
        ):
            return before[0]
        number, at = (before[0].number if before else 0) + 1, self._clock.now()
        dates = {"GIT_AUTHOR_DATE": f"@{at:.0f} +0000", "GIT_COMMITTER_DATE": f"@{at:.0f} +0000"}
        commit = (await shadow.commit(tree, _message(told), dates)).decode().strip()
        await shadow.run("update-ref", f"{REFS}{number:08}", commit)
        if number % TIDY_EVERY == 0:
            await self._tidy(shadow, self._settings.keep)
        return Checkpoint(number=number, commit=commit, tree=tree, at=at, told=told)

    async def _now(self, shadow: Shadow, *, whole: bool, touched: Sequence[str]) -> tuple[str, bool]:
        """The tree of the files as they are now, and whether it is of all files; the index is kept, so that the next
        one reads only what changed."""
        listed = b""
        if whole:
            kinds = ("--others", "--modified", "--deleted", "--exclude-standard")
            listed = await shadow.run("ls-files", "-z", *kinds)
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name and not name.endswith(b"/")]
        if len(names) > self._settings.max_files:
            whole, names = False, []
        fitting = await asyncio.to_thread(self._fitting, shadow.root, list(dict.fromkeys([*names, *touched])))
        if fitting:
            await shadow.add(fitting)
        return (await shadow.run("write-tree")).decode().strip(), whole

    def _fitting(self, root: Path, names: Sequence[str]) -> list[str]:
        """Those that are gone, links, or files within the limit of size; none in a folder that a link leads out to."""
        most, inside = self._settings.max_file_mb << 20, {}
        fitting = []
        for name in names:
            folder = os.path.dirname(name)  # noqa: PTH120 - of thousands of names, most in the same folders
            if folder not in inside:
                inside[folder] = _is_below((root / folder).resolve(), root)
            if inside[folder] and _fits(f"{root}/{name}", most):
                fitting.append(name)
        return fitting

    async def _list(self, shadow: Shadow) -> list[Checkpoint]:
        form = "%(refname:lstrip=2)%00%(objectname)%00%(tree)%00%(committerdate:unix)%00%(contents:subject)"
        out = await shadow.run("for-each-ref", "--sort=-refname", f"--format={form}", REFS)
        return [_checkpoint(line) for line in out.decode("utf-8", "replace").splitlines()]

    async def _names(self, shadow: Shadow, chosen: Checkpoint) -> list[str]:
        out = await shadow.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", chosen.tree)
        return [os.fsdecode(name) for name in out.split(b"\0") if name]

    async def _changes(self, shadow: Shadow, chosen: Checkpoint, now: Checkpoint) -> tuple[list[str], list[str]]:
        """The files to write and those to remove, so that the folder is as it was."""
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
                await shadow.run("update-ref", "-d", f"{REFS}{each.number:08}")
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


def _fits(path: str, most: int) -> bool:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_size <= most)


def _message(told: Told) -> bytes:
    """A line that holds any name: those of files need not be UTF-8."""
    absent = tuple(quote_from_bytes(os.fsencode(name)) for name in told.absent)
    why = told.why.encode("utf-8", "replace").decode()
    return msgspec.json.encode(msgspec.structs.replace(told, why=why, absent=absent))


def _checkpoint(line: str) -> Checkpoint:
    number, commit, tree, at, subject = line.split("\0", 4)
    try:
        told = msgspec.json.decode(subject, type=Told)
        absent = tuple(os.fsdecode(unquote_to_bytes(name)) for name in told.absent)
        told = msgspec.structs.replace(told, absent=absent)
    except msgspec.DecodeError:
        told = Told(why="unknown", whole=False)
    return Checkpoint(number=int(number), commit=commit, tree=tree, at=float(at), told=told)


def _relative(root: Path, path: Path) -> str:
    named = Path(os.path.normpath(path))
    return str(named.relative_to(root)) if named != root and named.is_relative_to(root) else ""


def _absent(root: Path, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if not os.path.lexists(root / name))


def _is_below(path: Path, root: Path) -> bool:
    return path == root or path.is_relative_to(root)


def _remove(root: Path, names: Sequence[str]) -> None:
    """Remove files, and the folders that this leaves empty."""
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
