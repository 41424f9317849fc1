"""File changes by compare-and-swap, idempotent after a crash; if one of several fails, the others are put back."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import StaleWrite, ToolError
from hermes_agent.core.tool import CallContext
from hermes_agent.host.secrets import MARKER
from hermes_agent.tools.files.checking import new_problem
from hermes_agent.tools.files.content import coding_of, storable
from hermes_agent.tools.files.guard import Guard, ReadLog, cannot, content_hash, open_regular, opened

MOST_BYTES = 64 << 20
NOTHING: Mapping[Path, bytes] = {}
NEW_FILE = 0o666  # less the umask, as any program makes files


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Content and stat stamp of a file when it was read; both None if there was no file."""

    content: bytes | None
    stamp: tuple[int, int, int, int] | None
    mode: int = 0

    @property
    def digest(self) -> str:
        """The content hash; empty for no file."""
        return "" if self.content is None else content_hash(self.content)


ABSENT = Version(content=None, stamp=None)


def version_of(real: Path, shown: str) -> Version:
    """Read a file's current version. Raises `ToolError` if it is no regular file or larger than 64 MB."""
    try:
        handle = open_regular(real, shown)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return ABSENT
        raise
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if found.st_size > MOST_BYTES:
            raise ToolError(f"{shown} has {found.st_size:,} bytes, too many to change here.", hint="Use the terminal.")
        return Version(content=file.read(), stamp=_stamp(found), mode=found.st_mode & 0o7777)


class Writer:
    """Atomic compare-and-swap of files. The sessions that share a writer take turns."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def swap(self, real: Path, shown: str, content: bytes, *, over: Version) -> None:
        """Replace the file durably, keeping mode and owner. Raises `StaleWrite` if it has changed since `over`.

        After any failure the old content remains. Blocking: call it in a thread.
        """
        if over.content is not None and not os.access(real, os.W_OK):
            raise ToolError(f"{shown} is read-only.")
        try:
            with _folder(real, shown, "write", makes=True) as folder:
                self._replace(real.name, shown, folder, content, over)
                _flush(folder)
        except OSError as error:
            raise cannot(shown, "write", error) from error

    def _replace(self, name: str, shown: str, folder: int, content: bytes, over: Version) -> None:
        temporary = f".{name[:200]}.{os.urandom(4).hex()}.new"
        try:
            self._write(temporary, folder, content, over)
            with self._turn:
                if _current(name, folder) != over.stamp:
                    raise StaleWrite(f"{shown} changed while it was being written.", hint="Read it again.")
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)

    def remove(self, real: Path, shown: str, *, over: Version) -> None:
        """Delete the file. Raises `StaleWrite` if it has changed since `over`. Blocking, as `swap`."""
        try:
            with _folder(real, shown, "remove") as folder, self._turn:
                if _current(real.name, folder) != over.stamp:
                    raise StaleWrite(f"{shown} changed while it was being removed.", hint="Read it again.")
                if over.stamp is not None:
                    os.unlink(real.name, dir_fd=folder)
                _flush(folder)
        except OSError as error:
            raise cannot(shown, "remove", error) from error

    @staticmethod
    def _write(temporary: str, folder: int, content: bytes, over: Version) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, over.mode or NEW_FILE, dir_fd=folder), "wb") as file:
            if over.content is not None:
                os.fchmod(file.fileno(), over.mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _current(name: str, folder: int) -> tuple[int, int, int, int] | None:
    try:
        return _stamp(os.lstat(name, dir_fd=folder))
    except FileNotFoundError:
        return None


@contextmanager
def _folder(real: Path, shown: str, verb: str, *, makes: bool = False) -> Iterator[int]:
    """The folder of a located file, as a handle that no link can lead elsewhere; `makes` it where it is missing."""
    there, missing = real.parent, list[str]()
    while makes and not os.path.lexists(there):
        missing.append(there.name)
        there = there.parent
    folder = opened(there, shown, verb, os.O_DIRECTORY)
    try:
        for name in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            above, folder = folder, os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(above)
        yield folder
    finally:
        os.close(folder)


def _flush(folder: int) -> None:
    with suppress(OSError):  # some file systems refuse to sync a folder; the file itself is safe
        os.fsync(folder)


CONTEXT = 3
MOST_COMPARED = 2000  # difflib takes the square of what differs
MOST_SHOWN = 200


def unified(before: str, after: str, name: str) -> str:
    """A unified diff of at most 200 lines; huge changes are only counted. Empty if equal."""
    old, new = before.split("\n"), after.split("\n")
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start, old_end, new_end = max(0, head - CONTEXT), len(old) - tail, len(new) - tail
    removed, added = old[start : old_end + CONTEXT], new[start : new_end + CONTEXT]
    if old_end - head + new_end - head > MOST_COMPARED:
        return f"[{old_end - head:,} lines became {new_end - head:,}, from line {head + 1}]"
    rows = [
        _moved(row, start) for row in unified_diff(removed, added, f"a/{name}", f"b/{name}", lineterm="", n=CONTEXT)
    ]
    if len(rows) > MOST_SHOWN:
        rows = [*rows[:MOST_SHOWN], f"[{len(rows) - MOST_SHOWN} more lines of diff]"]
    return "\n".join(rows)


def _common(old: list[str], new: list[str]) -> int:
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count


def _moved(row: str, by: int) -> str:
    """Shift a hunk header by the lines that were not compared."""
    if not row.startswith("@@ -"):
        return row
    old, new = row[4:-3].split(" +")
    return f"@@ -{_shifted(old, by)} +{_shifted(new, by)} @@"


def _shifted(span: str, by: int) -> str:
    first, comma, count = span.partition(",")
    return f"{int(first) + by}{comma}{count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A requested change of the file at `path`. `make` returns the new content (None: delete) and a message; `blind`
    allows files that the session has not read; `removes`: `make` deletes the file."""

    path: str
    make: Callable[[Version], tuple[bytes | None, str]]
    blind: bool
    removes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    real: Path
    path: str
    before: Version
    content: bytes | None
    answer: str
    key: str


