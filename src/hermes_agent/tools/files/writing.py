"""Writes files whole or not at all, and only over the content that the writer knows."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import StaleWrite, ToolError
from hermes_agent.tools.files.guard import cannot, open_regular
from hermes_agent.tools.files.readlog import content_hash

MOST_BYTES = 64 << 20
NEW_FILE = 0o666  # less the umask, as any program makes files


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A file as it was found: its content, and what tells whether it is still that file. None of both: no file."""

    content: bytes | None
    stamp: tuple[int, int, int, int] | None
    mode: int = 0

    @property
    def digest(self) -> str:
        """The hash of the content; empty for no file."""
        return "" if self.content is None else content_hash(self.content)


ABSENT = Version(content=None, stamp=None)


def version_of(real: Path, shown: str) -> Version:
    """The file as it is now. Raises `ToolError` for what is no regular file, or larger than 64 MB."""
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
    """Puts content in the place of a version that was read; one per program, so that its own sessions take turns."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    def swap(self, real: Path, shown: str, content: bytes, *, over: Version) -> None:
        """Replace the file, durably, keeping its mode and owner. Raises `StaleWrite` where it is not `over` any more.

        After any failure, the old content stands. Blocks: call it in a thread.
        """
        if over.content is not None and not os.access(real, os.W_OK):
            raise ToolError(f"{shown} is read-only.")
        temporary = real.with_name(f".{real.name[:200]}.{os.urandom(4).hex()}.new")
        try:
            real.parent.mkdir(parents=True, exist_ok=True)
            self._write(temporary, content, over)
            with self._turn:
                if _current(real) != over.stamp:
                    raise StaleWrite(f"{shown} changed while it was being written.", hint="Read it again.")
                Path(temporary).replace(real)
            _flush_folder(real.parent)
        except OSError as error:
            raise cannot(shown, "write", error) from error
        finally:
            with suppress(OSError):
                temporary.unlink()

    def remove(self, real: Path, shown: str, *, over: Version) -> None:
        """Remove the file. Raises `StaleWrite` where it is not `over` any more. Blocks, as `swap`."""
        try:
            with self._turn:
                if _current(real) != over.stamp:
                    raise StaleWrite(f"{shown} changed while it was being removed.", hint="Read it again.")
                if over.stamp is not None:
                    real.unlink()
            _flush_folder(real.parent)
        except OSError as error:
            raise cannot(shown, "remove", error) from error

    @staticmethod
    def _write(temporary: Path, content: bytes, over: Version) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, over.mode or NEW_FILE), "wb") as file:
            if over.content is not None:
                os.fchmod(file.fileno(), over.mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _current(real: Path) -> tuple[int, int, int, int] | None:
    try:
        return _stamp(os.lstat(real))
    except FileNotFoundError:
        return None


def _flush_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems refuse to sync a folder; the file itself is safe
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
