"""Metadata in a Landlock jail: changes modes, owners, times and attributes for a command, where it may write.

Landlock has no right for them. Each call is made here, on a handle whose real path was checked, with a copy of its
arguments and with the rights of the command. Where the kernel hands no calls over, none is refused: no program works
without them, and the names and contents of files are held all the same.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from collections.abc import Callable, Mapping
from functools import partial

from hermes_agent.sandbox.seccomp import (
    ALLOWED,
    HANDED_OVER,
    Handler,
    Refused,
    Request,
    argument,
    checked,
    error,
    libc,
    numbers,
    when,
)

# Each call: its numbers on x86-64 and on ARM, and what its arguments are.
CALLS = """
chmod 90 - path mode, fchmod 91 52 file mode, fchmodat 268 53 folder path mode,
fchmodat2 452 452 folder path mode flags, chown 92 - path user group, lchown 94 - link user group,
fchown 93 55 file user group, fchownat 260 54 folder path user group flags,
utime 132 - path seconds, utimes 235 - path microseconds, futimesat 261 - folder path microseconds,
utimensat 280 88 folder path nanoseconds flags,
setxattr 188 5 path name value size how, lsetxattr 189 6 link name value size how,
fsetxattr 190 7 file name value size how, setxattrat 463 463 folder path flags name given size,
removexattr 197 14 path name, lremovexattr 198 15 link name, fremovexattr 199 16 file name,
removexattrat 466 466 folder path flags name
"""
# The flags of files (chattr, verity, btrfs), which few change: of ioctl(2), and a call since 6.17.
IOCTL, FILE_SETATTR = "ioctl 16 29", 469
IOCTLS = (0x4008_6602, 0x401C_5820, 0x4008_7602, 0x4080_6685, 0x4008_941A)
HERE, NO_FOLLOW, EMPTY_PATH = -100, 0x100, 0x1000  # AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
OPENAT2, NO_MAGIC_LINKS = 437, 2
LONGEST_PATH, LONGEST_NAME, LONGEST_VALUE = 4096, 256, 1 << 16
UNITS = {"seconds": 0, "microseconds": 1000, "nanoseconds": 1}
OWN = re.compile(rb"/(?:proc/(?:self|thread-self)|dev)/fd/(\d+)/?")
"""Its own handles by their names, which would be ours here."""


def metadata(may_change: Callable[[str], bool]) -> Handler:
    """What answers for a command that may change what lies at these real paths."""
    signatures = {row.split()[0]: row.split()[3:] for row in CALLS.split(",")}
    acts = {number: partial(_act, may_change, signatures[name]) for name, number in numbers(CALLS).items()}
    flags = [argument(1), *(step for value in IOCTLS for step in when(value, [error(errno.EOPNOTSUPP)])), ALLOWED]
    others = {FILE_SETATTR: [error(errno.ENOSYS)], **dict.fromkeys(numbers(IOCTL).values(), flags)}
    rows = {number: [HANDED_OVER] for number in acts} | others
    return Handler(steps=tuple(step for number, then in rows.items() for step in when(number, then)), acts=acts)


def _act(may_change: Callable[[str], bool], names: list[str], request: Request) -> int:
    given = dict(zip(names, request.arguments, strict=False))
    handle = _opened(request, given)
    try:
        own = f"/proc/self/fd/{handle}"
        path = os.readlink(own)  # noqa: PTH115 - a name that is no path
        if not may_change(path):
            raise Refused(f"a change of {path}", errno.EPERM)
        return ctypes.get_errno() if _change(request, given, own.encode()) else 0
    finally:
        os.close(handle)


def _opened(request: Request, given: Mapping[str, int]) -> int:
    """A handle of what the call names. Raises `OSError`."""
    flags, where = given.get("flags", 0), given.get("path", given.get("link", 0))
    path = request.memory(where, LONGEST_PATH).partition(b"\0")[0] if where else b""
    base = f"fd/{ctypes.c_int(given.get('file', given.get('folder', HERE))).value}"
    if base == f"fd/{HERE}" and "file" not in given:
        base = "cwd"
    if not path and (where or base == "cwd") and not flags & EMPTY_PATH:
        raise Refused(number=errno.ENOENT)
    if found := OWN.fullmatch(path):
        base, path = f"fd/{int(found[1])}", b""
    folder = os.open(f"/proc/{request.pid}/{base}", os.O_PATH | os.O_CLOEXEC)
    request.check()
    if not path:
        return folder
    no_follow = os.O_NOFOLLOW if "link" in given or flags & NO_FOLLOW else 0
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC | no_follow, 0, NO_MAGIC_LINKS)
    try:
        return checked(libc().syscall(OPENAT2, folder, path, how, len(how)))
    finally:
        os.close(folder)


def _change(request: Request, given: Mapping[str, int], path: bytes) -> int:
    """Change it as it was asked for. Not 0 where it failed."""
    match given:
        case {"mode": mode}:
            failed: int = libc().chmod(path, mode)
        case {"user": user, "group": group}:
            failed = libc().chown(path, user, group)
        case {"name": name}:
            named = request.memory(name, LONGEST_NAME).partition(b"\0")[0]
            value, how = _value(request, given)
            failed = (
                libc().removexattr(path, named)
                if value is None
                else libc().setxattr(path, named, value, len(value), how)
            )
        case _:
            failed = libc().utimensat(HERE, path, _times(request, given), 0)
    return failed


def _times(request: Request, given: Mapping[str, int]) -> bytes | None:
    """As `utimensat` takes them; None: now."""
    (unit,) = given.keys() & UNITS.keys()
    if not given[unit]:
        return None
    if unit == "seconds":
        accessed, changed = struct.unpack("=2q", request.memory(given[unit], 16))
        return struct.pack("=4q", accessed, 0, changed, 0)
    accessed, part, changed, other = struct.unpack("=4q", request.memory(given[unit], 32))
    return struct.pack("=4q", accessed, part * UNITS[unit], changed, other * UNITS[unit])


def _value(request: Request, given: Mapping[str, int]) -> tuple[bytes | None, int]:
    """The value of an attribute (None: it is removed), and whether it may or must be there already."""
    value, size, how = given.get("value"), given.get("size", 0), given.get("how", 0)
    if "given" in given:
        value, size, how = struct.unpack("=QII", request.memory(given["given"], 16))
    if size > LONGEST_VALUE:
        raise Refused(number=errno.E2BIG)
    if value is None or not size:
        return None if value is None else b"", how
    if len(copy := request.memory(value, size)) < size:
        raise Refused(number=errno.EFAULT)
    return copy, how
