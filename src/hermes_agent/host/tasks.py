"""Background work: the one place that makes asyncio tasks which nobody waits for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_log = logging.getLogger(__name__)
_kept: set[asyncio.Task[Any]] = set()  # asyncio itself holds tasks weakly: one that is not kept may vanish half-way


def spawn(work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Run `work` beside the caller. It is kept until it ends, and a failure that nobody awaits stands in the log.

    `name` is what a log line and a debugger show, e.g. `"review 20260101_120000_ab12cd"`.
    """
    task = asyncio.create_task(work, name=name)
    _kept.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        _log.error("Background task %s failed: %s", task.get_name(), error, exc_info=error)
