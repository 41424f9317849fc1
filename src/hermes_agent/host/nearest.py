"""Suggests the known name nearest to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

CLOSE_ENOUGH = 0.6
LAST = 0.85
"""What a likeness of the last parts counts: `modle` is `model`, not `learning.mode`."""


def nearest_key(wrong: str, known: Iterable[str]) -> str:
    """The known dotted key most similar to `wrong`, as a whole or by its last part; empty where none is close.

    `NAME` in a known key stands for a name that the person chose: the result has the one of `wrong`.
    """
    scored = [(_likeness(wrong, key), key) for key in (_named(key, wrong) for key in known)]
    likeness, key = max(scored, default=(0.0, ""))
    return key if likeness >= CLOSE_ENOUGH else ""


def _named(key: str, wrong: str) -> str:
    parts, given = key.split("."), wrong.split(".")
    if len(parts) != len(given):
        return key
    return ".".join(theirs if part == "NAME" else part for part, theirs in zip(parts, given, strict=True))


def _likeness(wrong: str, key: str) -> float:
    whole = SequenceMatcher(None, wrong.lower(), key.lower()).ratio()
    last = SequenceMatcher(None, _last(wrong), _last(key)).ratio()
    return max(whole, last * LAST)


def _last(key: str) -> str:
    return key.rpartition(".")[2].lower()
