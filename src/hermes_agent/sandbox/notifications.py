"""System calls of commands that this process makes for them: a thread reads each from the kernel, acts and answers.

A call never goes on as it was asked for: its handler reads the arguments once, checks what they name, and acts on that.
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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fcntl import ioctl
from functools import cache
from pathlib import Path
from typing import TypeVar

from hermes_agent.core.dataclass import dataclass
from hermes_agent.sandbox.seccomp import ALLOWED, MACHINES, Step, checked, head, libc, load, packed
from hermes_agent.sandbox.traffic import STOPPED, Traffic

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
