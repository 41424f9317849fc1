"""A sign of life of a command and all that it starts: a pipe that they hold open, wherever they run on this machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path


def beating(folder: Path) -> str:
    """Shell code after which a command, and whoever it starts, holds the pipe in this folder open."""
    os.mkfifo(folder / "held")
    return f"exec 7<>{folder}/held; "


async def seen(folder: Path, seconds: float = 10) -> None:
    """Return when somebody holds it. Raises `TimeoutError`."""
    async with asyncio.timeout(seconds):
        while not held(folder):
            await asyncio.sleep(0.02)


async def silent(folder: Path, seconds: float) -> None:
    """Return when nobody holds it any more. Raises `TimeoutError`."""
    async with asyncio.timeout(seconds):
        while held(folder):
            await asyncio.sleep(0.02)


def held(folder: Path) -> bool:
    """Whether anybody holds it."""
    try:
        os.close(os.open(folder / "held", os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
