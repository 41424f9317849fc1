"""Cancels some work at one of its awaits, and says what it left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STOP_SECONDS = 2.0
"""Within which everything is over that was cancelled."""
Work = Callable[[], Coroutine[Any, Any, object]]


@dataclass
class Steps:
    """The `tasks` of some work, and how many awaits they have `made` together; at the number `at` it is struck."""

    at: int = 0
    made: int = 0
    struck: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[object]] = field(default_factory=list)

    def step(self) -> None:
        self.made += 1
        if self.made == self.at:
            self.struck.set()

    @property
    def alive(self) -> list[str]:
        return [task.get_name() for task in self.tasks if not task.done()]


STEPS: ContextVar[Steps | None] = ContextVar("steps", default=None)


@dataclass
class Stepped(Coroutine[Any, Any, Any]):
    """A coroutine each of whose awaits counts."""

    inner: Coroutine[Any, Any, Any]
    steps: Steps

    def send(self, value: object) -> object:
        waits_for = self.inner.send(value)
        self.steps.step()
        return waits_for

    def throw(self, *error: Any) -> object:  # noqa: ANN401  as coroutines have it
        waits_for = self.inner.throw(*error)
        self.steps.step()
        return waits_for

    def close(self) -> None:
        self.inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise AssertionError("only tasks are made of it")


@contextmanager
def counting() -> Iterator[None]:
    """Every task counts whose beginner does."""

    def task(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any) -> asyncio.Task[Any]:  # noqa: ANN401  as asyncio has it
        if (steps := STEPS.get()) is None:
            return asyncio.Task(work, loop=loop, **more)
        steps.tasks.append(made := asyncio.Task(Stepped(work, steps), loop=loop, **more))
        return made

    loop = asyncio.get_running_loop()
    loop.set_task_factory(task)
    try:
        yield
    finally:
        loop.set_task_factory(None)


def begun(work: Work, steps: Steps) -> asyncio.Task[object]:
    """A task of the work, counted."""
    token = STEPS.set(steps)
    try:
        return asyncio.create_task(work(), name="the work")
    finally:
        STEPS.reset(token)


async def awaits(work: Work, over: Callable[[], Awaitable[object]] | None = None) -> int:
    """How many awaits the work makes until it ends, or until it is `over`."""
    steps = Steps()
    with counting():
        task = begun(work, steps)
        await (over() if over else task)
        made = steps.made
        task.cancel()
        await asyncio.wait((task,))
    return made


async def cancelled(work: Work, at: int, *, everything: bool = False, reached: float = 10.0) -> list[str]:
    """Cancel the work at that await, or after so many seconds: its task, as a stop does, or `everything` that it
    began, as the end of a loop does. What of it goes on two seconds later: tasks and child processes."""
    processes, steps = children(), Steps(at=at)
    with counting():
        task = begun(work, steps)
        struck = asyncio.create_task(steps.struck.wait())
        await asyncio.wait((task, struck), timeout=reached, return_when=asyncio.FIRST_COMPLETED)
        struck.cancel()
        for each in steps.tasks if everything else (task,):
            each.cancel()
        over = asyncio.get_running_loop().time() + STOP_SECONDS
        while left := [*steps.alive, *(children() - processes)]:
            if asyncio.get_running_loop().time() > over:
                return left
            await asyncio.sleep(0.01)
    with suppress(asyncio.CancelledError, Exception):
        task.result()
    return []


def children() -> set[str]:
    """The processes that this one started, and has not collected."""
    files = Path("/proc/self/task").glob("*/children")
    return {f"process {number}" for file in files for number in file.read_text().split()}


def sockets() -> set[str]:
    """What this process has open of sockets and pipes."""
    found = set[str]()
    for number in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # The folder itself was open.
            found.add(str(number.readlink()))
    return {each for each in found if each.startswith(("socket:", "pipe:"))}
