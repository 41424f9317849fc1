"""Ids of sessions, runs and tool calls."""

from __future__ import annotations

import os
import random
import threading
from datetime import UTC, datetime
from typing import Protocol


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
