"""The two sides of a synchronised folder: the files here, and those in a place that is reached by a shell."""

from __future__ import annotations

import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from fnmatch import translate
from functools import cache
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Protocol

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Origin, Quoted
from hermes_agent.sandbox.place import PlaceFailed

THEIRS = ".theirs"  # below the folder: what the other side had where both had changed a file
MARKER = ".hermes-place"  # in a folder elsewhere: tells it from any other
# Each side has its own repository (its hooks are programs), and keys stay where they are.
NEVER: tuple[str, ...] = (
    ".git",
    f"{THEIRS}*",
    MARKER,
    ".env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
)
NEVER = (*NEVER, "id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*")
SYSTEM = ("/bin", "/boot", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr/bin", "/usr/lib", "/usr/sbin")


@cache
def _any_of(globs: tuple[str, ...]) -> Callable[[str], object]:
    return re.compile("|".join(map(translate, globs))).match


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits of copying: nothing that matches `exclude` (globs for the name of a file or folder; with a slash, for
    the path below the folder), no file over `max_bytes`, and nothing at all beyond `max_files`."""

    exclude: tuple[str, ...] = ()
    max_bytes: int = 20 << 20
    max_files: int = 20_000

    @property
    def names(self) -> tuple[str, ...]:
        """The globs without a slash."""
        return (*NEVER, *(glob for glob in self.exclude if "/" not in glob))

    @property
    def paths(self) -> tuple[str, ...]:
        """The globs with a slash."""
        return tuple(glob.strip("/") for glob in self.exclude if "/" in glob)

    def leaves_out(self, path: str) -> bool:
        """Whether this path, or a folder above it, is excluded."""
        parts = path.split("/")
        above = ("/".join(parts[: count + 1]) for count in range(len(parts)))
        return any(map(_any_of(self.names), parts)) or bool(self.paths and any(map(_any_of(self.paths), above)))


@dataclass(slots=True, kw_only=True)
class Found:
    """The files of one side: a stamp of each (another stamp means another content), and in `others` the modes of
    links and uncopied files. `which` identifies the folder. Not `is_whole`: a part was unreadable."""

    rules: Rules
    which: str = ""
    files: dict[str, str] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    is_whole: bool = True
    _folders: set[str] | None = None

    def add(self, path: str, mode: int, size: int, look: str) -> None:
        """Add a file. Raises `PlaceFailed` where there are too many."""
        if not stat.S_ISREG(mode) or size > self.rules.max_bytes or not _is_text(path):
            self.others[path] = mode
            return
        self.files[path] = look
        if len(self.files) > self.rules.max_files:
            raise PlaceFailed(
                f"There are more than {self.rules.max_files:,} files, too many to copy.",
                hint="Exclude folders (`terminal.ssh.exclude`), or set `terminal.ssh.sync: false`.",
            )

    def lacks(self, path: str) -> bool:
        """Whether the path is free for a file."""
        if self._folders is None:
            self._folders = {folder for each in (*self.files, *self.others) for folder in _above(each)}
        names = (path, *_above(path))
        return path not in self._folders and not any(name in self.files or name in self.others for name in names)

    def too_large(self) -> list[str]:
        """The files that are not copied because of their size or kind."""
        return sorted(path for path, mode in self.others.items() if stat.S_ISREG(mode))


def is_too_much(folder: str, home: str) -> bool:
    """Whether a folder (its real path) is no project: the root, a home, a parent of one, a system folder."""
    path = PurePosixPath(folder)
    is_home = PurePosixPath(home).is_relative_to(path) or str(path.parent) in ("/home", "/Users")
    return is_home or len(path.parts) < 3 or any(path.is_relative_to(each) for each in SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The local folder (its real path). Every call blocks."""

    root: Path
    rules: Rules

    def scan(self) -> Found:
        """Its files; links are not followed."""
        found, waiting = Found(rules=self.rules), [""]
        while waiting:
            try:
                waiting += self._folders(waiting.pop(), found)
            except OSError:
                found.is_whole = False
        return found

    def _folders(self, below: str, found: Found) -> list[str]:
        """Take the files of a folder; the folders in it."""
        folders = []
        with os.scandir(f"{self.root}/{below}") as entries:
            for entry in entries:
                path = f"{below}{entry.name}"
                if self.rules.leaves_out(path if self.rules.paths else entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
                else:
                    facts = entry.stat(follow_symlinks=False)
                    found.add(path, facts.st_mode, facts.st_size, _stamp_of(facts))
        return folders

    def stamp(self, path: str) -> str:
        """The stamp of the file at this path; empty where there is none."""
        try:
            return _stamp_of((self.root / path).lstat())
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def packed(self, paths: Iterable[str]) -> bytes:
        """A tar archive of these files, without those removed meanwhile."""
        buffer = BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path in paths:
                with suppress(OSError):
                    content, facts = (self.root / path).read_bytes(), (self.root / path).stat()
                    info = tarfile.TarInfo(f"./{path}")
                    info.size, info.mtime, info.mode = len(content), facts.st_mtime_ns // 10**9, facts.st_mode & 0o777
                    archive.addfile(info, BytesIO(content))
        return buffer.getvalue()

    def holds(self, path: str, info: tarfile.TarInfo, content: bytes) -> bool:
        """Whether the local file is identical."""
        with suppress(OSError):
            target = self.root / path
            return target.read_bytes() == content and not (target.stat().st_mode ^ info.mode) & 0o100
        return False

    def write(self, path: str, info: tarfile.TarInfo, content: bytes, over: str) -> str:
        """Write the file atomically; its new stamp. Empty where it cannot be written, where a link is in the way,
        and where the present file's stamp is not `over` any more (empty: no file)."""
        target, beside = self.root / path, self.root / f"{THEIRS}.{os.urandom(4).hex()}"
        try:
            if not self._is_inside(target):
                return ""
            target.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(content)
            mode = (target if over else beside).stat().st_mode
            beside.chmod((mode | 0o111 if info.mode & 0o100 else mode & ~0o111) & 0o777)
            os.utime(beside, (info.mtime, info.mtime))
            written = _stamp_of(beside.stat())
            if self.stamp(path) != over:
                return ""
            beside.replace(target)
            now = self.stamp(path)
            return now if now.split()[:4] == written.split()[:4] else f"{written} and changed since"
        except OSError:
            return ""
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    def delete(self, path: str, over: str) -> bool:
        """Delete the file if it still has that stamp, and folders that this leaves empty."""
        target = self.root / path
        with suppress(OSError):
            if self._is_inside(target) and self.stamp(path) == over:
                target.unlink()
                for folder in list(target.parents)[: path.count("/")]:
                    folder.rmdir()
        return not os.path.lexists(target)

    @staticmethod
    def _is_inside(target: Path) -> bool:
        return os.path.realpath(target.parent) == str(target.parent)


def unpacked(data: bytes, wanted: Iterable[str]) -> Iterator[tuple[str, tarfile.TarInfo, bytes]]:
    """The requested files of an archive; others are ignored. Raises `PlaceFailed` for an invalid or truncated
    archive. Blocks."""
    asked = set(wanted)
    try:
        with tarfile.open(fileobj=BytesIO(data), ignore_zeros=True) as archive:
            for info in archive:
                path = info.name.removeprefix("./")
                taken = archive.extractfile(info) if info.isreg() and path in asked else None
                yield from [(path, info, taken.read())] if taken else ()
    except tarfile.TarError as error:
        quoted = Quoted(text=str(error), origin=Origin.TOOL)
        raise PlaceFailed("Files could not be copied:", quoted=quoted) from error


def _stamp_of(facts: os.stat_result) -> str:
    return f"{facts.st_mode:x} {facts.st_size} {facts.st_mtime_ns} {facts.st_ino} {facts.st_ctime_ns}"


def _above(path: str) -> list[str]:
    """The folders that the path is in, but for the first."""
    return [path[:at] for at, sign in enumerate(path) if sign == "/"]


def _is_text(path: str) -> bool:
    try:
        return "\n" not in path and bool(path.encode())
    except UnicodeEncodeError:
        return False


# What each needs: find, stat, xargs and tar, of GNU or busybox (1.34 and later).
WHICH = f"$(head -c 64 {MARKER} 2>/dev/null):$(stat -c '%i %z' {MARKER} 2>/dev/null)"
# What is refused anyway is not listed: that may be the whole machine.
SCAN = f"""mkdir -p -- "$1" 2>/dev/null
cd -P -- "$1" 2>/dev/null || exit 0
shift
real=$(pwd -P) home=$(cd && pwd -P)
printf '%s\\0' "$real" "$home" "{WHICH}"
case $home/ in "${{real%/}}"/*) ;; *) case $real in
/*/*) find . "$@" -exec stat -c '%f %s %Y %y %z %i %n//' {{}} + 2>/dev/null
esac esac
printf '\\0%s' "$?\""""
MARK = f'cd -P -- "$1" && set -C && printf %s "$2" 2>/dev/null >{MARKER}; :'
# What reads or changes files does so in the very folder that was looked at.
SAME = f"""cd -P -- "$1" 2>/dev/null && [ "{WHICH}" = "$2" ] || {{ echo it is gone, or another one >&2; exit 1; }}
"""
SEND = f"{SAME}exec tar -xof -"
FETCH = f"{SAME}xargs -0 tar -cf - 2>/dev/null; :"
REMOVE = f"{SAME}xargs -0 rm -f"
_ROW = re.compile(r"(([0-9a-f]+) (\d+) [ -.0-~]+) \./(.+)", re.DOTALL)


class Shell(Protocol):
    """Runs scripts in a place.

    - `said` returns the output of a script, run by `sh` there with these arguments and input; raises
      `PlaceFailed` with its words where it failed, `Unreachable` where there was no answer.
    """

    async def said(self, script: str, *arguments: str, data: bytes = b"") -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """The remote folder. `which` identifies it: the id in its marker file, with that file's inode and change time,
    which no copy of the folder has. A call for a folder that was replaced raises `PlaceFailed`."""

    shell: Shell
    folder: str
    rules: Rules

    async def scan(self) -> Found:
        """The folder's identity (empty: it has no marker and cannot get one) and its files. Raises `PlaceFailed` for
        one that is more than a project's."""
        tests = [("-name", glob) for glob in self.rules.names] + [("-path", f"./{glob}") for glob in self.rules.paths]
        prune = [word for test in tests for word in ("-o", *test)][1:]
        chosen = ("(", *prune, ")", "-prune", "-o", "(", "-type", "f", "-o", "-type", "l", ")")
        out = await self.shell.said(SCAN, self.folder, *chosen)
        if not out:
            return Found(rules=self.rules)
        try:
            real, home, which, rows, code = map(_text, out.split(b"\0"))
        except ValueError as error:
            raise PlaceFailed(f"The list of files in {self.folder} there is cut short.") from error
        if is_too_much(real, home):
            raise PlaceFailed(
                f"{self.folder} there is too much to copy to:",
                quoted=Quoted(text=real, origin=Origin.TOOL),
                hint="Set `terminal.ssh.folder` to a folder for projects, or `terminal.ssh.sync: false`.",
            )
        found = Found(
            rules=self.rules, which=which if which.isascii() and which[0] != ":" else "", is_whole=code == "0"
        )
        for row in map(_ROW.fullmatch, rows.split("//\n")):
            if row and not {"", ".", ".."} & set(row[4].split("/")) and not self.rules.leaves_out(row[4]):
                found.add(row[4], int(row[2], 16), int(row[3]), row[1])
        return found

    async def run(self, script: str, which: str, paths: Sequence[str] = (), data: bytes = b"") -> bytes:
        """Run one of the scripts: mark the folder with an id (`MARK`), unpack an archive there (`SEND`), pack these
        files (`FETCH`), or remove them (`REMOVE`)."""
        listed = b"".join(f"./{path}".encode() + b"\0" for path in paths)
        return await self.shell.said(script, self.folder, which, data=data or listed)


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")
