"""The files of a folder on this machine: which there are, what they hold, and putting others in their place."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from fnmatch import translate
from functools import cache
from io import BytesIO
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.sandbox.place import PlaceFailed

THEIRS = ".theirs"
"""Below the folder: what the other side had where both had changed a file."""
# Each side has its own repository (its hooks are programs), and keys stay where they are.
NEVER: tuple[str, ...] = (".git", THEIRS, ".env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore")
NEVER = (*NEVER, "id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*")
PACKED, MEMBERS = 16 << 20, 500  # bytes and files of one archive


@cache
def _any_of(globs: tuple[str, ...]) -> Callable[[str], object]:
    """What says whether a text matches one of these: asked of every file before each command."""
    return re.compile("|".join(map(translate, globs))).match


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is copied: nothing that matches `exclude` (globs for the name of a file or folder; with a slash, for the
    path below the folder), no file over `max_bytes`, and nothing at all where there are more than `max_files`."""

    exclude: tuple[str, ...] = ()
    max_bytes: int = 20 << 20
    max_files: int = 20_000

    @property
    def names(self) -> tuple[str, ...]:
        """The globs for names."""
        return (*NEVER, *(glob for glob in self.exclude if "/" not in glob))

    @property
    def paths(self) -> tuple[str, ...]:
        """The globs for paths."""
        return tuple(glob.strip("/") for glob in self.exclude if "/" in glob)

    def leaves_out(self, path: str) -> bool:
        """Whether this path, or a folder above it, is excluded."""
        parts = path.split("/")
        if any(map(_any_of(self.names), parts)):
            return True
        if not self.paths:
            return False
        return any(map(_any_of(self.paths), ("/".join(parts[: count + 1]) for count in range(len(parts)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The files of a side: a stamp of each by its path, that changes when the file does, and whether it is a program.
    `left_out` are those that are too large or whose names are no text."""

    stamps: Mapping[str, tuple[int, ...]]
    programs: frozenset[str]
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class _Walk:
    rules: Rules
    stamps: dict[str, tuple[int, ...]] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    def into(self, root: str) -> None:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            with suppress(OSError), os.scandir(f"{root}/{folder}") as entries:
                waiting += [f"{path}/" for entry in entries if (path := self._folder(entry, f"{folder}{entry.name}"))]

    def _folder(self, entry: os.DirEntry[str], path: str) -> str:
        """The path where it is a folder to look into; a file is taken."""
        if self.rules.leaves_out(path if self.rules.paths else entry.name):
            return ""
        if entry.is_dir(follow_symlinks=False):
            return path
        if entry.is_file(follow_symlinks=False):
            self._take(path, entry.stat(follow_symlinks=False))
        return ""

    def _take(self, path: str, found: os.stat_result) -> None:
        if found.st_size > self.rules.max_bytes or not _is_text(path):
            self.left_out.append(path)
            return
        if len(self.stamps) >= self.rules.max_files:
            raise PlaceFailed(
                f"There are more than {self.rules.max_files:,} files, too many to copy.",
                hint="Exclude folders (`terminal.ssh.exclude`), or set `terminal.ssh.sync: false`.",
            )
        self.stamps[path] = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        if found.st_mode & 0o111:
            self.programs.add(path)


def look(root: Path, rules: Rules) -> Found:
    """The files here. Links are not followed and not copied. Raises `PlaceFailed` where there are too many. Blocks."""
    walk = _Walk(rules)
    walk.into(str(root))
    return Found(stamps=walk.stamps, programs=frozenset(walk.programs), left_out=tuple(sorted(walk.left_out)))


def digest_of(root: Path, path: str) -> str:
    """The SHA-256 of a file here, empty where there is none that can be read. Blocks."""
    try:
        handle = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def packed(root: Path, paths: Iterable[str], programs: frozenset[str]) -> Iterator[bytes]:
    """Tar archives of these files, each of some megabytes; one that is gone meanwhile is left out. Blocks."""
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    for path in paths:
        try:
            content = (root / path).read_bytes()
            changed = int((root / path).stat().st_mtime)
        except OSError:
            continue
        info = tarfile.TarInfo(f"./{path}")
        info.size, info.mtime, info.mode = len(content), changed, 0o755 if path in programs else 0o644
        members.append((info, content))
        if sum(info.size for info, _ in members) > PACKED or len(members) >= MEMBERS:
            yield _archive(members)
            members = []
    yield _archive(members)


def _archive(members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for info, content in members:
            archive.addfile(info, BytesIO(content))
    return buffer.getvalue()


def unpacked(data: bytes, wanted: Iterable[str]) -> Iterator[tuple[str, bytes, int]]:
    """Path, content and time of each file of an archive that was asked for; anything else in it is passed by.
    Raises `PlaceFailed` where it is no archive. Blocks."""
    asked = set(wanted)
    try:
        with tarfile.open(fileobj=BytesIO(data), ignore_zeros=True) as archive:
            for info in archive:
                taken = archive.extractfile(info) if info.isreg() and _path_of(info) in asked else None
                yield from [(_path_of(info), taken.read(), int(info.mtime))] if taken else ()
    except tarfile.TarError as error:
        raise PlaceFailed(f"Files could not be copied: {error}.") from error


def _path_of(info: tarfile.TarInfo) -> str:
    return info.name.removeprefix("./")


def write(root: Path, path: str, content: bytes, *, program: bool, changed: int) -> bool:
    """Put the file there, whole or not at all; False where a link is in the way, or it cannot be written. Blocks."""
    target = root / path
    try:
        if os.path.realpath(target.parent) != os.path.normpath(target.parent) or target.is_symlink():
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.new")
        try:
            beside.write_bytes(content)
            mode = target.stat().st_mode & 0o777 if target.exists() else beside.stat().st_mode & 0o777
            beside.chmod(mode | 0o111 if program else mode & ~0o111)
            os.utime(beside, (changed, changed))
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def remove(root: Path, path: str) -> None:
    """Remove the file, and folders that this leaves empty. Blocks."""
    target = root / path
    if os.path.realpath(target.parent) != os.path.normpath(target.parent):
        return
    with suppress(OSError):
        target.unlink()
        for folder in target.parents:
            if folder == root:
                break
            folder.rmdir()


def has_room(root: Path, size: int) -> bool:
    """Whether so many bytes fit, with as many left. Blocks."""
    return shutil.disk_usage(root).free > 2 * size


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return "\n" not in path
