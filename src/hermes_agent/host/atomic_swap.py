"""Compare-and-swap of a file: replaces it only if it still holds the expected content, so that a person's
simultaneous save is not lost."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from hermes_agent.core.errors import HomeError
from hermes_agent.host.late import libraries
from hermes_agent.host.paths import reason, way_out, write_private

HERE, NO_REPLACE, EXCHANGE = -100, 1, 2
"""Of Linux's renameat2."""

CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
PATIENCE, GLANCE = 2.0, 0.005
"""Seconds that another program may take to finish writing, and between two looks whether it has."""

Rename = Callable[[Path, Path, int], None]


def aside_of(path: Path) -> Path:
    """The temporary name used while a file is swapped; after a crash in that moment it holds the replaced content."""
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name}.swap")


def renamed(old: Path, new: Path, how: int) -> None:
    """Rename without replacing anything, or exchange the two files. Raises `OSError`, and `NotImplementedError`
    where the system or the file system can do neither."""
    try:
        rename = libraries.ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError as error:
        raise NotImplementedError from error
    if rename(HERE, os.fsencode(old), HERE, os.fsencode(new), how):
        number = libraries.ctypes.get_errno()
        if number in CANNOT:
            raise NotImplementedError
        raise OSError(number, os.strerror(number))


def replace_known(
    path: Path,
    content: bytes | None,
    expected: bytes | None,
    *,
    rename: Rename = renamed,
    patience: float = PATIENCE,
) -> bool:
    """Replace the whole file by `content`, readable by its owner alone, or remove it (None), if it holds `expected`
    (None: no file). False where it holds something else, which stays. Links are followed.

    On Linux this waits until no other program has the file open for writing, exchanges the two files atomically,
    and reverts that where the replaced file has other content or is being opened for writing. Elsewhere, and on
    file systems without exchange, the file is compared right before it is replaced: a save between these two
    steps is lost. For one caller at a time; blocks. Raises `HomeError`, also where a program does not finish
    writing.
    """
    target, aside = Path(os.path.realpath(path)), aside_of(path)
    try:
        try:
            done = _replaced(target, aside, content, expected, rename, patience)
        except (FileNotFoundError, FileExistsError):
            done = False
        except NotImplementedError:
            done = _compared(target, aside, content, expected)
        aside.unlink(missing_ok=True)
    except OSError as error:
        raise HomeError(f"{path} cannot be written ({reason(error)}): {way_out(error, path)}") from error
    return done


def _replaced(
    target: Path, aside: Path, content: bytes | None, expected: bytes | None, rename: Rename, patience: float
) -> bool:
    if expected is None:
        _lay(aside, content)
        rename(aside, target, NO_REPLACE)
        return True
    there, how = ((target, aside), NO_REPLACE) if content is None else ((aside, target), EXCHANGE)
    with target.open("rb") as file:
        leased = _leased(file.fileno(), target, patience)
        if file.read() != expected:
            return False
        _lay(aside, content)
        rename(*there, how)
        known = os.path.samestat(aside.stat(), os.fstat(file.fileno()))
        if known and (not leased or fcntl.fcntl(file.fileno(), fcntl.F_GETLEASE) == fcntl.F_RDLCK):
            return True
        rename(aside, target, how)
    if content is not None and aside.read_bytes() != content:  # Saved once more, in the place of ours.
        rename(aside, target, EXCHANGE)
    return False


def _lay(aside: Path, content: bytes | None) -> None:
    if content is None:
        aside.unlink(missing_ok=True)
    else:
        write_private(aside, content)


def _leased(handle: int, target: Path, patience: float) -> bool:
    """Have the kernel hold back whoever opens the file for writing, until it is closed here; it does not as long as
    somebody has it open. False for somebody else's file, and where system or file system have no leases: nothing is
    known then."""
    # That somebody is held back is said by a signal, too: one that is ignored.
    try:
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
    except (OSError, AttributeError):  # macOS has none of it.
        return False
    until = monotonic() + patience
    while True:
        try:
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            if monotonic() > until:
                text = f"{target} is open in a program that is writing it: let it finish there, then try again."
                raise HomeError(text) from None
            sleep(GLANCE)
        except OSError:
            return False
        else:
            return True


def _compared(target: Path, aside: Path, content: bytes | None, expected: bytes | None) -> bool:
    found = target.read_bytes() if target.exists() else None
    if found != expected:
        return False
    if content is None:
        target.unlink()
    else:
        aside.replace(target)
    return True
