"""Clock protocol, so that tests and replays decide what time it is, and the machine's clock."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A clock.

    - `now` is seconds since 1970 (UTC) and may jump backwards with the machine's clock;
    - `monotonic` never goes backwards and has no meaning across processes;
    - `sleep` returns after that many seconds of `monotonic`.
    """

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def moment(at: float) -> str:
    """Seconds since 1970 as date and time on this machine's clock."""
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M}"


def ago(seconds: float) -> str:
    """How long something is ago, in one unit: `now`, `5 min`, `3 h`, `12 d`."""
    minutes = int(max(0.0, seconds) // 60)
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} d"