class Changer:
    """Applies file changes within `guard`. The intents are written to `log` before any file, so that a call repeated
    after a crash can tell which files it had changed."""

    def __init__(self, *, guard: Guard, log: ReadLog, writer: Writer) -> None:
        self._guard = guard
        self._log = log
        self._writer = writer

    def swap(self, context: CallContext, changes: Sequence[Change], unsaved: Mapping[Path, bytes] = NOTHING) -> str:
        """Apply all changes or none, to the `unsaved` content of a file where there is one. Returns what was done.
        Blocking: call it in a thread."""
        answers: list[str] = []
        ready: list[_Ready] = []
        for number, change in enumerate(changes):
            key = context.key if len(changes) == 1 else f"{context.key}#{number}"
            found = self._prepared(context, change, unsaved, key=key)
            answers.append(found if isinstance(found, str) else found.answer)
            ready += [] if isinstance(found, str) else [found]
        for each in ready:
            digest = "" if each.content is None else content_hash(each.content)
            self._log.intend(context.session, each.real, key=each.key, digest=digest, answer=each.answer)
        self._write_all(context.session, ready)
        return "\n".join(filter(None, answers))

    def _prepared(
        self, context: CallContext, change: Change, unsaved: Mapping[Path, bytes], *, key: str
    ) -> _Ready | str:
        """The change ready to write, or its answer if an earlier attempt of the same call applied it."""
        real = self._guard.locate(change.path, context.workspace, writes=True)
        before = version_of(real, change.path)
        earlier = self._log.intended(context.session, real, key=key)
        if earlier is not None and before.digest == earlier.hash:
            self._log.saw(context.session, real, earlier.hash)
            return earlier.answer
        before = replace(before, content=unsaved[real]) if real in unsaved and before.stamp else before
        self._check_known(change, real, before, context.session)
        content, done = change.make(before)
        _check_marks(before, content, change.path)
        answer = f"{done}{_change_report(before, content, change.path)}"
        return _Ready(real=real, path=change.path, before=before, content=content, answer=answer, key=key)

    def _check_known(self, change: Change, real: Path, before: Version, session: str) -> None:
        known = self._log.known(session, real)
        if before.content in (None, b"") or known == before.digest or (change.blind and not known):
            return
        happened = "changed since it was read" if known else "exists and was not read in this conversation"
        raise StaleWrite(f"{change.path} {happened}; nothing was written.", hint="Read it, then write again.")

    def _write_all(self, session: str, ready: Sequence[_Ready]) -> None:
        written: list[_Ready] = []
        try:
            for each in ready:
                self._put(each, each.content, each.before)
                written.append(each)
        except ToolError as error:
            stuck = [each.path for each in reversed(written) if not self._put_back(each)]
            if not written:
                raise
            rest = f"{', '.join(stuck)} could not be put back" if stuck else "the other files are as they were"
            raise ToolError(f"{error} {rest[0].upper()}{rest[1:]}.", hint=error.hint) from error
        for each in ready:
            self._log.saw(session, each.real, "" if each.content is None else content_hash(each.content))

    def _put(self, each: _Ready, content: bytes | None, over: Version) -> None:
        if content is None:
            self._writer.remove(each.real, each.path, over=over)
        else:
            self._writer.swap(each.real, each.path, content, over=over)

    def _put_back(self, each: _Ready) -> bool:
        """Roll back a change unless the file was changed since. Returns whether it did."""
        with suppress(ToolError):
            now = version_of(each.real, each.path)
            if now.content == each.content:
                self._put(each, each.before.content, now)
                return True
        return False


def _check_marks(before: Version, content: bytes | None, path: str) -> None:
    """Raise `ToolError` where what was shown instead of a secret would take its place in a file."""
    old, new = (
        Counter(found[0] for found in MARKER.finditer((each or b"").decode("latin-1")))
        for each in (before.content, content)
    )
    if before.content is not None and (marks := new - old):
        raise ToolError(
            f"{path} was not written: `{next(iter(marks))}` is shown where the file holds a secret.",
            hint="Change the lines around it with patch; the secret stays as it is.",
        )


def _change_report(before: Version, content: bytes | None, path: str) -> str:
    """Details for the model: new syntax errors, and the diff."""
    if content is None:
        return ""
    if before.content == content:
        return " The content is the same as before."
    new = _readable(content)
    old = None if before.content is None else _readable(before.content)
    problem = new_problem(path, old, new)
    words = f" {problem}" if problem else ""
    return words if old is None else f"{words}\n{unified(old, new, path)}"


def _readable(content: bytes) -> str:
    return storable(coding_of(content).decode(content).replace("\r\n", "\n"))
