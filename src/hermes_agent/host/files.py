"""Reading and writing small private files so that a crash, a full disk or a second process never leaves half of one."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes_agent.core.errors import HomeError

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def read_small(path: Path, limit: int = 1 << 20) -> bytes | None:
    """The bytes of a regular file of at most `limit` bytes; None where there is no file. Raises `HomeError`."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or pipe"
            raise HomeError(f"{path} is {what}, not a file: move it out of the way.")
        if found.st_size > limit:
            raise HomeError(f"{path} has {found.st_size:,} bytes, more than the {limit:,} that are read: shorten it.")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HomeError(f"{path} cannot be read ({reason(error)}): {way_out(error, path)}") from error


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace the file as a whole, readable by its owner alone; a link is followed. `durable` waits for the disk.

    Raises `HomeError`; the old content stands then.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise HomeError(f"{path} cannot be written ({reason(error)}): {way_out(error, path)}") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` against other processes and threads; waits for whoever holds it. Raises `HomeError`."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    except OSError as error:
        raise HomeError(f"{path} cannot be locked ({reason(error)}): {way_out(error, path)}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def reason(error: OSError) -> str:
    """What the system said, in its own words."""
    return error.strerror or str(error)


def way_out(error: OSError, path: Path) -> str:
    """What a person can do about it."""
    match error:
        case PermissionError():
            return f"make it yours (`chown -R $USER {path.parent}`) or set HERMES_HOME to a folder of yours."
        case NotADirectoryError() | FileExistsError():
            return "a file stands where a folder must be; move it away or set HERMES_HOME elsewhere."
        case OSError(errno=errno.EROFS):
            return "mount it writable, or set HERMES_HOME to a folder of yours."
        case _:
            return "free some room, or set HERMES_HOME to a folder that can be written."
