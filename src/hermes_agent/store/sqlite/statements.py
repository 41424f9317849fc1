"""Statements for SQLite: the shared SQL rewritten once, and a coroutine driven without an event loop."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
_PARAMETER = re.compile(r"\$(\d+)")
_ROW_LOCK = re.compile(r"\s+FOR NO KEY UPDATE( SKIP LOCKED)?")
_texts: dict[str, str] = {}


def sqlite_text(sql: str) -> str:
    """The shared SQL as SQLite reads it: `?1` for `$1`, and no row locks, since there is one writer."""
    text = _texts.get(sql)
    if text is None:
        text = _texts[sql] = _ROW_LOCK.sub("", _PARAMETER.sub(r"?\1", sql))
    return text


def drive(change: Awaitable[T]) -> T:
    """Run a coroutine that never suspends to its end, and return what it returns."""
    steps = change.__await__()
    try:
        next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
    raise RuntimeError("A change may await only its transaction.")
