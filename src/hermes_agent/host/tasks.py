"""Background tasks, which nobody awaits, and long blocking work in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")
_log = logging.getLogger(__name__)
_kept: set[asyncio.Task[Any]] = set()  # asyncio itself holds tasks weakly: one that is not kept may vanish half-way


def spawn(work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Run `work` as a background task. A reference is kept until it ends, and an unawaited failure is logged.

    `name` is for logs and debuggers, e.g. `"review 20260101_120000_ab12cd"`.
    """
    task = asyncio.create_task(work, name=name)
    _kept.add(task)
    task.add_done_callback(_ended)
    return task


async def cancelled(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def in_own_thread(work: Callable[[], T]) -> T:
    """Run long blocking work (a person's input, foreign code) in its own thread: it takes no place in the shared
    pool, and nobody waits for it after cancellation or at the program's end."""
    ended: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as failure:  # noqa: BLE001  Boundary: a thread's failure belongs to who started it.
            with suppress(InvalidStateError):  # Nobody waits any more.
                ended.set_exception(failure)
        else:
            with suppress(InvalidStateError):
                ended.set_result(result)

    threading.Thread(target=copy_context().run, args=(run,), name="work that may last", daemon=True).start()
    return await asyncio.wrap_future(ended)


def first_of(error: BaseException) -> BaseException:
    """The first error of a group of tasks."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _ended(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("Background task %s failed: %s", task.get_name(), error, exc_info=error)
