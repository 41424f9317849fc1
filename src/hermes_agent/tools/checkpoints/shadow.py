"""Shadow git repository of a folder, kept in the home; small changes are written without git processes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.host import process
from hermes_agent.host.locks import held
from hermes_agent.host.paths import PRIVATE_FOLDER

KINDS = {"commit": 1, "tree": 2, "blob": 3}
FOLDER, LINK, FILE, PROGRAM = 0o40000, 0o120000, 0o100644, 0o100755
COPIED = 1 << 20


class Objects(Protocol):
    """Writer of git objects.

    - `write` stores an object and returns its name (20 bytes); duplicates are stored once.
    """

    def write(self, kind: str, content: bytes) -> bytes: ...


class Loose:
    """Writer that stores each git object in a file of its own (loose), atomically."""

    def __init__(self, repository: Path) -> None:
        self._folder = repository / "objects"
        self.written = 0
        """Bytes so far."""

    def write(self, kind: str, content: bytes) -> bytes:
        head = b"%s %d\0" % (kind.encode(), len(content))
        name = named(head, content)
        path = self._folder / name.hex()[:2] / name.hex()[2:]
        if not _is_there(path):
            path.parent.mkdir(exist_ok=True)
            temporary = path.with_name(f"tmp_obj_{os.urandom(4).hex()}")
            temporary.write_bytes(zlib.compress(head + content, 0))
            temporary.rename(path)
            self.written += len(content)
        return name


class Pack:
    """Writer that puts git objects into one pack file for `git index-pack`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._names: set[bytes] = set()
        self.written = 0
        """Bytes so far."""
        self._head()

    def write(self, kind: str, content: bytes) -> bytes:
        name = named(b"%s %d\0" % (kind.encode(), len(content)), content)
        if name not in self._names:
            self._names.add(name)
            self.written += self._file.write(_entry_head(KINDS[kind], len(content)) + zlib.compress(content, 1))
        return name

    def finish(self) -> None:
        """Write the object count and the checksum."""
        self._file.seek(0)
        self._head()
        self._file.seek(0)
        checksum = hashlib.sha1(usedforsecurity=False)
        while part := self._file.read(COPIED):
            checksum.update(part)
        self._file.write(checksum.digest())
        self._file.flush()

    def _head(self) -> None:
        self._file.write(b"PACK" + (2).to_bytes(4) + len(self._names).to_bytes(4))


def tree(entries: Iterable[tuple[bytes, int, bytes]]) -> bytes:
    """Content of a tree object; git sorts folders as if their names ended in a slash."""
    rows = sorted(entries, key=lambda row: row[0] + b"/" if row[1] == FOLDER else row[0])
    return b"".join(b"%o %s\0%s" % (mode, name, blob) for name, mode, blob in rows)


def commit(root: str, at: float, message: bytes) -> bytes:
    """Content of a commit object without parent."""
    by = f"Hermes <> {at:.0f} +0000"
    return f"tree {root}\nauthor {by}\ncommitter {by}\n\n".encode() + message + b"\n"


def named(head: bytes, content: bytes) -> bytes:
    """The name (SHA-1) of an object."""
    found = hashlib.sha1(head, usedforsecurity=False)
    found.update(content)
    return found.digest()


def _is_there(path: Path) -> bool:
    """Whether an object file exists; an empty one was left by a machine crash."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _entry_head(kind: int, size: int) -> bytes:
    """Pack entry header: kind and variable-length size."""
    first, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(first | 128)
        first, size = size & 127, size >> 7
    out.append(first)
    return bytes(out)


SECONDS = 60.0
MOST_OUTPUT = 64 << 20
SETTINGS = ("core.autocrlf=false", "core.quotePath=false", "gc.auto=0", "gc.packRefs=false")
REFS = "refs/checkpoints"
LOCK = "turn"
LEFT = "paths."


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

    async def run(self, *arguments: str, index: str = "", given: bytes | Path | None = None, fine: int = 0) -> bytes:
        """Run git with these arguments and input. Returns its output. Raises `CheckpointFailed` for an exit code
        above `fine`."""
        words = [self.git, *(part for each in SETTINGS for part in ("-c", each)), *arguments]
        read = await asyncio.to_thread(self._written, given) if isinstance(given, bytes) else given
        if read is not None:
            words = ["/bin/sh", "-c", 'exec "$@" < "$0"', str(read), *words]
        try:
            ended = await process.run(
                words, env=self._environment(index), cwd=str(self.root), seconds=SECONDS, most=MOST_OUTPUT
            )
        except (OSError, TimeoutError) as error:
            quoted = Quoted(text=str(error) or "it took too long", origin=Origin.TOOL)
            raise CheckpointFailed(f"git {arguments[0]} failed:", quoted=quoted) from error
        finally:
            if isinstance(given, bytes) and read is not None:
                read.unlink(missing_ok=True)
        if ended.code > fine:
            said = ended.err.decode("utf-8", "replace").strip()[-300:]
            quoted = Quoted(text=said or str(ended.code), origin=Origin.TOOL)
            raise CheckpointFailed(f"git {arguments[0]} failed:", quoted=quoted)
        return ended.out

    async def ignored(self, names: Sequence[bytes]) -> set[bytes]:
        """Those of these names that the folder's gitignore rules exclude."""
        given = b"".join(b"./" + name + b"\0" for name in names)  # A name may look like one of git's own words.
        out = await self.run("check-ignore", "--no-index", "-z", "--verbose", "--stdin", given=given, fine=1)
        fields = out.split(b"\0")
        return {name[2:] for rule, name in zip(fields[2::4], fields[3::4], strict=False) if not rule.startswith(b"!")}

    def temporary(self) -> Path:
        """A temporary file name; `sweep` removes leftovers of killed processes."""
        return self.folder / f"{LEFT}{os.urandom(4).hex()}"

    def sweep(self) -> int:
        """Remove leftovers of killed processes; requires exclusive access. Returns the file system's time in
        nanoseconds. Blocks."""
        with os.scandir(self.folder) as found:
            for entry in found:
                if entry.name.endswith(".lock") or entry.name.startswith((LEFT, "index")):
                    Path(entry.path).unlink(missing_ok=True)
        os.utime(self.folder / LOCK)
        return (self.folder / LOCK).stat().st_mtime_ns

    def put(self, name: str, content: bytes) -> None:
        """Write a file atomically. Blocks."""
        written = self._written(content)
        written.replace(self.folder / name)

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

    def _written(self, content: bytes) -> Path:
        path = self.temporary()
        path.write_bytes(content)
        return path

    def _make(self) -> None:
        for name in ("", "objects/pack", "info", REFS):
            (self.folder / name).mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)

    def _initialize(self) -> None:
        """Write the files that make the folder a git repository."""
        self.put("HEAD", b"ref: refs/heads/none\n")
        # Contents go out as they are, whatever a project's attributes say of filters and line ends.
        self.put("info/attributes", b"* -text -filter -ident -working-tree-encoding\n")
        self.put("root", os.fsencode(self.root) + b"\n")


def ref(number: int) -> str:
    """The git ref of a checkpoint."""
    return f"{REFS}/{number:08}"


def lines(names: Sequence[str]) -> bytes:
    """NUL-terminated paths, as git reads them with `-z`."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def shadow_of(root: Path, checkpoints: Path, git: str) -> Shadow:
    """The shadow of a folder, without creating it."""
    real = Path(os.path.realpath(root))
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return Shadow(root=real, folder=checkpoints / name, git=git)
