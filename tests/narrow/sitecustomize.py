"""Python runs this at the start of a process whose path has this folder: few threads, and locks that are held long."""

import asyncio
import importlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

POOL, SECONDS = "TESTED_POOL", "TESTED_LOCK_SECONDS"
"""The variables that say how many threads the default pool of an event loop has, and how long every lock file is held
before its holder begins to work."""


def make_pools_small(most: int) -> None:
    """Have the default pool of every event loop have so many places."""
    whole = ThreadPoolExecutor.__init__

    def small(
        self: ThreadPoolExecutor, max_workers: int | None = None, prefix: str = "", *more: object, **named: object
    ) -> None:
        prefix = str(named.pop("thread_name_prefix", prefix))
        whole(self, most if max_workers is None and prefix == "asyncio" else max_workers, prefix, *more, **named)

    ThreadPoolExecutor.__init__ = small


def make_holders_slow(seconds: float) -> None:
    """Have everybody who gets the lock of a file wait before they go on. To be called before it is imported by name."""
    locks = importlib.import_module("hermes_agent.host.locks")
    taken, locked = locks._taken, locks.locked

    async def slowly_taken(path: Path) -> object:
        lock = await taken(path)
        try:
            await asyncio.sleep(seconds)
        except BaseException:
            lock.close()
            raise
        return lock

    @contextmanager
    def slowly_locked(path: Path, limit: float = float("inf")) -> Iterator[None]:
        with locked(path, limit):
            threading.Event().wait(seconds)
            yield

    locks._taken, locks.locked = slowly_taken, slowly_locked


if POOL in os.environ:
    make_pools_small(int(os.environ[POOL]))
if SECONDS in os.environ:
    make_holders_slow(float(os.environ[SECONDS]))
