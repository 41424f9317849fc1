"""One folder's shadow repository: git's object store in the home, over files that belong to somebody else."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.host import process
from hermes_agent.host.files import PRIVATE_FOLDER
from hermes_agent.host.held import held
from hermes_agent.tools.files.finder import SKIPPED

SECONDS = 60.0
MOST_OUTPUT = 64 << 20
WHO = "Hermes"
# Contents go in as they are and quickly; what there are many of goes into one pack, the rest into files of their own.
SETTINGS = ("core.autocrlf=false", "core.quotePath=false", "core.looseCompression=0", "gc.auto=0")
PACKED = ("core.bigFileThreshold=1", "core.compression=1", "fastimport.unpackLimit=1")
MANY = 100
PACKS_SINCE = (2, 37)
"""Before this version `update-index` makes a pack of its own for each file."""
NOBODY = "0" * 40
LEFT_OUT = sorted(
    {*SKIPPED, "target", "dist", "build", ".next", ".gradle", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)
"""Folders that are made again rather than kept; what is about to be changed in them is kept all the same."""


class CheckpointFailed(ToolError):
    """There is no checkpoint; the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """The shadow of `root` in `folder` (below `HERMES_HOME/checkpoints`), by the `git` at this path.

    Everything that writes happens inside `turn`: one at a time, over all processes. Git never sees the person's own
    configuration, hooks or repository.
    """

    root: Path
    folder: Path
    git: str

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The right to change the shadow; what a killed process left half-done is swept away first."""
        await asyncio.to_thread(self._make_folder)
        async with held(self.folder / "turn"):
            if not (self.folder / "objects").is_dir():
                await self.run("init", "--quiet", index="")
                await asyncio.to_thread((self.folder / "root").write_text, f"{self.root}\n", errors="surrogateescape")
            await asyncio.to_thread(self._sweep)
            yield

    async def run(
        self,
        *arguments: str,
        index: str = "index",
        given: bytes | None = None,
        dates: Mapping[str, str] | None = None,
        settings: Sequence[str] = (),
    ) -> bytes:
        """What git says to these arguments and what it is `given` to read. Raises `CheckpointFailed` with its words."""
        read = self.folder / f"paths.{os.urandom(4).hex()}"
        words = [self.git, *(part for each in (*SETTINGS, *settings) for part in ("-c", each)), *arguments]
        if given is not None:
            await asyncio.to_thread(read.write_bytes, given)
            words = ["/bin/sh", "-c", 'exec "$@" < "$0"', str(read), *words]
        try:
            env = {**self._environment(index), **(dates or {})}
            ended = await process.run(words, env=env, cwd=str(self.root), seconds=SECONDS, most=MOST_OUTPUT)
        except (OSError, TimeoutError) as error:
            raise CheckpointFailed(f"git {arguments[0]} failed: {str(error) or 'it took too long'}.") from error
        finally:
            if given is not None:
                read.unlink(missing_ok=True)
        if ended.code != 0:
            said = ended.err.decode("utf-8", "replace").strip()[-300:]
            raise CheckpointFailed(f"git {arguments[0]} failed: {said or ended.code}")
        return ended.out

    async def add(self, names: Sequence[str]) -> None:
        """Take these files, as they are now, into the index and the store; those that are gone leave the index."""
        packs = len(names) > MANY and await self._packs()
        settings = PACKED if packs else ()
        words = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        await self.run(*words, given=lines(names), settings=settings)
        if packs:
            listed = await self.run("ls-files", "--stage", "-z")
            await self.run("fast-import", "--quiet", "--depth=0", given=_trees(listed), settings=settings)

    async def _packs(self) -> bool:
        """Whether this git takes many files into one pack."""
        version = re.search(rb"(\d+)\.(\d+)", await self.run("version", index=""))
        return version is not None and (int(version[1]), int(version[2])) >= PACKS_SINCE

    async def commit(self, tree: str, message: bytes, dates: Mapping[str, str]) -> bytes:
        """The name of a new commit of that tree, without a parent."""
        given = self.folder / f"paths.{os.urandom(4).hex()}"
        await asyncio.to_thread(given.write_bytes, message)
        try:
            return await self.run("commit-tree", tree, "-F", str(given), dates=dates)
        finally:
            given.unlink(missing_ok=True)

    def size(self) -> int:
        """Bytes on disk. Blocks."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def remove(self) -> None:
        """Forget all of it. Blocks."""
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
            "GIT_AUTHOR_NAME": WHO,
            "GIT_AUTHOR_EMAIL": "",
            "GIT_COMMITTER_NAME": WHO,
            "GIT_COMMITTER_EMAIL": "",
            "HOME": str(self.folder),
            "PATH": os.defpath,
            "LC_ALL": "C.UTF-8",
        }

    def _make_folder(self) -> None:
        if shutil.which(self.git) is None:
            raise CheckpointFailed("Checkpoints need git, which is not installed.")
        try:
            (self.folder / "info").mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            exclude = self.folder / "info" / "exclude"
            if not exclude.exists():
                exclude.write_text("".join(f"{name}/\n" for name in LEFT_OUT))
                # Contents go in and out as they are, whatever a project's attributes say of filters and line ends.
                (self.folder / "info" / "attributes").write_text("* -text -filter -ident -working-tree-encoding\n")
        except OSError as error:
            raise CheckpointFailed(f"Checkpoints cannot be kept: {error.strerror}.") from error

    def _sweep(self) -> None:
        """Remove what a killed git left: nobody else is at work here now."""
        refs = self.folder / "refs"
        stale = [
            *self.folder.glob("*.lock"),
            *refs.rglob("*.lock"),
            *self.folder.glob("paths.*"),
            *self.folder.glob("at.*"),
        ]
        for path in stale:
            path.unlink(missing_ok=True)


def lines(names: Sequence[str]) -> bytes:
    """Paths as git reads and writes them with `-z`."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def _trees(listed: bytes) -> bytes:
    """What makes `fast-import` write the trees of an index (`ls-files --stage -z`) into one pack, and nothing else:
    `write-tree` would make a file of each, and now finds them."""
    said = [f"commit refs/trees\ncommitter {WHO} <> 0 +0000\ndata 0\n".encode()]
    for row in listed.split(b"\0")[:-1]:
        facts, _, name = row.partition(b"\t")
        mode, blob, _ = facts.split(b" ")
        said.append(b"M %s %s %s\n" % (mode, blob, _quoted(name)))
    said.append(f"reset refs/trees\nfrom {NOBODY}\n\n".encode())
    return b"".join(said)


def _quoted(name: bytes) -> bytes:
    if not any(sign in name for sign in b'\n"\\'):
        return name
    return b'"%s"' % name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def shadow_of(root: Path, checkpoints: Path, git: str) -> Shadow:
    """The shadow of a folder; nothing is made yet."""
    real = Path(os.path.realpath(root))
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return Shadow(root=real, folder=checkpoints / name, git=git)
