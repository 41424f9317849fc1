"""Seccomp filters: their steps and how one is loaded; and that of walls, which refuses the system calls that have no
business in one (mounts, modules, keys, tracing)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Iterator
from functools import cache

# linux/filter.h, linux/seccomp.h: operations, and where the parts of a call stand.
LOAD, AND, EQUAL, AT_LEAST, HAS, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # an argument has 8 bytes
ALLOW, NOTIFY, ERROR = 0x7FFF_0000, 0x7FC0_0000, 0x0005_0000
SET_MODE_FILTER = 1
X32 = 0x4000_0000  # the other set of numbers of x86-64
AF_UNIX = 1
INIT = 1  # the first process of the wall's process table, which nobody may trace: stopped, it would never end
NAMESPACES = 0x7E02_0000  # the flags of clone(2) that make new ones
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into the terminal of others
PERSONALITIES = (0, 0x8, 0x2_0000, 0x2_0008, 0x4_0000, 0xFFFF_FFFF)  # those of Docker, and gdb's (no random addresses)

# Names of calls and their numbers on x86-64 and on ARM.
REFUSED = """
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, unshare 272 97, setns 308 268, open_tree 428 428,
move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442,
open_tree_attr 467 467, init_module 175 105, delete_module 176 106, finit_module 313 273, kexec_load 246 104,
kexec_file_load 320 294, add_key 248 217, request_key 249 218, keyctl 250 219, bpf 321 280, perf_event_open 298 241,
userfaultfd 323 282, name_to_handle_at 303 264, open_by_handle_at 304 265, process_vm_writev 311 271,
pidfd_getfd 438 438,
io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, syslog 103 116, acct 163 89, swapon 167 224,
swapoff 168 225, reboot 169 142, quotactl 179 60, quotactl_fd 443 443, settimeofday 164 170, clock_settime 227 112,
vhangup 153 58, iopl 172 -, ioperm 173 -, modify_ldt 154 -, uselib 134 -, lookup_dcookie 212 18
"""
# Where no namespaces stand: the memory and the queues of others, and the limits and the priority of their processes.
SHARED = """
shmget 29 194, shmat 30 196, shmctl 31 195, semget 64 190, semop 65 193, semctl 66 191, semtimedop 220 192,
msgget 68 186, msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mq_open 240 180, mq_unlink 241 181
"""
LIMITS = "prlimit64 302 261"
PRIORITIES = {"setpriority 141 140": 2, "ioprio_set 251 30": 3}
"""Each with what means all processes of a user."""
LOAD_FILTER = "seccomp 317 277"
LOOKED_AT = "clone 56 220, ioctl 16 29, personality 135 92, ptrace 101 117, socket 41 198"
MACHINES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}  # how the kernel names an architecture in a filter
CLONE3 = 435  # its flags lie in memory, where no filter looks: without it programs take clone

Step = tuple[int, int, int, int]


def program(*, sockets: str = "all", machine: str = "", alone: bool = False) -> bytes:
    """The filter as the kernel takes it. `sockets`: `all`, `inet` (none with a path or name), or `none`. `alone`: no
    namespaces stand besides. Empty for a kind of machine whose numbers are not known here."""
    machine = machine or platform.machine()
    return packed(_steps(machine, sockets, alone=alone)) if machine in MACHINES else b""


def packed(steps: Iterable[Step]) -> bytes:
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def load(code: bytes, flags: int = 0) -> int:
    """Load a filter into this thread, irrevocably. Raises `OSError`."""
    (call,) = numbers(LOAD_FILTER).values()
    kept = ctypes.create_string_buffer(code, len(code))
    filled = struct.pack("@HP", len(code) // 8, ctypes.addressof(kept))
    return checked(libc().syscall(call, SET_MODE_FILTER, flags, filled))


def filter_file(code: bytes) -> int:
    """A descriptor from which another program reads the filter."""
    handle = os.memfd_create("seccomp")
    os.write(handle, code)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _steps(machine: str, sockets: str, *, alone: bool) -> Iterator[Step]:
    looked_at = numbers(LOOKED_AT, machine)
    yield from head(machine)
    for number in numbers(REFUSED, machine).values():
        yield from when(number, [error(errno.EPERM)])
    yield from when(CLONE3, [error(errno.ENOSYS)])
    yield from when(looked_at["clone"], [argument(0), (AND, 0, 0, NAMESPACES), *_unless(0), ALLOWED])
    yield from when(looked_at["ioctl"], [argument(1), *_refused(TERMINAL_INPUT), ALLOWED])
    yield from when(looked_at["ptrace"], [argument(1), *_refused((INIT,)), ALLOWED])
    allowed = [step for value in PERSONALITIES for step in when(value, [ALLOWED])]
    yield from when(looked_at["personality"], [argument(0), *allowed, error(errno.EPERM)])
    if alone:
        yield from _others(machine)
    if sockets != "all":
        refused = [argument(0), *_refused((AF_UNIX,)), ALLOWED] if sockets == "inet" else [error(errno.EPERM)]
        yield from when(looked_at["socket"], refused)
    yield ALLOWED


def _others(machine: str) -> Iterator[Step]:
    """What concerns other processes, which are not named: 0 is the one that calls."""
    refused = error(errno.EPERM)
    for number in numbers(SHARED, machine).values():
        yield from when(number, [refused])
    for number in numbers(LIMITS, machine).values():
        yield from when(number, [argument(0), *when(0, [ALLOWED]), refused])
    for row, all_of_a_user in PRIORITIES.items():
        for number in numbers(row, machine).values():
            own = [argument(1), *when(0, [ALLOWED]), refused]
            yield from when(number, [argument(0), *when(all_of_a_user, [refused]), *own])


def head(machine: str) -> Iterator[Step]:
    """The beginning of each filter: other sets of numbers are closed, then the number of the call is loaded."""
    yield LOAD, 0, 0, ARCHITECTURE
    yield from _unless(MACHINES[machine])
    yield LOAD, 0, 0, NUMBER
    if machine == "x86_64":
        yield AT_LEAST, 0, 1, X32
        yield error(errno.EPERM)


def numbers(table: str, machine: str = "") -> dict[str, int]:
    """The numbers of calls by their names, in rows of a name and a column for each of `MACHINES`. Empty for another
    kind of machine."""
    machine = machine or platform.machine()
    rows = (row.split() for row in table.split(",") if machine in MACHINES)
    column = 1 + [*MACHINES, machine].index(machine)
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


ALLOWED: Step = (RETURN, 0, 0, ALLOW)
HANDED_OVER: Step = (RETURN, 0, 0, NOTIFY)


def error(number: int) -> Step:
    return RETURN, 0, 0, ERROR | number


def argument(index: int) -> Step:
    """The lower half of an argument: each that is looked at is an int, or flags of the lower half."""
    return LOAD, 0, 0, ARGUMENTS + 8 * index


def when(value: int, then: list[Step]) -> list[Step]:
    """Go these steps, which end in an answer, where the loaded value is this one."""
    return [(EQUAL, 0, len(then), value), *then]


def _unless(value: int) -> list[Step]:
    return [(EQUAL, 1, 0, value), error(errno.EPERM)]


def _refused(values: tuple[int, ...]) -> list[Step]:
    return [step for value in values for step in when(value, [error(errno.EPERM)])]


@cache
def libc() -> ctypes.CDLL:
    """The C library, which notes errors for `ctypes.get_errno`."""
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """The result of a system call. Raises `OSError`."""
    if result < 0:
        raise OSError(ctypes.get_errno(), f"the jail: {os.strerror(ctypes.get_errno())}")
    return result
