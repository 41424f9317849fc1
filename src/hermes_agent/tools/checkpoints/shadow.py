"""Shadow git repository of a folder, kept in the home."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence, Set
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.host import process
from hermes_agent.host.locks import held
from hermes_agent.host.paths import PRIVATE_FOLDER

SECONDS = 60.0
MOST_OUTPUT = 64 << 20
SETTINGS = ("core.autocrlf=false", "core.quotePath=false", "gc.auto=0", "gc.packRefs=false")
REFS = "refs/checkpoints"
INDEX, LOCK = "seen.index", "turn"
LEFT = "paths."
LEFT_BELOW = ("refs/**/*.lock", "objects/*/tmp_*", "objects/pack/.tmp-*", "gc.pid")
"""What a git that was killed leaves below: locks that stop the next one, and packs of any size."""


class CheckpointFailed(ToolError):
    """A file checkpoint could not be taken, found or restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """Shadow git repository of the folder `root`, in `folder` (below `HERMES_HOME/checkpoints`), with the program
    `git`.

    All writes happen inside `turn`, one process at a time. Git does not see the person's configuration or repository.
    """

    root: Path
    folder: Path
    git: str

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Context manager: exclusive write access. Raises `CheckpointFailed`, also for write errors inside the
        block."""
        if shutil.which(self.git) is None:
            raise CheckpointFailed("Checkpoints need git, which is not installed.")
        try:
            if not self.is_made:
                await asyncio.to_thread(self._make)
            async with held(self.folder / LOCK):
                if not self.is_made:
                    await asyncio.to_thread(self._initialize)
                yield
        except OSError as error:
            raise CheckpointFailed(f"Checkpoints cannot be kept: {error.strerror or 'it took too long'}.") from error

    @property
    def is_made(self) -> bool:
        """Whether the repository exists."""
        return (self.folder / "root").exists()

    def has(self, number: int) -> bool:
        """Whether a checkpoint of this number exists as a loose ref. Blocks."""
        return (self.folder / ref(number)).exists()

    def is_empty(self) -> bool:
        """Whether there are no checkpoints. Blocks."""
        return not (self.folder / "packed-refs").exists() and not any((self.folder / REFS).glob("*"))

    async def run(self, *arguments: str, index: str = "", given: bytes | None = None) -> bytes:
        """Run git with these arguments and input. Returns its output. Raises `CheckpointFailed`."""
        words = [self.git, *(part for each in SETTINGS for part in ("-c", each)), *arguments]
        env, cwd = self._environment(index), str(self.folder)
        try:
            ended = await process.run(words, env=env, data=given, cwd=cwd, seconds=SECONDS, most=MOST_OUTPUT)
        except (OSError, TimeoutError) as error:
            quoted = Quoted(text=str(error) or "it took too long", origin=Origin.TOOL)
            raise CheckpointFailed(f"git {arguments[0]} failed:", quoted=quoted) from error
        if ended.code:
            said = ended.err.decode("utf-8", "replace").strip()[-300:]
            quoted = Quoted(text=said or str(ended.code), origin=Origin.TOOL)
            raise CheckpointFailed(f"git {arguments[0]} failed:", quoted=quoted)
        return ended.out

    def temporary(self) -> Path:
        """A temporary file name; `sweep` removes leftovers of killed processes."""
        return self.folder / f"{LEFT}{os.urandom(4).hex()}"

    def sweep(self, *, below: bool = False) -> None:
        """Remove leftovers of killed processes, those `below` too, as always where git left a lock; requires exclusive
        access. Blocks."""
        names = [path for path in self.folder.iterdir() if path.name.startswith((LEFT, "index"))]
        locks = list(self.folder.glob("*.lock"))
        if below or locks:
            names += [path for pattern in LEFT_BELOW for path in self.folder.glob(pattern)]
        for path in (*names, *locks):
            path.unlink(missing_ok=True)

    def put(self, name: str, content: bytes) -> None:
        """Write a file atomically. Blocks."""
        path = self.temporary()
        path.write_bytes(content)
        path.replace(self.folder / name)

    def size(self) -> int:
        """Size on disk in bytes. Blocks."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def remove(self) -> None:
        """Delete the repository. Blocks."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _environment(self, index: str) -> dict[str, str]:
        return {
            "GIT_DIR": str(self.folder),
            "GIT_WORK_TREE": str(self.root),
            **({"GIT_INDEX_FILE": str(self.folder / index)} if index else {}),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": str(self.folder),
            "PATH": os.defpath,
            "LC_ALL": "C.UTF-8",
        }

    def _make(self) -> None:
        for name in ("", "objects/pack", "info", REFS):
            (self.folder / name).mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)

    def _initialize(self) -> None:
        """Write the files that make the folder a git repository."""
        self.put("HEAD", b"ref: refs/heads/none\n")
        # Contents go out as they are, whatever a project's attributes say of filters and line ends.
        self.put("info/attributes", b"* -text -filter -ident -working-tree-encoding\n")
        self.put("root", os.fsencode(self.root) + b"\n")


def commit(root: str, at: float, message: bytes) -> bytes:
    """Content of a commit object without parent."""
    by = f"Hermes <> {at:.0f} +0000"
    return f"tree {root}\nauthor {by}\ncommitter {by}\n\n".encode() + message + b"\n"


def ref(number: int) -> str:
    """The git ref of a checkpoint."""
    return f"{REFS}/{number:08}"


def lines(names: Iterable[str]) -> bytes:
    """NUL-terminated paths, as git reads them with `-z`."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def named(out: bytes) -> list[str]:
    """The paths in such an output."""
    return [os.fsdecode(name) for name in out.split(b"\0") if name]


def shadow_of(root: Path, checkpoints: Path, git: str) -> Shadow:
    """The shadow of a folder, without creating it."""
    real = Path(os.path.realpath(root))
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return Shadow(root=real, folder=checkpoints / name, git=git)


def _is_below(path: Path, root: Path) -> bool:
    return path == root or path.is_relative_to(root)


def in_the_way(root: Path, written: Sequence[str], removed: Set[str]) -> list[str]:
    """The folders that stand where a file was, and have files that are not to be removed. Blocks."""
    return [
        name
        for name in written
        if not (root / name).is_symlink()
        and any(
            os.path.relpath(Path(folder, each), root) not in removed
            for folder, _, files in os.walk(root / name)
            for each in files
        )
    ]


def remove(root: Path, names: Sequence[str]) -> None:
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
