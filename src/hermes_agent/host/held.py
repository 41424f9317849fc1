"""Waiting for a file lock without blocking the event loop; apart from `files`, which a start without one loads too."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import PRIVATE_FILE, reason, way_out


@asynccontextmanager
async def held(path: Path) -> AsyncIterator[None]:
    """Hold the lock of a file, made where it is not there, as long as the block. Raises `HomeError`."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    except OSError as error:
        raise HomeError(f"{path} cannot be locked ({reason(error)}): {way_out(error, path)}") from error
    try:
        await asyncio.to_thread(fcntl.flock, handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
