"""Spans between two marks, found in time that grows as the text does, also where marks are never closed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

TICKS = "ticks"
"""The kind of mark that only as many of it end as began it."""

RUN = re.compile(r"`+")
HEADING = re.compile(r"#{1,6}\s+(\S.*)")


def heading(line: str) -> str:
    """The words of a line that is a heading; empty where it is none."""
    found = HEADING.fullmatch(line.rstrip())
    return (found[1].rstrip("#").rstrip() or found[1]) if found else ""


def respanned(
    text: str,
    opening: re.Pattern[str],
    ends: Mapping[str, re.Pattern[str]],
    write: Callable[[str, re.Match[str], str], str],
    between: Callable[[str], str] = str,
) -> str:
    """The text with each span written anew by `write`, from its kind, its beginning and what is in it.

    `opening` finds beginnings, the name of its last group is their kind. What ends a kind is in `ends`, at least one
    character behind; a kind that is not there is whole with its beginning. `between` writes all other words.
    """
    done: list[str] = []
    at = look = 0
    missing: set[str] = set()  # What has no end from here on has none later either.
    last = {run[0]: run.start() for run in RUN.finditer(text)}
    while found := opening.search(text, look):
        kind, stop, inside = str(found.lastgroup), found.end(), ""
        if kind == TICKS or kind in ends:
            key = found[0] if kind == TICKS else kind
            end = (
                None
                if key in missing or (kind == TICKS and last[key] == found.start())
                else _end(text, key, stop + 1, ends)
            )
            if end is None:
                missing.add(key)
                look = stop if kind == TICKS else found.start() + 1
                continue
            inside, stop = text[stop : end[0]], end[1]
        done += [between(text[at : found.start()]), write(kind, found, inside)]
        at = look = stop
    return "".join([*done, between(text[at:])])


def _end(text: str, key: str, at: int, ends: Mapping[str, re.Pattern[str]]) -> tuple[int, int] | None:
    if key in ends:
        found = ends[key].search(text, at)
        return found and found.span()
    return next((run.span() for run in RUN.finditer(text, at) if run[0] == key), None)
