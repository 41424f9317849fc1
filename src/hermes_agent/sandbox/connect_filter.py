"""Kernel filter (seccomp) that hands each `connect` and `listen` of a command to this process; Landlock behind it."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache

from hermes_agent.core.dataclass import dataclass

# Numbers and bits: linux/seccomp.h, linux/bpf_common.h, linux/landlock.h, sys/socket.h.
ALLOW, NOTIFY, REFUSE = 0x7FFF_0000, 0x7FC0_0000, 0x0005_0000
LOAD, AND, EQUAL, AT_LEAST, HAS, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16  # offsets in `struct seccomp_data`; an argument has 8 bytes
SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5
SET_NO_NEW_PRIVS = 38
LANDLOCK_CREATE, LANDLOCK_RESTRICT, CONNECT_TCP, TCP_SINCE = 444, 446, 1 << 1, 4
X32 = 0x4000_0000  # the other set of numbers of x86-64
IO_URING = range(425, 428)  # it connects without `connect`
FAST_OPEN = 0x2000_0000  # MSG_FASTOPEN: a `send` that connects
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, SEQUENCES, KIND = 1, 5, 15
TCP, ROUTE = 6, 0
Step = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The numbers of system calls on one kind of machine. `sends` are those that connect with `FAST_OPEN`, each with
    the place of its flags."""

    architecture: int
    seccomp: int
    socket: int
    connect: int
    listen: int
    sends: tuple[tuple[int, int], ...]


MACHINES = {
    "x86_64": Calls(
        architecture=0xC000_003E, seccomp=317, socket=41, connect=42, listen=50, sends=((44, 3), (46, 2), (307, 3))
    ),
    "aarch64": Calls(
        architecture=0xC000_00B7, seccomp=277, socket=198, connect=203, listen=201, sends=((206, 3), (211, 2), (269, 3))
    ),
}
CALLS = MACHINES.get(platform.machine())


@cache
def is_supported() -> bool:
    """Whether this kernel hands connections over; a thread tries it once. Blocks for a millisecond."""
    with ThreadPoolExecutor(1, "probe of the network") as thread, suppress(OSError):
        os.close(thread.submit(restrict).result())
        return True
    return False


def restrict() -> int:
    """Take the connections of this thread, and of whatever it starts, under watch, irrevocably. Returns the handle from
    which they are read. Raises `OSError` where the kernel hands none over (before 5.6, or inside another such
    filter)."""
    if CALLS is None:
        raise OSError(errno.ENOSYS, "connections cannot be watched on this kind of machine")
    checked(libc().prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _restrict_tcp()
    _, filled = _loadable(CALLS)
    with suppress(OSError):  # before 5.19
        return checked(libc().syscall(CALLS.seccomp, SET_MODE_FILTER, NEW_LISTENER | WAIT_KILLABLE, filled))
    return checked(libc().syscall(CALLS.seccomp, SET_MODE_FILTER, NEW_LISTENER, filled))


def _restrict_tcp() -> None:
    """The second lock: Landlock lets no TCP connection out. What this process connects is not subject to it."""
    if libc().syscall(LANDLOCK_CREATE, None, 0, 1) < TCP_SINCE:
        return
    rules = checked(libc().syscall(LANDLOCK_CREATE, struct.pack("=QQ", 0, CONNECT_TCP), 16, 0))
    try:
        checked(libc().syscall(LANDLOCK_RESTRICT, rules, 0))
    finally:
        os.close(rules)


@cache
def _loadable(calls: Calls) -> tuple[ctypes.Array[ctypes.c_char], bytes]:
    """The code, which has to stay where it is, and what points to it."""
    code = b"".join(struct.pack("=HBBI", *step) for step in program(calls))
    kept = ctypes.create_string_buffer(code, len(code))
    return kept, struct.pack("@HP", len(code) // 8, ctypes.addressof(kept))


def program(calls: Calls) -> list[Step]:
    """The filter. A socket for datagrams is handed over too: it is refused with a word about it."""
    refuse = [_answer(REFUSE | errno.EACCES)]
    unix = [*_load_kind(), *_when(STREAM, [_answer(ALLOW)]), *_when(SEQUENCES, [_answer(ALLOW)]), *refuse]
    tcp = [_load_argument(2), *_when(0, [_answer(ALLOW)]), *_when(TCP, [_answer(ALLOW)]), *refuse]
    inet = [*_load_kind(), *_when(STREAM, tcp), _answer(NOTIFY)]
    netlink = [_load_argument(2), *_when(ROUTE, [_answer(ALLOW)]), *refuse]
    families = ((UNIX, unix), (INET, inet), (INET6, inet), (NETLINK, netlink))
    socket = [_load_argument(0), *(step for family, steps in families for step in _when(family, steps))]
    others = {number: [_answer(REFUSE | errno.ENOSYS)] for number in IO_URING}
    for number, flags in calls.sends:
        others[number] = [
            _load_argument(flags),
            (HAS, 0, 1, FAST_OPEN),
            _answer(REFUSE | errno.EOPNOTSUPP),
            _answer(ALLOW),
        ]
    return [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, calls.architecture),
        _answer(REFUSE | errno.ENOSYS),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, X32),
        _answer(REFUSE | errno.ENOSYS),
        *_when(calls.connect, [_answer(NOTIFY)]),
        *_when(calls.listen, [_answer(NOTIFY)]),
        *_when(calls.socket, [*socket, _answer(REFUSE | errno.EAFNOSUPPORT)]),
        *(step for number, steps in others.items() for step in _when(number, steps)),
        _answer(ALLOW),
    ]


def _when(value: int, steps: list[Step]) -> list[Step]:
    """Go these steps, which end in an answer, where the loaded value is this one."""
    return [(EQUAL, 0, len(steps), value), *steps]


def _answer(what: int) -> Step:
    return (RETURN, 0, 0, what)


def _load_argument(place: int) -> Step:
    return (LOAD, 0, 0, ARGUMENT + 8 * place)


def _load_kind() -> list[Step]:
    return [_load_argument(1), (AND, 0, 0, KIND)]


@cache
def libc() -> ctypes.CDLL:
    """The C library, which notes errors for `ctypes.get_errno`."""
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """The result of a system call. Raises `OSError`."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
