"""Formats a count with its noun in singular or plural."""

from __future__ import annotations


def plural(count: int, one: str, several: str = "") -> str:
    """`1 message`, `2 messages`; `several` where it is more than an `s` behind the noun."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"
