"""Search over all logs: an index that is filled from them, and can be thrown away and made again at any time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from hermes_agent.core.messages import Role
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


class _Part(msgspec.Struct):
    kind: str = ""
    text: str = ""


class _Message(msgspec.Struct):
    role: str
    parts: list[_Part]


class _Told(msgspec.Struct):
    message: _Message


_decoder = msgspec.json.Decoder(_Told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A message that was found: where it is, when and by whom it was said, and the words around what was looked for."""

    session: str
    number: int
    at: float
    role: Role
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a message must hold: every phrase, or any. A phrase is words that follow each other, in lower case."""

    phrases: tuple[Phrase, ...]
    every: bool


class Index(Protocol):
    """Words of all logs in one dialect.

    - `catch_up` reads what the logs gained and lost since the last time; returns how many entries it read;
    - `find` catches up, then gives rows `(session, number, at, body)`, the best first, for the first of the wishes that
      any message fulfils; of sessions that exist, of one principal where it is named.
    """

    async def catch_up(self) -> int: ...

    async def find(self, wishes: Sequence[Wanted], *, principal: str, limit: int) -> list[Row]: ...

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
        rows = await self._index.find(wishes_of(phrases), principal=principal or "", limit=limit)
        pattern = pattern_of(phrases)
        return [_hit(row, pattern) for row in rows]

    async def close(self) -> None:
        """Close what the index has open."""
        await self._index.close()


def phrases_of(query: str) -> tuple[Phrase, ...]:
    """What is looked for: quoted words together, others alone; punctuation means nothing, so nothing can be wrong."""
    found = [tuple(words(quoted or single)) for quoted, single in TERM.findall(query)]
    return tuple(dict.fromkeys(phrase for phrase in found if phrase))[:LONGEST_QUERY]


def wishes_of(phrases: tuple[Phrase, ...]) -> list[Wanted]:
    """What to look for until something is found: all, any, and any word of what was joined by punctuation."""
    wishes = [Wanted(phrases=phrases, every=True)]
    if len(phrases) > 1:
        wishes.append(Wanted(phrases=phrases, every=False))
    apart = tuple(dict.fromkeys((word,) for phrase in phrases for word in phrase))
    if len(apart) > len(phrases):
        wishes.append(Wanted(phrases=apart, every=False))
    return wishes


def words(text: str) -> list[str]:
    """The words of a text, lower-case; a character of an unspaced script is a word."""
    return WORD.findall(spaced(text.lower()))


def spaced(text: str) -> str:
    """The text with spaces around every character that is a word of its own."""
    return UNSPACED.sub(r" \g<0> ", text) if UNSPACED.search(text) else text


def said(body: str) -> tuple[Role, str]:
    """Who said what in a log entry of one of `KINDS`."""
    message = told(body).message
    return Role(message.role), "".join(part.text for part in message.parts if part.kind == "text")


def told(body: str) -> _Told:
    """The part of an entry that has words; the rest is passed over, since thousands are read at once."""
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError:
        return msgspec.convert(plain(body), _Told)


def pattern_of(phrases: tuple[Phrase, ...]) -> re.Pattern[str]:
    """What finds the words of a query in a text, or at least the beginnings of words like them."""
    forms = dict.fromkeys(form for phrase in phrases for word in phrase for form in (word, _stem(word)))
    return re.compile("|".join(rf"\b{form}" if form.isascii() else form for form in forms), re.IGNORECASE)


def snippet(text: str, pattern: re.Pattern[str]) -> str:
    """The first place where one of the words stands, with what is around it, on one line."""
    match = pattern.search(text)
    middle = match.start() if match else 0
    first, last = max(0, middle - AROUND), middle + AROUND
    cut = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{cut}{'…' if last < len(text) else ''}"


def _stem(word: str) -> str:
    return word[: max(SHORTEST_STEM, len(word) - ENDING)]


def _hit(row: Row, pattern: re.Pattern[str]) -> Hit:
    session, number, at, body = row
    role, text = said(body)
    return Hit(session=session, number=number, at=at, role=role, snippet=snippet(text, pattern))
