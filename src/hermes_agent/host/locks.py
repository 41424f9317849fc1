"""Waiting for a lock file on the event loop: no thread is taken, and a cancelled wait ends at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from hermes_agent.host.lock_file import PATIENCE, LockFile, tell_waiting
from hermes_agent.host.tasks import spawn

T = TypeVar("T")
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[Path, asyncio.Lock]] = WeakKeyDictionary()


@asynccontextmanager
async def held(path: Path) -> AsyncIterator[None]:
    """Hold the lock of a file, made where it is not there, as long as the block; the tasks of one event loop get it in
    the order in which they asked. After `PATIENCE` seconds the current activity is told who has it. Raises `HomeError`.
    """
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
    """Do blocking work in a thread, as `asyncio.to_thread`, but leave it only when it is over, also where the caller is
    cancelled: what is done under a lock has ended when the lock is let go."""
    working = spawn(asyncio.to_thread(work), name="work under a lock")
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait((working,))
        raise


async def change_under(path: Path, work: Callable[[], T]) -> T:
    """Do blocking work in a thread while the lock file is held. Raises `HomeError` and what the work raises."""
    async with held(path):
        return await in_thread(work)
