"""Seccomp filters, the one of walls, and system calls that this process makes for commands in a thread.

Such a call never goes on as it was asked for: its handler reads the arguments once, checks them, and acts on them.
A kernel hands calls over from 5.6 on, and not inside another such filter, as in a jail inside a jail.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fcntl import ioctl
from functools import cache
from pathlib import Path
from typing import TypeVar

from hermes_agent.core.dataclass import dataclass
from hermes_agent.sandbox.traffic import STOPPED, Traffic

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


# linux/seccomp.h: requests to a listener, and the layout of a notification
RECEIVE, SEND, IS_VALID = 0xC050_2100, 0xC018_2101, 0x4008_2102
NOTIFICATION = struct.Struct("=QIIiIQ6Q")
NEW_LISTENER, WAIT_KILLABLE = 1 << 3, 1 << 5
SET_NO_NEW_PRIVS = 38
MOST_WAITING = 128
# capget(2): which version of the interface, for the calling thread; effective, permitted and inheritable rights, twice
CAPABILITIES, RIGHTS = struct.pack("=Ii", 0x2008_0522, 0), struct.Struct("=6I")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A system call of a command that waits for its answer."""

    listener: int
    id: int
    pid: int
    call: int
    arguments: tuple[int, ...]
    traffic: Traffic

    def check(self) -> None:
        """What was opened by the number of its process is of that process. Raises `OSError` where it is gone."""
        ioctl(self.listener, IS_VALID, struct.pack("=Q", self.id))

    def memory(self, where: int, length: int) -> bytes:
        """A copy of what stands there. Raises `OSError`."""
        with Path(f"/proc/{self.pid}/mem").open("rb", buffering=0) as memory:
            self.check()
            memory.seek(where)
            return memory.read(length)


class Refused(Exception):
    """A call that may not be made. `number` is the error that the program sees, `words` tell of it in the record."""

    def __init__(self, words: str = "", number: int = errno.EACCES) -> None:
        super().__init__(words)
        self.words, self.number = words, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An answer that comes when this socket can be written to."""

    socket: socket.socket
    finish: Callable[[], int]


Act = Callable[[Request], int | Waiting]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """Answers for some system calls: `acts` by their numbers give the error, 0 for none. `steps` of the filter hand
    them over; `enter` is what the thread takes on besides."""

    steps: tuple[Step, ...]
    acts: Mapping[int, Act]
    enter: Callable[[], None] | None = None


class Watcher:
    """Starts the commands of a place, and answers for them in a thread of its own."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._commands: dict[int, tuple[Traffic, dict[int, Act]]] = {}
        self._waiting: dict[int, tuple[Request, Waiting]] = {}
        self._bell = -1
        self._lock = threading.Lock()

    def open(self) -> None:
        """Start the thread, where it is of use and does not run yet."""
        with self._lock:
            if self._bell < 0 and is_supported():
                self._bell = os.eventfd(0, os.EFD_CLOEXEC)
                self._poll.register(self._bell, select.EPOLLIN)
                self._thread = threading.Thread(target=self._serve, name="calls of commands", daemon=True)
                self._thread.start()

    def launch(self, record: Path, handlers: Sequence[Handler], start: Callable[[], T]) -> T:
        """Call `start` in a thread of its own where these handlers answer, for it and whatever it starts, for good. The
        kernel must hand calls over, else nobody answers. Raises `OSError`."""
        with ThreadPoolExecutor(1, "into the wall") as thread:
            if handlers and is_supported():
                listener = thread.submit(_restrict, handlers).result()
                acts = {number: act for handler in handlers for number, act in handler.acts.items()}
                self._commands[listener] = Traffic(record), acts
                self._poll.register(listener, select.EPOLLIN)
            return thread.submit(start).result()

    def close(self) -> None:
        """End the thread; these calls of commands that go on fail from now on. Blocks until it has ended."""
        with self._lock:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)
                self._thread.join()

    def _serve(self) -> None:
        """Answer until the bell rings."""
        _lower()
        while True:
            for handle, events in self._poll.poll():
                if handle == self._bell:
                    return self._end()
                if handle in self._waiting:
                    self._answer_later(handle)
                elif events & select.EPOLLIN:
                    self._answer(handle)
                else:
                    self._forget(handle)

    def _end(self) -> None:
        for listener in list(self._commands):
            self._forget(listener)
        for handle in list(self._waiting):
            self._answer_later(handle)
        self._poll.unregister(self._bell)
        os.close(self._bell)
        self._bell = -1

    def _forget(self, listener: int) -> None:
        """Drop a command of which no process is left."""
        del self._commands[listener]
        self._poll.unregister(listener)
        os.close(listener)

    def _answer(self, listener: int) -> None:
        notification = bytearray(NOTIFICATION.size)
        try:
            ioctl(listener, RECEIVE, notification)
        except OSError:  # it was killed meanwhile
            return
        id_, pid, _, call, _, _, *arguments = NOTIFICATION.unpack(notification)
        traffic, acts = self._commands[listener]
        request = Request(listener=listener, id=id_, pid=pid, call=call, arguments=tuple(arguments), traffic=traffic)
        try:
            answer = acts[call](request)
        except Refused as refused:
            answer = refused.number
            if refused.words:
                with suppress(OSError):
                    traffic.note(STOPPED, refused.words)
        except (OSError, ValueError, OverflowError, struct.error) as error:
            answer = getattr(error, "errno", None) or errno.EINVAL
        if isinstance(answer, int):
            _reply(request, answer)
        elif sum(each.listener == listener for each, _ in self._waiting.values()) < MOST_WAITING:
            self._waiting[answer.socket.fileno()] = request, answer
            self._poll.register(answer.socket, select.EPOLLOUT)
        else:
            answer.socket.close()
            _reply(request, errno.EAGAIN)

    def _answer_later(self, handle: int) -> None:
        request, answer = self._waiting.pop(handle)
        self._poll.unregister(handle)
        with answer.socket:
            _reply(request, answer.finish())


