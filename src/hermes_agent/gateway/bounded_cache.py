"""Bounded in-memory cache with a maximum size and a maximum age."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Cache of at most `most` values; each expires after `seconds` (0: never), and the oldest is evicted first."""

    def __init__(self, most: int, seconds: float = 0.0, now: Callable[[], float] = lambda: 0.0) -> None:
        self._most = most
        self._seconds = seconds
        self._now = now
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value of a key; None if missing or expired."""
        value, at = self._kept.get(key, (None, 0.0))
        return None if self._seconds and self._now() - at >= self._seconds else value

    def put(self, key: K, value: V) -> V:
        """Store a value and return it."""
        self._kept[key] = value, self._now()
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return value

    def pop(self, key: K) -> None:
        """Remove a key."""
        self._kept.pop(key, None)

    def clear(self) -> None:
        """Remove all keys."""
        self._kept.clear()
