"""Access control for paths in the file tools, opening of files without races, and the log of what was read."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePath

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import Refused, ToolError
from hermes_agent.host.paths import followed
from hermes_agent.sandbox.walls import UNBOUNDED, Walls

# Trees that hold devices and views of the kernel instead of files.
KERNEL_TREES = ("/proc", "/sys", "/dev")
# Parts of the home that tools may read, as globs: what a text for the model names with a path, and skills. Besides,
# the workspaces in it (`Walls.workspaces`) are open. Everything else there is changed by the tools that keep ledgers.
HOME_READABLE = ("skills", "skills/*", "cache/results/*", "cache/input/*", "cache/*/out")
KEY_NAMES = ("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*")
PUBLIC_KEYS = "*.pub"
OPEN_SOURCE = "`hermes config set approvals.own_source true` lets the agent work on it"
_KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Decides which paths the file tools may read and write.

    `home` is HERMES_HOME, `person` the user's home folder, `source` the program's own source if it is read-only.
    `walls` gives those of the commands: what they close is closed here too. Where commands stand behind them
    (`walled`), a person is asked about a path that they do not show. `folders` gives real paths of those that a session
    works in besides its workspace.
    """

    home: Path
    person: Path
    walls: Callable[[], Walls] = Walls
    walled: bool = False
    source: Path | None = None
    folders: Callable[[str], Sequence[str]] = lambda _: ()

    def locate(self, path: str, workspace: str, *, writes: bool = False) -> Path:
        """Resolve `path` to a real path and check it. Raises `Refused` with the reason."""
        if not path or "\0" in path:
            raise ToolError("The path is empty or holds a NUL character.")
        real = Path(followed(Path(workspace) / (self.person / path[2:] if path.startswith("~/") else path)))
        reason = self.objection(real, writes=writes)
        if reason:
            raise Refused(f"{path} was refused: {reason}.")
        return real

    def objection(self, real: Path, *, writes: bool = False) -> str:
        """Why this real path is off limits; empty if it is allowed."""
        text = str(real)
        if any(_below(text, tree) for tree in KERNEL_TREES):
            return "it is a device or a view of the kernel, not a file"
        if len(text.encode(errors="surrogateescape")) > os.pathconf("/", "PC_PATH_MAX"):
            return "the path is too long"
        part = self._part_of_home(real)
        if part is not None:
            is_open = not writes and any(fnmatchcase(part, pattern) for pattern in HOME_READABLE)
            return "" if is_open else "it is in the home of Hermes, which only its own tools and commands change"
        if not self.walls().opens(text) or _is_key(real.name.lower()):
            return "it may hold credentials, which tools never see"
        if writes and self.source is not None and _below(text, str(self.source)):
            return f"it is this program's own source; {OPEN_SOURCE}"
        return ""

    def asks(self, path: str, workspace: str, *, writes: bool) -> bool:
        """Whether a person is asked before a tool touches this real path. What is refused anyway is not asked about."""
        where = os.devnull if os.path.realpath(workspace) in UNBOUNDED else workspace
        access = self.walls().access(path, where)
        if access == "write" or (access == "read" and not writes) or self.objection(Path(path), writes=writes):
            return False
        return self._part_of_home(Path(path)) is None

    def is_anothers(self, path: str, *own: str) -> bool:
        """Whether this real path is in the cache of the home, and not in a folder there with one of these names."""
        part = self._part_of_home(Path(path))
        parts = PurePath(part or "").parts
        return parts[:1] == ("cache",) and not any(parts[2:3] == (name,) for name in own)

    def _part_of_home(self, real: Path) -> str | None:
        """The path below the home of Hermes, whatever name it goes by: a mount, a hard link, another case; None for any
        other, and in the workspaces."""
        walls = self.walls()
        own = (_identity(walls.workspaces), _identity(walls.shared))
        parts = {each: part for home in self._homes() for each, part in _parts_of(home, _stamp(home)).items()}
        for folder in (real, *real.parents):
            if (found := _identity(folder)) is None:
                continue
            if found in own:
                return None
            if found in parts:
                return str(parts[found] / real.relative_to(folder))
        return None

    def _homes(self) -> tuple[str, ...]:
        """This home with the one that its profiles share, and the usual one if it is another."""
        shared = self.home.parents[1] if self.home.parent.name == "profiles" else self.home
        return tuple(map(str, (shared, self.home, self.person / ".hermes")))


