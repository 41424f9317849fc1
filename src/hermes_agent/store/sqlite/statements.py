"""Adapts shared SQL to SQLite, and runs a coroutine without an event loop."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
_PARAMETER = re.compile(r"\$(\d+)")
_ROW_LOCK = re.compile(r"\s+FOR NO KEY UPDATE( SKIP LOCKED)?")
_texts: dict[tuple[str, int], str] = {}


def sqlite_text(sql: str, home: int = 1) -> str:
    """The shared SQL for SQLite: `?1` for `$1`, the number for `$home`, and no row locks, since there is one writer."""
    text = _texts.get((sql, home))
    if text is None:
        text = _PARAMETER.sub(r"?\1", sql.replace("$home", str(home)))
        text = _texts[sql, home] = _ROW_LOCK.sub("", text)
    return text


def drive(change: Awaitable[T]) -> T:
    """Run a coroutine that never suspends to its end; its result."""
    steps = change.__await__()
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
    raise RuntimeError("A change may await only its transaction.")
