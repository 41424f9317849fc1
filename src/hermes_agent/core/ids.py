"""Ids of sessions, runs and tool calls."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Protocol


class Ids(Protocol):
    """Makes the ids of one process. Session ids read `YYYYMMDD_HHMMSS_<hex6>` (UTC); the others are 12 hex digits."""

    def session(self, now: float) -> str: ...

    def short(self) -> str: ...


class RandomIds:
    """Ids from the operating system's randomness, or from a seed where a replay needs the same ones again."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.SystemRandom() if seed is None else random.Random(seed)

    def session(self, now: float) -> str:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d_%H%M%S")
        return f"{stamp}_{self._random.getrandbits(24):06x}"

    def short(self) -> str:
        return f"{self._random.getrandbits(48):012x}"