def _identity(path: str | Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - some dozens of these precede every call
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _stamp(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - as above
    except OSError:
        return 0


@lru_cache(maxsize=8)
def _parts_of(home: str, _stamp: int) -> Mapping[tuple[int, int], PurePath]:
    """A home and everything right in it, by identity: a name more or less in it changes its stamp."""
    names = [".", *os.listdir(home)] if _stamp else []  # noqa: PTH208 - as above
    found = {_identity(f"{home}/{name}"): PurePath(name) for name in names}
    return {identity: name for identity, name in found.items() if identity is not None}


def opened(real: Path, shown: str, verb: str, flags: int = 0) -> int:
    """Open an existing file or folder that was already located, without blocking; returns a descriptor. Raises
    `ToolError`, also where a link that was put anywhere into the path meanwhile leads elsewhere."""
    try:
        handle = os.open(real, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):
            raise Refused(f"{shown} is a socket or a device, not a file.") from error
        raise cannot(shown, verb, error) from error
    with suppress(OSError):  # Where there is no /proc only the last name is held against links.
        if os.readlink(f"/proc/self/fd/{handle}").removesuffix(" (deleted)") != str(real):  # noqa: PTH115 - as above
            os.close(handle)
            raise Refused(f"{shown} leads elsewhere since it was looked at.")
    return handle


def open_regular(real: Path, shown: str) -> int:
    """Open the regular file at `real` (already located) for reading; returns a descriptor. Raises `ToolError` for
    anything else."""
    handle = opened(real, shown, "read")
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{shown} is a folder.", hint="List it with search_files(target='files').")
    raise Refused(f"{shown} is {kind_of(mode)}, not a file.")


def kind_of(mode: int) -> str:
    """The kind of a special file, in words."""
    return next((words for test, words in _KINDS if test(mode)), "something special")


def cannot(shown: str, verb: str, error: OSError) -> ToolError:
    """Map an OS error to a `ToolError`."""
    match error.errno:
        case errno.ENOENT:
            return ToolError(f"{shown} does not exist.")
        case errno.ELOOP:
            return Refused(f"{shown} is a loop of links.")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{shown} cannot be {_PAST[verb]}: permission denied.")
        case errno.ENOSPC | errno.EDQUOT:
            return ToolError(f"{shown} cannot be {_PAST[verb]}: the disk is full. Nothing was changed.")
        case _:
            return ToolError(f"{shown} cannot be {_PAST[verb]}: {error.strerror or error}.")


_PAST = {"read": "read", "write": "written", "search": "searched", "remove": "removed"}


def _below(path: str, folder: str) -> bool:
    # As text: this runs several times before every call, and comparing paths as objects takes ten times as long.
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _is_key(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in KEY_NAMES) and not fnmatchcase(name, PUBLIC_KEYS)


SESSIONS_IN_MEMORY = 16


def content_hash(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a session's read log. With a `key` it is a write intent of that call: `hash` of the new content, and
    the `answer` it will give."""

    path: str
    hash: str
    key: str = ""
    answer: str = ""


@dataclass(slots=True)
class _Session:
    known: dict[str, str] = field(default_factory=dict)
    pending: dict[str, Entry] = field(default_factory=dict)

    def take(self, entry: Entry) -> None:
        if entry.key:
            self.pending[entry.key] = entry
        else:
            self.known[entry.path] = entry.hash


class ReadLog:
    """Hashes of the file contents that each session has seen, in one append-only file per session in `folder`.

    A session that continues in another process still knows what it has read, and a repeated write can tell whether it
    had happened. If the folder is lost, sessions only have to read their files again. Thread-safe.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._recent: dict[str, _Session] = {}

    def saw(self, session: str, path: Path, digest: str) -> None:
        """Record that the session has read or written this content."""
        with self._lock:
            if self._of(session).known.get(_text(path)) != digest:
                self._add(session, Entry(path=_text(path), hash=digest))

    def known(self, session: str, path: Path) -> str:
        """The hash last seen by the session; empty if none."""
        with self._lock:
            return self._of(session).known.get(_text(path), "")

    def intend(self, session: str, path: Path, *, key: str, digest: str, answer: str) -> None:
        """Record a write intent of the call `key`."""
        with self._lock:
            self._add(session, Entry(path=_text(path), hash=digest, key=key, answer=answer))

    def intended(self, session: str, path: Path, *, key: str) -> Entry | None:
        """The write intent of an earlier attempt of the same call."""
        with self._lock:
            found = self._of(session).pending.get(key)
            return found if found is not None and found.path == _text(path) else None

    def _of(self, session: str) -> _Session:
        found = self._recent.pop(session, None) or self._read(session)
        self._recent[session] = found
        if len(self._recent) > SESSIONS_IN_MEMORY:
            del self._recent[next(iter(self._recent))]
        return found

    def _read(self, session: str) -> _Session:
        found = _Session()
        try:
            lines = self._file(session).read_bytes().splitlines()
        except FileNotFoundError:
            return found
        for line in filter(None, lines):
            with suppress(msgspec.DecodeError):  # a line that a crash cut off: what it said is read again when needed
                found.take(msgspec.json.decode(line, type=Entry))
        return found

    def _add(self, session: str, entry: Entry) -> None:
        self._of(session).take(entry)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(self._file(session), flags, 0o600)
        try:
            os.write(handle, b"\n" + msgspec.json.encode(entry) + b"\n")
        finally:
            os.close(handle)

    def _file(self, session: str) -> Path:
        return self._folder / f"{_as_name(session)}.jsonl"


def _text(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _as_name(session: str) -> str:
    plain = all(character.isalnum() or character in "_-" for character in session)
    return session if plain and session else content_hash(session.encode())[:32]
