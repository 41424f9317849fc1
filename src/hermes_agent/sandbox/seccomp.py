"""Seccomp filter of walls: refuses the system calls that have no business in one (mounts, modules, keys, tracing)."""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Iterator

# linux/filter.h, linux/seccomp.h: operations, and where the parts of a call stand.
LOAD, AND, EQUAL, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
ALLOW, ERROR = 0x7FFF_0000, 0x0005_0000
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
LOOKED_AT = "clone 56 220, ioctl 16 29, personality 135 92, ptrace 101 117, socket 41 198"
MACHINES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}  # how the kernel names an architecture in a filter
CLONE3 = 435  # its flags lie in memory, where no filter looks: without it programs take clone

Step = tuple[int, int, int, int]


def program(*, sockets: str = "all", machine: str = "") -> bytes:
    """The filter as the kernel takes it. `sockets`: `all`, `inet` (none with a path or name), or `none`. Empty for a
    kind of machine whose numbers are not known here."""
    machine = machine or platform.machine()
    if machine not in MACHINES:
        return b""
    return b"".join(struct.pack("=HBBI", *step) for step in _steps(machine, sockets))


def filter_file(code: bytes) -> int:
    """A descriptor from which another program reads the filter."""
    handle = os.memfd_create("seccomp")
    os.write(handle, code)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _steps(machine: str, sockets: str) -> Iterator[Step]:
    numbers = _numbers(LOOKED_AT, machine)
    yield LOAD, 0, 0, ARCHITECTURE
    yield from _unless(MACHINES[machine])
    yield LOAD, 0, 0, NUMBER
    if machine == "x86_64":
        yield AT_LEAST, 0, 1, X32
        yield _error(errno.EPERM)
    for number in _numbers(REFUSED, machine).values():
        yield from _if(number, [_error(errno.EPERM)])
    yield from _if(CLONE3, [_error(errno.ENOSYS)])
    yield from _if(numbers["clone"], [_argument(0), (AND, 0, 0, NAMESPACES), *_unless(0), _ALLOWED])
    yield from _if(numbers["ioctl"], [_argument(1), *_refused(TERMINAL_INPUT), _ALLOWED])
    yield from _if(numbers["ptrace"], [_argument(1), *_refused((INIT,)), _ALLOWED])
    allowed = [step for value in PERSONALITIES for step in _if(value, [_ALLOWED])]
    yield from _if(numbers["personality"], [_argument(0), *allowed, _error(errno.EPERM)])
    if sockets != "all":
        refused = [_argument(0), *_refused((AF_UNIX,)), _ALLOWED] if sockets == "inet" else [_error(errno.EPERM)]
        yield from _if(numbers["socket"], refused)
    yield _ALLOWED


def _numbers(table: str, machine: str) -> dict[str, int]:
    rows = (row.split() for row in table.split(","))
    column = 1 + list(MACHINES).index(machine)
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


_ALLOWED: Step = (RETURN, 0, 0, ALLOW)


def _error(number: int) -> Step:
    return RETURN, 0, 0, ERROR | number


def _argument(index: int) -> Step:
    """The lower half of an argument: each that is looked at is an int, or flags of the lower half."""
    return LOAD, 0, 0, ARGUMENTS + 8 * index


def _if(value: int, then: list[Step]) -> list[Step]:
    return [(EQUAL, 0, len(then), value), *then]


def _unless(value: int) -> list[Step]:
    return [(EQUAL, 1, 0, value), _error(errno.EPERM)]


def _refused(values: tuple[int, ...]) -> list[Step]:
    return [step for value in values for step in _if(value, [_error(errno.EPERM)])]
