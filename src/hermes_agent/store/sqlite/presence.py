"""A worker's presence beside a SQLite file: a lock that the kernel frees when the process dies, and a bell."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from hermes_agent.core.clock import Clock
from hermes_agent.store.sqlite.bell import Bell, bell_folder, listen

PREFIX = "worker-"


class SqlitePresence:
    """`Presence` for the processes that share one home.

    A thread per peer sleeps in the kernel until the peer's lock is free, so that a death is noticed at once and an idle
    worker costs nothing.
    """

    look_seconds = 30.0

    def __init__(self, home: Path, clock: Clock) -> None:
        self._locks = home / "locks"
        self._bells = bell_folder(home)
        self._clock = clock
        self._me = ""
        self._lock = -1
        self._socket: socket.socket | None = None
        self._watched: set[str] = set()
        self._dead: set[str] = set()
        self._bell = Bell(self._bells)

    async def arrive(self, worker: str, _key: int) -> None:
        self._me = worker
        self._locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Locked before it has its name: a peer that found it free would never look at it again.
        unnamed = self._locks / f"new-{worker}"
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unnamed.rename(self._locks / f"{PREFIX}{worker}")
        self._socket = listen(self._bells, worker)
        self._watch_peers()
        self._bell.ring([""])  # The others begin to watch this one.

    async def leave(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            (self._bells / f"{self._me}.sock").unlink(missing_ok=True)
            (self._locks / f"{PREFIX}{self._me}").unlink(missing_ok=True)
            os.close(self._lock)
        self._bell.close()

    async def wait(self, seconds: float) -> bool:
        assert self._socket is not None
        rung = self._drain() or await self._readable(self._socket, seconds)
        rung = self._drain() or rung  # Also what came in the moment in which the time was up.
        if rung:  # pragma: no branch - it depends on who rings when
            self._watch_peers()
        return rung

    async def now(self) -> float:
        return self._clock.monotonic()

    async def look(self) -> bool:
        return True

    def suspicious(self) -> bool:
        noticed = bool(self._dead)
        if noticed:  # Otherwise a death that a thread notes just now would be forgotten.
            self._dead.clear()
        return noticed

    async def dead(self, workers: Collection[tuple[str, int]]) -> list[str]:
        return [worker for worker, _key in workers if _is_free(self._locks / f"{PREFIX}{worker}")]

    async def buried(self, worker: str) -> None:
        (self._locks / f"{PREFIX}{worker}").unlink(missing_ok=True)
        (self._bells / f"{worker}.sock").unlink(missing_ok=True)

    def _drain(self) -> bool:
        assert self._socket is not None
        rung = False
        with suppress(BlockingIOError):
            while True:
                self._socket.recv(1)
                rung = True
        return rung

    async def _readable(self, bell: socket.socket, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        rung = loop.create_future()
        loop.add_reader(bell, _ring_once, rung)
        try:
            async with asyncio.timeout(seconds):
                return bool(await rung)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(bell)

    def _watch_peers(self) -> None:
        for path in self._locks.glob(f"{PREFIX}*"):
            worker = path.name.removeprefix(PREFIX)
            if worker != self._me and worker not in self._watched:
                self._watched.add(worker)
                threading.Thread(target=self._watch, args=(path, worker), name="store-watch", daemon=True).start()

    def _watch(self, path: Path, worker: str) -> None:
        with suppress(FileNotFoundError), path.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH)
        self._dead.add(worker)
        bell = Bell(self._bells)
        bell.ring([self._me])
        bell.close()


def _ring_once(rung: asyncio.Future[bool]) -> None:
    if not rung.done():  # pragma: no branch - two rings in one pass of the loop
        rung.set_result(True)


def _is_free(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True
