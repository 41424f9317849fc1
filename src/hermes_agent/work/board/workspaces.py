"""Files and workspaces of cards: made before the work, kept with the card, and removed where nothing can be lost."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.errors import HermesError
from hermes_agent.host.paths import Home, write_private
from hermes_agent.host.process import run
from hermes_agent.store.work.cards import Card, CardFile, Workspace

ID = re.compile(r"t_[0-9a-f]{6}")
# Nothing that a repository configures runs a program here.
SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
SECONDS = 300.0
UNFINISHED = ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")
BARE = {"HEAD", "objects", "refs"}


class Kept(HermesError):
    """A workspace is not removed; the sentence says why."""


class Workspaces:
    """The workspaces of this machine: scratch folders and worktrees below `root`, each named like its card."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self._root = root
        quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        self._env = {**{name: text for name, text in env.items() if not name.startswith("GIT_")}, **quiet}

    async def prepare(self, card: Card) -> tuple[str, str]:
        """The folder and branch of a card, made where they are not there yet. Raises `HermesError`."""
        if card.workspace is Workspace.DIR:
            if not await asyncio.to_thread(
                lambda: Path(card.folder).is_dir() and os.path.realpath(card.folder) == card.folder
            ):
                raise HermesError(f"The folder {card.folder} is gone, or a link stands in its place.")
            return card.folder, ""
        path = self._path(card.id)
        await asyncio.to_thread(self._root.mkdir, mode=0o700, parents=True, exist_ok=True)
        if card.workspace is Workspace.SCRATCH:
            await asyncio.to_thread(_make, path)
            return str(path), ""
        branch = card.branch or f"hermes/{card.id}"
        if not await asyncio.to_thread(path.is_dir):
            known = await self._git(card.source, "rev-parse", "-q", "--verify", f"refs/heads/{branch}")
            which = ("--", str(path), branch) if known is not None else ("-b", branch, "--", str(path))
            await self._checked(card.source, "worktree", "add", *which)
        elif str(path) not in await self._registered(card.source):
            raise HermesError(f"{path} is there and is no worktree of {card.source}: move it away.")
        return str(path), branch

    async def remove(self, card: Card) -> str:
        """Remove the workspace of an archived card; what was done, in a few words. Raises `Kept`."""
        path = self._path(card.id)
        if card.workspace is Workspace.DIR:
            return "the folder stays"
        if not await asyncio.to_thread(os.path.lexists, path):
            return "there is no workspace"
        if card.folder != str(path):
            raise Kept(f"{path} is not what the card names as its workspace.")
        if card.workspace is Workspace.SCRATCH:
            await asyncio.to_thread(self._remove_scratch, card.id)
            return "the scratch folder was removed"
        await self._check_worktree(card, path)
        if await self._git(card.source, "worktree", "remove", "--", str(path)) is None:
            raise Kept(f"git does not remove the worktree {path}.")
        return "the worktree was removed; its branch stays"

    def _path(self, card: str) -> Path:
        if not ID.fullmatch(card):
            raise Kept(f"`{card}` is no id of a card.")
        return self._root / card

    def _remove_scratch(self, name: str) -> None:
        """Remove a folder right below the root, through handles, so that no link leads elsewhere."""
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.stat(name, dir_fd=root, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode) or found.st_dev != os.fstat(root).st_dev:
                raise Kept(f"{self._root / name} is a link, a file or a mount.")
            for problem in _precious(name, root, found.st_dev):
                raise Kept(f"{self._root / name} stays: {problem}.")
            shutil.rmtree(name, dir_fd=root)
        except OSError as error:
            raise Kept(f"{self._root / name} cannot be removed: {error.strerror}.") from error
        finally:
            os.close(root)

    async def _check_worktree(self, card: Card, path: Path) -> None:
        """Raise `Kept` unless this is our own worktree, whole in the repository, with nothing but committed files."""
        common = await self._git(card.source, "rev-parse", "--path-format=absolute", "--git-common-dir")
        admin = await asyncio.to_thread(_admin_of, path, (common or "").strip())
        if not admin or str(path) not in await self._registered(card.source):
            raise Kept(f"{path} is no worktree of {card.source}.")
        if left := await asyncio.to_thread(lambda: [each for each in UNFINISHED if os.path.lexists(admin / each)]):
            raise Kept(f"{path} stays: something is unfinished there ({left[0]}).")
        if await self._git(str(path), "symbolic-ref", "-q", "HEAD") is None:
            raise Kept(f"{path} stays: it is on no branch.")
        said = await self._git(str(path), "status", "--porcelain", "--ignored", "--untracked-files=all")
        if said is None or said.strip():
            raise Kept(f"{path} stays: it has files that are not committed.")

    async def _registered(self, source: str) -> list[str]:
        """The worktrees of a repository, without the main one."""
        said = await self._git(source, "worktree", "list", "--porcelain") or ""
        return [line.removeprefix("worktree ") for line in said.splitlines() if line.startswith("worktree ")][1:]

    async def _checked(self, folder: str, *words: str) -> None:
        if await self._git(folder, *words) is None:
            raise HermesError(f"`git {' '.join(words[:2])}` failed in {folder}: is it a repository with a commit?")

    async def _git(self, folder: str, *words: str) -> str | None:
        """What git says; None where it fails."""
        try:
            done = await run(("git", *SAFE, "-C", folder, *words), env=self._env, seconds=SECONDS)
        except (OSError, TimeoutError):
            return None
        return None if done.code or done.cut else done.out.decode("utf-8", "surrogateescape")


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if path.is_symlink() or not path.is_dir():
            raise HermesError(f"{path} stands where the card's folder must be: move it away.") from None
    except OSError as error:
        raise HermesError(f"{path} cannot be made: {error.strerror}.") from error


