"""The known name that a person probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

CLOSE_ENOUGH = 0.6


def nearest_key(wrong: str, known: Iterable[str]) -> str:
    """The known dotted key that looks most like `wrong`, as a whole or by its last word; empty where none is close."""
    scored = [(_likeness(wrong, key), key) for key in known]
    likeness, key = max(scored, default=(0.0, ""))
    return key if likeness >= CLOSE_ENOUGH else ""


def _likeness(wrong: str, key: str) -> float:
    whole = SequenceMatcher(None, wrong.lower(), key.lower()).ratio()
    last = SequenceMatcher(None, _last(wrong), _last(key)).ratio()
    return max(whole, last * 0.95)


def _last(key: str) -> str:
    return key.rpartition(".")[2].lower()
