"""Jail by the kernel's Landlock, for machines without bubblewrap: file access rules, no new privileges, no sockets.

Weaker than namespaces: the process table is visible, the number of processes is unlimited, and with the network
allowed local sockets are reachable too.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from hermes_agent.host.process import Child, start_detached
from hermes_agent.sandbox.jail import CannotJail, Cell, Walls, in_thread

# Numbers of system calls and bits: linux/landlock.h, landlock(7); the calls have the same number everywhere.
CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
READ = EXECUTE | READ_FILE | READ_DIR
EVERYTHING = (1 << 16) - 1
# Bits that came with later versions of the interface, and that version.
SINCE = {REFER: 2, TRUNCATE: 3, IOCTL_DEV: 5}
SCOPES, SCOPES_SINCE = 0b11, 6  # abstract sockets and signals stay inside
RULE_PATH_BENEATH = 1
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
# The numbers of prctl(2) and seccomp(2):
SET_NO_NEW_PRIVS, CAPBSET_DROP, SET_SECCOMP, FILTER = 38, 24, 22, 2
LAST_CAPABILITY = 63
REFUSE, ALLOW = 0x0005_0001, 0x7FFF_0000  # the call fails with EPERM; it goes on
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
X32 = 0x4000_0000  # the other set of numbers of x86-64
IO_URING_SETUP = 425
MACHINES = {"x86_64": (0xC000_003E, 41), "aarch64": (0xC000_00B7, 198)}  # audit architecture, number of socket(2)


def build(walls: Walls) -> Landlock:
    """Build the jail. Raises `CannotJail`."""
    version = _call(CREATE, None, 0, 1)
    if version < 1:
        raise CannotJail("The kernel has no Landlock.")
    if not walls.network and platform.machine() not in MACHINES:
        raise CannotJail("Landlock alone cannot close the network on this kind of machine.")
    return Landlock(walls, version)


class Landlock:
    """Starts programs under the kernel's Landlock rules; implements `Jail`. `version` is that of the kernel's
    interface."""

    name = "landlock"
    layers = 0

    def __init__(self, walls: Walls, version: int) -> None:
        self._walls = walls
        self._handled = EVERYTHING & ~sum(bit for bit, since in SINCE.items() if version < since)
        self._scoped = SCOPES if version >= SCOPES_SINCE else 0
        self._hidden = {os.path.realpath(path) for path in walls.hidden}

    def launch(self, argv: Sequence[str], *, cell: Cell, env: Mapping[str, str], stdin: int | None, out: int) -> Child:
        """See `Jail`. A thread restricts itself irrevocably and then starts the program."""
        temporary = cell.folder.parent / ".tmp"
        temporary.mkdir(exist_ok=True, mode=0o700)
        env = {**env, "TMPDIR": str(temporary)}

        def inside() -> Child:
            self._enter(cell, temporary)
            return start_detached(argv, cwd=str(cell.folder), env=env, stdin=stdin, out=out)

        return (cell.launch or in_thread)(inside)

    def _enter(self, cell: Cell, temporary: Path) -> None:
        """Take the walls on, for this thread and whatever it starts."""
        rules = dict(self._rules(cell, temporary))
        _checked(_prctl(SET_NO_NEW_PRIVS, 1))
        for capability in range(LAST_CAPABILITY if os.geteuid() == 0 else 0):
            _prctl(CAPBSET_DROP, capability)  # fails for numbers that this kernel does not know
        with ExitStack() as closing:
            attributes = struct.pack("=QQQ", self._handled, 0, self._scoped)[: 24 if self._scoped else 8]
            ruleset = _checked(_call(CREATE, attributes, len(attributes), 0))
            closing.callback(os.close, ruleset)
            for path, access in rules.items():
                _allow(ruleset, path, access & self._handled)
            _checked(_call(RESTRICT, ruleset, 0))
        if cell.launch is None and not self._walls.network:
            _close_sockets()

    def _rules(self, cell: Cell, temporary: Path) -> Iterator[tuple[str, int]]:
        """What is allowed, by path; a later rule for the same path stands in place of the earlier."""
        for path in _seen("/", self._hidden):
            yield path, READ
        for path in self._walls.readable:
            yield os.path.realpath(path), READ
        for device in DEVICES:
            yield f"/dev/{device}", READ | WRITE_FILE | IOCTL_DEV
        for path in (*self._walls.writable, cell.workspace, str(temporary)):
            yield os.path.realpath(path), EVERYTHING
        for name in cell.files:
            yield str(cell.folder / name), READ_FILE | WRITE_FILE | TRUNCATE
        for record in (cell.kept, cell.folder / "command", *cell.borrows(self._walls)):
            if record is not None:
                yield str(record), READ_FILE


def _seen(folder: str, hidden: Iterable[str]) -> Iterator[str]:
    """The fewest paths that hold everything but what is hidden."""
    inside = [path for path in hidden if path == folder or path.startswith(folder.rstrip("/") + "/")]
    if not inside:
        yield folder
    elif folder not in inside:
        try:
            children = sorted(entry.path for entry in os.scandir(folder) if not entry.is_symlink())
        except OSError:
            return
        for child in children:
            yield from _seen(child, inside)


def _allow(ruleset: int, path: str, access: int) -> None:
    """Allow this below `path`; one that is not there needs no rule."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(handle):  # noqa: PTH112 - a handle is no path
            access &= OF_A_FILE
        _checked(_call(ADD, ruleset, RULE_PATH_BENEATH, struct.pack("=Qi", access, handle), 0))
    finally:
        os.close(handle)


def _close_sockets() -> None:
    """No new socket of any kind (`socketpair` goes on), nor the ring that makes them by another way."""
    architecture, socket = MACHINES[platform.machine()]
    steps = [
        (LOAD, 0, 0, 4),  # the architecture
        (EQUAL, 0, 5, architecture),
        (LOAD, 0, 0, 0),  # the number of the call
        (AT_LEAST, 3, 0, X32),
        (EQUAL, 2, 0, socket),
        (EQUAL, 1, 0, IO_URING_SETUP),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(steps), ctypes.addressof(kept))
    _checked(_prctl(SET_SECCOMP, FILTER, program))


def _call(number: int, *arguments: int | bytes | None) -> int:
    result: int = _libc().syscall(ctypes.c_long(number), *arguments)
    return result


def _prctl(option: int, *arguments: int | bytes) -> int:
    filled = [*arguments, *[0] * (4 - len(arguments))]
    longs = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in filled]
    result: int = _libc().prctl(option, *longs)
    return result


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the jail: {os.strerror(number)}")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
