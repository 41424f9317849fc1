"""The words around what was found, with where the found words stand in them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from hermes_agent.store.finding.terms import PLAIN, Phrase, beginnings, placed, stemmed

AROUND = 90
BLANK = re.compile(r"\s+")
Spot = tuple[int, int]


def snippet(text: str, wanted: Collection[Phrase]) -> tuple[str, tuple[Spot, ...]]:
    """At most 180 characters of the text on one line, where most of the phrases stand close together; and from which
    to which character of it each found word goes."""
    spots = list(spotted(text, wanted))
    middle = _densest(spots)
    first, last = max(0, middle - AROUND), middle + AROUND
    lead, tail = "…" if first else "", "…" if last < len(text) else ""
    line, marks = lead, []
    position = first
    for start, end in spots:
        if first <= start and end <= last:
            line += BLANK.sub(" ", text[position:start])
            marks.append((len(line), len(line) + end - start))
            line += text[start:end]
            position = end
    return line + BLANK.sub(" ", text[position:last]).rstrip() + tail, tuple(marks)


def marked(line: str, marks: Iterable[Spot]) -> str:
    """A snippet with its found words in Markdown's bold."""
    parts, reached = [], 0
    for start, end in marks:
        parts += [line[reached:start], "**", line[start:end], "**"]
        reached = end
    return "".join(parts) + line[reached:]


def spotted(text: str, wanted: Collection[Phrase]) -> Iterator[Spot]:
    """Where the phrases stand, in order and without overlaps."""
    known = frozenset(wanted)
    if text.isascii() and all(len(phrase) == 1 for phrase in known):
        yield from _words(text, known)
        return
    lengths = sorted({len(phrase) for phrase in known}, reverse=True)
    spots = placed(text)
    terms = tuple(term for term, _start, _end in spots)
    reached = 0
    for place in range(len(spots)):
        here = (terms[place : place + length] for length in lengths)
        length = next((len(phrase) for phrase in here if phrase in known), 0)
        if length:
            end = spots[place + length - 1][2]
            start = max(spots[place][1], reached)
            if end > start:
                yield start, end
                reached = end


def _words(text: str, known: frozenset[Phrase]) -> Iterator[Spot]:
    """The same for single words in plain letters, of which only those are looked at that begin like one of them."""
    plain = text.lower()
    for found in _beginning(known).finditer(plain):
        word = PLAIN.match(plain, found.start())
        if word is not None and (stemmed(word[0]),) in known:
            yield word.span()


@lru_cache(maxsize=64)
def _beginning(known: frozenset[Phrase]) -> re.Pattern[str]:
    return beginnings(term for phrase in known for term in phrase)


def _densest(spots: list[Spot]) -> int:
    if not spots:
        return 0

    def near(spot: Spot) -> int:
        return sum(1 for start, _end in spots if spot[0] <= start < spot[0] + AROUND)

    start = max(spots[:200], key=near)[0]
    return start + AROUND // 3
