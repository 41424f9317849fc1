"""Lock files, for blocking and for async code: fair among the tasks of an event loop, with the holder's name."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from hermes_agent.core.activity import activity
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.host.paths import PRIVATE_FILE, PRIVATE_FOLDER, reason, way_out
from hermes_agent.host.process_table import PROC, Identity, is_alive, row_of
from hermes_agent.host.tasks import spawn

PATIENCE = 2.0
"""Seconds after which whoever waits is told who holds the lock."""
SHORTEST, LONGEST, GROWTH = 0.002, 0.1, 1.5
"""Seconds between two tries, and how they grow."""
SHOWN_WORDS, SHOWN = 4, 80
"""How much of a command is shown; a word with a blank or `=` in it may be anything that somebody typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that holds a lock: `since` is on the monotonic clock of this machine (0: not known), `name` what it
    works on."""

    who: Identity
    since: float = 0.0
    name: str = ""

    def __str__(self) -> str:
        work = f", {self.name}" if self.name else ""
        return named(self.who.pid) + work + (f", for {time.monotonic() - self.since:.0f} s" if self.since else "")


class LockFile:
    """An open lock file. The lock ends with `close`, or with the process. Raises `HomeError` where it cannot be
    opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._handle = os.open(path, flags, PRIVATE_FILE)
        except OSError as error:
            raise self._unusable(error) from error
        if not stat.S_ISREG(os.fstat(self._handle).st_mode):
            os.close(self._handle)
            raise HomeError(f"{path} cannot be locked: it is a device or pipe, not a file. Move it out of the way.")
        self._held = False

    def try_lock(self) -> bool:
        """Take the lock if it is free, and record its holder in the file."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._unusable(error) from error
        self._held = True
        note = {"pid": os.getpid(), "started": _started(os.getpid()), "since": time.monotonic()}
        self._write(json.dumps({**note, "name": activity.get().name}).encode())
        return True

    def tries(self) -> Iterator[float]:
        """Try until the lock is taken; yields the seconds to sleep before each further try."""
        pause = SHORTEST
        while not self.try_lock():
            yield pause
            pause = min(pause * GROWTH, LONGEST)

    def close(self) -> None:
        """Release the lock."""
        if self._held:
            self._write(b"")
        os.close(self._handle)

    def _write(self, note: bytes) -> None:
        with suppress(OSError):  # On a full disk the lock holds all the same; nobody can say whose it is.
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, note, 0)

    def _unusable(self, error: OSError) -> HomeError:
        return HomeError(f"{self.path} cannot be locked ({reason(error)}): {way_out(error, self.path)}")


@contextmanager
def locked(path: Path, seconds: float = float("inf")) -> Iterator[None]:
    """Hold the lock file `path` in a block, without an event loop (with one: `held`). Waits at most `seconds` for
    other processes and threads. Raises `HomeError`."""
    lock = LockFile(path)
    began, told = time.monotonic(), False
    try:
        for pause in lock.tries():
            waited = time.monotonic() - began
            if waited >= seconds:
                raise HomeError(waiting_for(path))
            if waited >= PATIENCE and not told:
                told = True
                tell_waiting(path)
            time.sleep(pause)
        yield
    finally:
        lock.close()


def tell_waiting(path: Path) -> None:
    """Notify the person of the current task that it waits for this lock, and for whom."""
    activity.get().notify(f"Waiting: {waiting_for(path)}")


def waiting_for(path: Path) -> str:
    """The holder of a lock file, as a sentence."""
    return f"{path} is locked by {holder_of(path) or 'another process'}."


def holder_of(path: Path) -> Holder | None:
    """The holder of a lock file according to the kernel, otherwise to the file's content; None where neither knows."""
    try:
        note, found = noted(path), path.stat()
    except OSError:
        return None
    held_by = kernel_holder(found, "FLOCK")
    if note is not None and held_by in (0, note.who.pid) and is_alive(note.who):
        return note
    return Holder(who=Identity(pid=held_by)) if held_by else None


def named(pid: int) -> str:
    """A process in words: its number and command, and whether it is stopped."""
    if pid == os.getpid():
        return "this process"
    if (row := row_of(pid)) is None:
        return f"process {pid}, which has ended, or a program that it started (`fuser` names it)"
    stopped = f", stopped: `kill -CONT {pid}` lets it go on" if row.state == "T" else ""
    return f"process {pid} ({_command(pid)}{stopped})"


def kernel_holder(found: os.stat_result, kind: str, byte: int = 0) -> int:
    """The process that holds a lock of that kind (`FLOCK`, `POSIX`) for writing on the byte of a file; 0 where none
    does, or the system does not tell (proc(5), /proc/locks)."""
    try:
        rows = [line.split() for line in (PROC / "locks").read_text().splitlines()]
    except OSError:
        return 0
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    other = 0
    for row in rows:
        if len(row) < 8 or row[1] != kind or row[3] != "WRITE" or not _covers(row[6], row[7], byte):
            continue
        if row[5] == device:
            return int(row[4])
        if row[5].rpartition(":")[2] == str(found.st_ino):
            other = int(row[4])  # Some file systems show another device in the table than they tell of a file.
    return max(other, 0)


def _covers(first: str, last: str, byte: int) -> bool:
    return int(first) <= byte and (last == "EOF" or byte <= int(last))


def noted(path: Path) -> Holder | None:
    """The holder recorded in a lock file, which may be dead; None where the file records none."""
    try:
        note = json.loads(path.read_bytes()[:1000])
        who = Identity(pid=int(note["pid"]), started=int(note["started"]))
        return Holder(who=who, since=float(note["since"]), name=str(note["name"])[:SHOWN])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # Another program's lock, or one that is being written.


@cache
def _started(pid: int) -> int:
    row = row_of(pid)
    return row.started if row else 0


def _command(pid: int) -> str:
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return "of another user"
    words[0] = Path(words[0]).name
    shown = ["…" if {" ", "=", "\n"} & set(word) else word for word in words[:SHOWN_WORDS] if word.isprintable()]
    return " ".join(shown).strip()[:SHOWN]


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
