"""Figures with their nouns, as a person says them."""

from __future__ import annotations


def plural(count: int, one: str, several: str = "") -> str:
    """`1 message`, `2 messages`; `several` where it is more than an `s` behind the noun."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"
