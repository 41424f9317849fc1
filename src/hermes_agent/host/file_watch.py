"""Watches a folder for written files through inotify(7); elsewhere no change is reported."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes_agent.host.late import libraries

CLOSED_AFTER_WRITING, MOVED_HERE = 0x008, 0x080
EVENT = struct.Struct("iIII")
"""struct inotify_event: watch, mask, cookie, bytes of the name that follows."""


@contextmanager
def watching(folder: Path, heed: Callable[[str], None]) -> Iterator[bool]:
    """Call `heed` in the event loop with the name of each file written or moved into the folder; False where that
    cannot be watched."""
    handle = _opened(folder)
    if handle < 0:
        yield False
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, _notify, handle, heed)
    try:
        yield True
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def _opened(folder: Path) -> int:
    """What can be read from when something was written there; negative where nothing can."""
    system = libraries.ctypes.CDLL(None)
    try:
        handle = int(system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        watch = system.inotify_add_watch(handle, os.fsencode(folder), CLOSED_AFTER_WRITING | MOVED_HERE)
    except AttributeError:  # This system has none.
        return -1
    if handle >= 0 and watch < 0:
        os.close(handle)
        return -1
    return handle


def _notify(handle: int, heed: Callable[[str], None]) -> None:
    with suppress(BlockingIOError):
        for name in names_in(os.read(handle, 1 << 16)):
            heed(name)


def names_in(events: bytes) -> list[str]:
    """The file names in a buffer of inotify events."""
    names: list[str] = []
    at = 0
    while at < len(events):
        size = EVENT.unpack_from(events, at)[3]
        at += EVENT.size
        names.append(os.fsdecode(events[at : at + size].rstrip(b"\0")))
        at += size
    return names
