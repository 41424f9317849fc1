"""Fuzzy search: which texts hold the typed letters in their order, best match first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
BOUNDARIES = "/._- :"
FAR = 1_000.0
"""The score of a match whose letters are scattered, from which on those with more gaps are worse."""


def best(query: str, items: Iterable[T], text_of: Callable[[T], str], limit: int) -> list[T]:
    """At most `limit` items that match every word of the query, best first; all in their order for an empty one."""
    words = query.lower().split()
    scored = []
    for place, item in enumerate(items):
        score = _score(words, text_of(item))
        if score is not None:
            scored.append((score, place, item))
    scored.sort(key=lambda each: each[:2])
    return [item for _, _, item in scored[:limit]]


def _score(words: list[str], text: str) -> float | None:
    """How far a text is from the words, 0 for equal; None where it does not hold them."""
    low, total = text.lower(), 0.0
    for word in words:
        found = _distance(word, low)
        if found is None:
            return None
        total += found
    return total + len(low) / 1_000 if words else total


def _distance(word: str, text: str) -> float | None:
    place = text.rfind(word)
    if place >= 0:  # In one piece: best at the beginning of the last part, then of any part, then anywhere.
        begins = place == 0 or text[place - 1] in BOUNDARIES
        is_last = "/" not in text[place:]
        return (0.0 if begins else 50.0) + (0.0 if is_last else 20.0)
    at, gaps = -1, 0
    for letter in word:
        next_at = text.find(letter, at + 1)
        if next_at < 0:
            return None
        gaps += at >= 0 and next_at > at + 1 and text[next_at - 1] not in BOUNDARIES
        at = next_at
    return FAR + gaps * 10 if gaps <= len(word) // 2 else None