def _admin_of(path: Path, common: str) -> Path | None:
    """The folder in which the repository keeps this worktree, where both name each other."""
    try:
        if path.is_symlink() or not path.is_dir() or not stat.S_ISREG((path / ".git").lstat().st_mode):
            return None
        named = (path / ".git").read_text().strip().removeprefix("gitdir: ")
        admin = Path(named)
        ours = common and admin.resolve().parent == (Path(common) / "worktrees").resolve()
        return admin if ours and (admin / "gitdir").read_text().strip() == str(path / ".git") else None
    except (OSError, ValueError):
        return None


def _precious(name: str, root: int, device: int) -> Iterator[str]:
    """Why a scratch folder may hold what exists nowhere else."""
    for _, folders, files, handle in os.fwalk(name, dir_fd=root, follow_symlinks=False):
        if os.fstat(handle).st_dev != device:
            yield "something is mounted in it"
        if ".git" in folders or ".git" in files or {*folders, *files} >= BARE:
            yield "a git repository is in it"


LARGEST = 25 << 20
FOLDER = "board"
MOST_COPIES = 20


def read_file(path: str, folder: str, *, confined: bool) -> tuple[str, bytes]:
    """Name and content of a regular file of at most 25 MB; where `confined`, only one in the folder. Raises
    `HermesError`. Blocks."""
    if not path or "\0" in path or ".." in Path(path).parts:
        raise HermesError(f"`{path}` cannot be attached: name a file without `..`.")
    if not folder and (confined or not Path(path).is_absolute()):
        raise HermesError(f"{path}: say its whole path; the card has no workspace yet.")
    full = Path(folder) / path
    if confined:
        full = full.parent.resolve() / full.name
        if not full.is_relative_to(Path(folder).resolve()):
            raise HermesError(f"{path} leads out of the workspace.")
    try:
        handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise HermesError(f"{path} cannot be attached: {error.strerror}.") from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise HermesError(f"{path} cannot be attached: it is not a file.")
        if found.st_size > LARGEST:
            raise HermesError(f"{path} has {found.st_size >> 20:,} MB; at most {LARGEST >> 20} can be attached.")
        with os.fdopen(os.dup(handle), "rb") as file:
            return full.name, file.read(LARGEST)
    finally:
        os.close(handle)


def keep_file(home: Home, card: str, name: str, content: bytes, who: str) -> CardFile:
    """Store the content for the card; durable when it returns. Blocks."""
    digest = hashlib.sha256(content).hexdigest()
    folder = home.base / FOLDER / card
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / digest[:32]
    write_private(path, content)
    return CardFile(card=card, name=name, sha256=digest, bytes=len(content), path=str(path), by=who)


def copy_file(file: CardFile, folder: str) -> str:
    """Copy a kept file into a folder under its name, beside what is there; its path. Raises `HermesError`. Blocks."""
    content, name = Path(file.path).read_bytes(), Path(folder) / file.name
    for number in range(MOST_COPIES):
        path = name if not number else name.with_name(f"{name.stem}-{number}{name.suffix}")
        with suppress(FileExistsError):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as there:
                there.write(content)
            return str(path)
    raise HermesError(f"{name} is there {MOST_COPIES} times already.")


def drop_files(kept: Iterable[CardFile]) -> None:
    """Remove the copies of a card that is gone. Blocks."""
    for folder in {Path(file.path).parent for file in kept}:
        shutil.rmtree(folder, ignore_errors=True)
