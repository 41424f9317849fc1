"""Lock files for async code: fair among the tasks of an event loop; blocking work runs in a thread under the lock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from hermes_agent.host.locks import PATIENCE, LockFile, tell_waiting
from hermes_agent.host.tasks import spawn

T = TypeVar("T")


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[Path, asyncio.Lock]] = WeakKeyDictionary()


@asynccontextmanager
async def held(path: Path) -> AsyncIterator[None]:
    """Hold a lock file for a block; creates it where missing. Tasks of one event loop get it in the order of their
    requests. After `PATIENCE` seconds the current activity is told who has it. Raises `HomeError`."""
    loop = asyncio.get_running_loop()
    turn = _turns.setdefault(loop, WeakValueDictionary()).setdefault(path, asyncio.Lock())
    notice = loop.call_later(PATIENCE, tell_waiting, path)
    try:
        async with turn:
            with closing(await _taken(path)):
                notice.cancel()
                yield
    finally:
        notice.cancel()


async def _taken(path: Path) -> LockFile:
    lock = LockFile(path)
    try:
        for pause in lock.tries():
            await asyncio.sleep(pause)
    except BaseException:
        lock.close()
        raise
    return lock


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a thread like `asyncio.to_thread`, but return only when it has ended, even if cancelled:
    work under a lock must end before the lock is released."""
    working = spawn(asyncio.to_thread(work), name="work under a lock")
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait((working,))
        raise


async def change_under(path: Path, work: Callable[[], T]) -> T:
    """Run blocking work in a thread while holding a lock file. Raises `HomeError` and what the work raises."""
    async with held(path):
        return await in_thread(work)
