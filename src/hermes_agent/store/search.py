"""Search over all logs: an index that is filled from them, and can be thrown away and made again at any time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from hermes_agent.core.events import Durable, MessageTaken, Replied
from hermes_agent.core.messages import Role
from hermes_agent.core.records import revive
from hermes_agent.store.bodies import plain
from hermes_agent.store.transaction import Row

# The events whose words a person would look for.
KINDS = ("message_taken", "replied")
WORD = re.compile(r"\w+")
TERM = re.compile(r'"([^"]*)"|([^\s"]+)')
# Scripts that put no space between words (and Korean, whose words take endings): each character is a word of its own.
UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
LONGEST_TEXT = 100_000
LONGEST_QUERY = 64
AROUND = 90
SHORTEST_STEM = 4
ENDING = 3

Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message that was found: where it is, when and by whom it was said, and the words around what was looked for."""

    session: str
    number: int
    at: float
    role: Role
    snippet: str


class Index(Protocol):
    """Words of all logs in one dialect.

    - `catch_up` reads what the logs gained and lost since the last time; returns how many entries it read;
    - `find` gives rows `(session, number, at, body)`, the best first: those that hold every phrase (or any of them,
      with `every` False), of sessions that exist, of one principal where it is named;
    - a phrase is a sequence of words that follow each other; words are lower-case letters and digits.
    """

    async def catch_up(self) -> int: ...

    async def find(self, phrases: tuple[Phrase, ...], *, every: bool, principal: str, limit: int) -> list[Row]: ...

    async def close(self) -> None: ...


class Search:
    """Finds messages by their words, in any form of punctuation; English words by their stems."""

    def __init__(self, index: Index) -> None:
        self._index = index

    async def catch_up(self) -> int:
        """Bring the index up to date with the logs, so that the next search need not; how many entries were read."""
        return await self._index.catch_up()

    async def search(self, query: str, principal: str | None = None, limit: int = 20) -> list[Hit]:
        """The best hits first: messages that hold all words (and "phrases in quotes"), or else any of them."""
        phrases = phrases_of(query)
        if not phrases:
            return []
        await self._index.catch_up()
        for wanted, every in _tries(phrases):
            if rows := await self._index.find(wanted, every=every, principal=principal or "", limit=limit):
                return [_hit(row, phrases) for row in rows]
        return []

    async def close(self) -> None:
        """Close what the index has open."""
        await self._index.close()


def phrases_of(query: str) -> tuple[Phrase, ...]:
    """What is looked for: quoted words together, others alone; punctuation means nothing, so nothing can be wrong."""
    found = [tuple(words(quoted or single)) for quoted, single in TERM.findall(query)]
    return tuple(dict.fromkeys(phrase for phrase in found if phrase))[:LONGEST_QUERY]


def _tries(phrases: tuple[Phrase, ...]) -> Iterator[tuple[tuple[Phrase, ...], bool]]:
    """What to look for until something is found: all, any, and any word of what was joined by punctuation."""
    yield phrases, True
    if len(phrases) > 1:
        yield phrases, False
    apart = tuple(dict.fromkeys((word,) for phrase in phrases for word in phrase))
    if len(apart) > len(phrases):
        yield apart, False


def words(text: str) -> list[str]:
    """The words of a text, lower-case; a character of an unspaced script is a word."""
    return WORD.findall(spaced(text.lower()))


def spaced(text: str) -> str:
    """The text with spaces around every character that is a word of its own."""
    return UNSPACED.sub(r" \g<0> ", text) if UNSPACED.search(text) else text


def said(body: str) -> tuple[Role, str] | None:
    """Who said what in a log entry, None where nobody did."""
    event = revive(Durable, plain(body))
    if not isinstance(event, MessageTaken | Replied):
        return None
    return event.message.role, event.message.text


def _hit(row: Row, phrases: tuple[Phrase, ...]) -> Hit:
    session, number, at, body = row
    role, text = said(body) or (Role.USER, "")
    return Hit(session=session, number=number, at=at, role=role, snippet=snippet(text, phrases))


def snippet(text: str, phrases: tuple[Phrase, ...]) -> str:
    """The first place where one of the words stands, with what is around it, on one line."""
    spots = [spot for phrase in phrases for word in phrase if (spot := _place(text, word)) >= 0]
    middle = min(spots, default=0)
    first, last = max(0, middle - AROUND), middle + AROUND
    cut = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{cut}{'…' if last < len(text) else ''}"


def _place(text: str, word: str) -> int:
    stem = word[: max(SHORTEST_STEM, len(word) - ENDING)]
    for form in (word, stem):
        if match := re.search(rf"(?<!\w){re.escape(form)}" if form.isascii() else re.escape(form), text, re.IGNORECASE):
            return match.start()
    return -1