@cache
def is_supported() -> bool:
    """Whether this kernel hands calls over; a thread tries it once. Blocks for a millisecond."""
    with ThreadPoolExecutor(1, "probe of the watch") as thread, suppress(OSError):
        os.close(thread.submit(_restrict, ()).result())
        return True
    return False


def _restrict(handlers: Sequence[Handler]) -> int:
    """Take the calls of this thread, and of whatever it starts, under watch, irrevocably. Returns the handle from which
    they are read. Raises `OSError`."""
    if platform.machine() not in MACHINES:
        raise OSError(errno.ENOSYS, "calls cannot be watched on this kind of machine")
    checked(libc().prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    for enter in filter(None, (handler.enter for handler in handlers)):
        enter()
    steps = [step for handler in handlers for step in handler.steps]
    code = packed([*head(platform.machine()), *steps, ALLOWED])
    with suppress(OSError):  # before 5.19
        return load(code, NEW_LISTENER | WAIT_KILLABLE)
    return load(code, NEW_LISTENER)


def _lower() -> None:
    """Give up, in this thread, the capabilities that no command has: of root's, those that are not inherited."""
    rights = ctypes.create_string_buffer(RIGHTS.size)
    checked(libc().capget(CAPABILITIES, rights))
    _, permitted, inherited, _, permitted2, inherited2 = RIGHTS.unpack(rights.raw)
    kept = permitted & inherited, permitted, inherited, permitted2 & inherited2, permitted2, inherited2
    checked(libc().capset(CAPABILITIES, RIGHTS.pack(*kept)))


def _reply(request: Request, number: int) -> None:
    with suppress(OSError):  # it was killed meanwhile
        ioctl(request.listener, SEND, struct.pack("=QqiI", request.id, 0, -number, 0))
