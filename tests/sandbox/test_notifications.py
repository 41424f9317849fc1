"""Calls that are handed over are answered by their handlers, now or later, and by nobody after the end."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hermes_agent.sandbox.seccomp import (
    HANDED_OVER,
    Act,
    Handler,
    Refused,
    Request,
    Waiting,
    Watcher,
    is_supported,
    libc,
    numbers,
    when,
)
from hermes_agent.sandbox.traffic import traffic_of

pytestmark = pytest.mark.skipif(not is_supported(), reason="this kernel hands no call over")
(SETPRIORITY,) = numbers("setpriority 141 140").values()


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    made = Watcher()
    made.open()
    yield made
    made.close()


def handler(act: Act) -> Handler:
    return Handler(steps=tuple(when(SETPRIORITY, [HANDED_OVER])), acts={SETPRIORITY: act})


def asked(priority: int = 5) -> int:
    """The error of a call that is handed over (of `ctypes`: `os.setpriority` would keep whoever answers waiting)."""
    return ctypes.get_errno() if libc().setpriority(os.PRIO_PROCESS, 0, priority) else 0


@pytest.mark.parametrize(
    ("answer", "number"),
    [(0, 0), (errno.EXDEV, errno.EXDEV), (Refused("a thing"), errno.EACCES), (OSError(errno.EIO, "x"), errno.EIO)],
)
def test_a_call_gets_its_handler_s_answer_and_is_not_made(
    watcher: Watcher, tmp_path: Path, answer: int | Exception, number: int
) -> None:
    def act(request: Request) -> int:
        assert request.call == SETPRIORITY
        if isinstance(answer, Exception):
            raise answer
        return answer

    before = os.getpriority(os.PRIO_PROCESS, 0)

    assert watcher.launch(tmp_path, [handler(act)], asked) == number
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
    assert traffic_of(tmp_path) == ((), ("a thing",) if isinstance(answer, Refused) else ())


def test_a_child_is_answered_too_and_what_it_gave_is_read(watcher: Watcher, tmp_path: Path) -> None:
    seen = []

    def act(request: Request) -> int:
        seen.append(request.arguments[2])
        return errno.ENOMEM

    watcher.launch(tmp_path, [handler(act)], lambda: subprocess.run(["renice", "-n", "7", "0"], check=False))

    assert seen == [7]


def test_an_answer_may_come_later_and_others_are_served_meanwhile(watcher: Watcher, tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        while True:
            try:
                ours.send(bytes(1 << 16))
            except BlockingIOError:
                break

        def act(request: Request) -> int | Waiting:
            if request.arguments[2] != 5:
                with suppress(BlockingIOError):
                    theirs.recv(1 << 24)
                return 0
            return Waiting(socket=ours.dup(), finish=lambda: errno.EDOM)

        late = watcher.launch(tmp_path, [handler(act)], lambda: subprocess.Popen(["renice", "-n", "5", "0"], stderr=-1))
        while late.poll() is None:
            watcher.launch(tmp_path, [handler(act)], lambda: asked(6))

        assert late.communicate()[1].strip().endswith(os.strerror(errno.EDOM).encode())


def test_after_the_end_the_calls_fail_and_without_a_handler_they_are_made(watcher: Watcher, tmp_path: Path) -> None:
    def after_the_end() -> int:
        watcher.close()
        while (number := asked()) == 0:
            pass
        return number

    assert watcher.launch(tmp_path, [handler(lambda _: 0)], after_the_end) == errno.ENOSYS
    assert watcher.launch(tmp_path, [], lambda: os.getpriority(os.PRIO_PROCESS, 0)) >= 0


def test_the_one_who_answers_has_no_rights_that_a_command_lacks(watcher: Watcher, tmp_path: Path) -> None:
    seen = {}

    def act(_: Request) -> int:
        seen.update(line.split() for line in Path("/proc/thread-self/status").read_text().splitlines() if "Cap" in line)
        return 0

    watcher.launch(tmp_path, [handler(act)], asked)

    assert int(seen["CapEff:"], 16) & ~int(seen["CapInh:"], 16) == 0
