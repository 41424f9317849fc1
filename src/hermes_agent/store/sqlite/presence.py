"""Liveness of a worker on SQLite: a lock file that the kernel frees when the process dies, and a socket for
wake-ups."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import socket
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from hermes_agent.core.clock import Clock
from hermes_agent.host.locks import LockFile, noted
from hermes_agent.host.process_table import is_alive

PREFIX = "worker-"
GLANCE = 1.0


class SqlitePresence:
    """Implements `Presence` for the processes that share one home.

    The event loop is woken when the process of a peer ends, so that a death is noticed at once and an idle worker
    costs nothing. A peer whose process is not visible (another container on the same folder, a system without
    pidfd) is polled every `GLANCE` seconds.
    """

    look_seconds = 30.0

    def __init__(self, home: Path, clock: Clock) -> None:
        self._locks = home / "locks"
        self._bells = bell_folder(home)
        self._clock = clock
        self._me = ""
        self._lock: LockFile | None = None
        self._socket: socket.socket | None = None
        self._watched: dict[str, _Watch | None] = {}
        self._dead: set[str] = set()
        self._gone: set[str] = set()
        self._bell = Bell(self._bells)

    async def arrive(self, worker: str, _key: int) -> None:
        self._me = worker
        # Locked before it has its name: a peer that found it free would never look at it again.
        self._lock = LockFile(self._locks / f"new-{worker}")
        self._lock.try_lock()
        self._lock.path.rename(self._locks / f"{PREFIX}{worker}")
        self._socket = listen(self._bells, worker)
        self._watch_peers()
        self._bell.ring([""])  # The others begin to watch this one.

    async def leave(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            for name in (self._bells / f"{self._me}.sock", self._locks / f"{PREFIX}{self._me}"):
                with suppress(OSError):  # Whoever comes next takes it away: its lock is free.
                    name.unlink()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
            self._bell.ring([""])  # The others look whether this one is still there.
        for worker in list(self._watched):
            self._forget(worker)
        self._bell.close()

    async def wait(self, seconds: float) -> bool:
        assert self._socket is not None
        until = self._clock.monotonic() + seconds
        while True:
            left = until - self._clock.monotonic()
            unseen = [worker for worker, watch in self._watched.items() if watch is None]
            rung = self._drain() or await self._readable(self._socket, min(left, GLANCE) if unseen else left)
            rung = self._drain() or rung  # Also what came in the moment in which the time was up.
            for worker in unseen:
                if _is_free(self._locks / f"{PREFIX}{worker}"):
                    self._died(worker)
            if rung:  # pragma: no branch - it depends on who rings when
                self._watch_peers()
            if rung or left <= GLANCE or not unseen:
                return rung

    async def now(self) -> float:
        return self._clock.monotonic()

    async def check(self) -> bool:
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
        rung: asyncio.Future[bool] = loop.create_future()
        loop.add_reader(bell, _resolve, rung, True)
        timer = loop.call_later(seconds, _resolve, rung, False)
        try:
            return await rung
        finally:
            timer.cancel()
            loop.remove_reader(bell)

    def _watch_peers(self) -> None:
        there = {path.name.removeprefix(PREFIX) for path in self._locks.glob(f"{PREFIX}*")} - {self._me}
        self._gone &= there
        for worker in self._watched.keys() - there:
            self._died(worker)
        for worker in there - self._watched.keys() - self._gone:
            self._watched[worker] = _watch(self._locks / f"{PREFIX}{worker}", partial(self._died, worker))

    def _died(self, worker: str) -> None:
        self._forget(worker)
        self._gone.add(worker)
        self._dead.add(worker)
        self._bell.ring([self._me])

    def _forget(self, worker: str) -> None:
        if (watch := self._watched.pop(worker, None)) is not None:
            watch.close()


class _Watch:
    """Calls `died` in the event loop when a process ends. Raises `OSError` or `AttributeError` where the system
    cannot tell."""

    def __init__(self, pid: int, died: Callable[[], None]) -> None:
        self._process = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._process, died)

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._process)
        os.close(self._process)


def _watch(path: Path, died: Callable[[], None]) -> _Watch | None:
    """A watch over the process that wrote itself into a lock file; None where it is not to be seen from here."""
    holder = noted(path)
    if holder is None:
        return None
    try:
        watch = _Watch(holder.who.pid, died)
    except (OSError, AttributeError):
        return None
    if is_alive(holder.who):  # Asked after it is watched: its number may have been another's before.
        return watch
    watch.close()
    return None


def _resolve(rung: asyncio.Future[bool], result: bool) -> None:
    if not rung.done():  # pragma: no branch - two rings in one pass of the loop
        rung.set_result(result)


def _is_free(path: Path) -> bool:
    try:
        with path.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


log = logging.getLogger(__name__)

LONGEST_PATH = 100  # sun_path holds 104 bytes on macOS and 108 on Linux, with the closing NUL
# The same name in every process: TMPDIR may differ between two of them, or be long itself.
SHORT = Path("/tmp")
SUFFIX = ".sock"
NAME = len(f"/0123456789ab{SUFFIX}")


def bell_folder(home: Path) -> Path:
    """The folder of the wake-up sockets of a home: `run/` in it, or a shorter path where that is too long."""
    folder = home.absolute() / "run"
    if len(os.fsencode(folder)) + NAME <= LONGEST_PATH:
        return folder
    mark = hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:16]
    return SHORT / f"hermes-{os.getuid()}-{mark}"


class Bell:
    """Wakes workers by an empty datagram to their socket. One that is gone, already woken or unreachable is no
    error: it polls now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket: socket.socket | None = None

    def ring(self, workers: Iterable[str]) -> None:
        """Wake these workers; "" is all."""
        names = set(workers)
        for name in self._all() if "" in names else [f"{name}{SUFFIX}" for name in names]:
            self._send(f"{self._folder}/{name}")

    def close(self) -> None:
        """Close the sending socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _all(self) -> list[str]:
        # Names as the system gives them, no path objects.
        try:
            return [name for name in os.listdir(self._folder) if name.endswith(SUFFIX)]  # noqa: PTH208  (once per message)
        except FileNotFoundError:
            return []
        except OSError as error:
            log.warning("nobody can be woken: %s", error)
            return []

    def _send(self, path: str) -> None:
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            self._socket.sendto(b"", path)
        except ConnectionRefusedError:
            with suppress(OSError):
                Path(path).unlink(missing_ok=True)  # Its process died without taking the name away.
        except (FileNotFoundError, BlockingIOError):
            return
        except OSError as error:
            log.warning("%s cannot be woken: %s", Path(path).name, error)


def listen(folder: Path, worker: str) -> socket.socket:
    """The wake-up socket of this worker; create it before the worker's first look for mail, so that no wake-up is
    lost."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    path = folder / f"{worker}{SUFFIX}"
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        bell.bind(os.fspath(path))
        bell.setblocking(False)
    except BaseException:
        bell.close()
        raise
    return bell
