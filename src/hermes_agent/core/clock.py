"""Time and ids, by protocols, so that tests and replays decide them; the machine's clock and random ids."""

from __future__ import annotations

import asyncio
import os
import random
import threading
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


class Ids(Protocol):
    """Makes the ids of one process. Session ids read `YYYYMMDD_HHMMSS_<hex6>` (UTC); the others are 12 hex digits."""

    def session(self, now: float) -> str: ...

    def short(self) -> str: ...


POOL = 4096


class _Pooled:
    """Pool of random bits from the operating system, fetched in bulk: one fetch costs more than all the rest of an
    id."""

    def __init__(self) -> None:
        self._pool = b""
        self._pid = 0
        self._turn = threading.Lock()

    def getrandbits(self, bits: int) -> int:
        size = bits // 8
        with self._turn:
            if len(self._pool) < size or self._pid != os.getpid():  # A forked process has the same pool.
                self._pool, self._pid = os.urandom(POOL), os.getpid()
            taken, self._pool = self._pool[:size], self._pool[size:]
        return int.from_bytes(taken, "big")


class RandomIds:
    """Ids from the operating system's randomness, or from a seed where a replay needs the same ones again."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = _Pooled() if seed is None else random.Random(seed)

    def session(self, now: float) -> str:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d_%H%M%S")
        return f"{stamp}_{self._random.getrandbits(24):06x}"

    def short(self) -> str:
        return f"{self._random.getrandbits(48):012x}"
