"""Fuzzy search: which texts hold the typed letters in their order, best match first."""

from __future__ import annotations

from collections.abc import Sequence

BOUNDARIES = "/._- :"
FAR = 1_000.0
"""The score of a match whose letters are scattered, from which on those with more gaps are worse."""


def best(query: str, texts: Sequence[str]) -> list[int]:
    """The places of the texts that match every word of the query, best first; all in their order for an empty one.
    The texts are in small letters."""
    words = query.lower().split()
    if not words:
        return list(range(len(texts)))
    scored = []
    for place, text in enumerate(texts):
        distances = [_distance(word, text) for word in words]
        if None not in distances:
            scored.append((sum(filter(None, distances)) + len(text) / 1_000, place))
    return [place for _, place in sorted(scored)]


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
