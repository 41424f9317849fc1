"""Reads and atomically writes small private files."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.errors import HomeError, ToolError

ELSEWHERE = "set HERMES_HOME to a folder"
WAYS_OUT: tuple[tuple[tuple[int, ...], str], ...] = (
    ((errno.EACCES, errno.EPERM), f"make it yours (`chown -R $USER {{folder}}`) or {ELSEWHERE} of yours."),
    ((errno.ENOTDIR, errno.EEXIST), "a file stands where a folder must be; move it away or set HERMES_HOME elsewhere."),
    ((errno.EISDIR, errno.ELOOP), "a folder or a link stands where a file must be; move it away."),
    ((errno.EROFS,), f"mount it writable, or {ELSEWHERE} of yours."),
    ((errno.ENOSPC, errno.EDQUOT), f"free some room, or {ELSEWHERE} that can be written."),
    ((errno.EIO,), "the disk, or the connection to it, fails: look at the system's log, or set HERMES_HOME elsewhere."),
    ((errno.EMFILE, errno.ENFILE), "too many files are open: end some programs, or raise the limit (`ulimit -n`)."),
    ((errno.ENOMEM,), "there is no memory left: end some programs."),
    ((errno.ENAMETOOLONG,), f"{ELSEWHERE} with a shorter name."),
    (
        (errno.ENOENT,),
        f"it, or a folder of it, is gone: see whether the disk is there (`mount`), or {ELSEWHERE} that is.",
    ),
    ((errno.EBUSY, errno.ETXTBSY), "another program uses it: end that, and try again."),
    (
        (errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN),
        "the disk under it is gone: connect it again, or set HERMES_HOME elsewhere.",
    ),
)
"""What a person can do where the system says one of these."""
OTHERWISE = f"try again; if it stays so, {ELSEWHERE} on another disk."
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
    """Replace the whole file, readable by its owner alone; links are followed. `durable` waits for the disk.

    Raises `HomeError`; the old content stays then.
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


def followed(path: str | Path) -> str:
    """The real path behind a path. Raises `ToolError` where a link on the way may not be read, as those of other
    people's processes below /proc."""
    try:
        return os.path.realpath(path)
    except OSError as error:
        raise ToolError(f"{path} cannot be followed: {reason(error)}.") from error


def reason(error: OSError) -> str:
    """The system's own words for an error."""
    return error.strerror or str(error)


def way_out(error: OSError, path: Path) -> str:
    """What a person can do about it."""
    advice = next((advice for numbers, advice in WAYS_OUT if error.errno in numbers), OTHERWISE)
    return advice.format(folder=path.parent)


def sentence(error: OSError) -> str:
    """An error of the system as a sentence: the file, the system's own words, and what to do."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else Path("the home/x")
    where = f"{path}: " if error.filename else ""
    return f"{where}{reason(error)}. What to do: {way_out(error, path)}"
