"""Grounding of lessons: whether each word is an everyday one, or was typed by a person or run by the agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Trust
from hermes_agent.learning.sources import Piece, is_own
from hermes_agent.learning.wording import plain

EVERYDAY = Path(__file__).parent / "everyday.txt"
"""Words of technical notes, in English: those of the documentation of Python and of many packages, by how many use
them, without whatever names a person, an organisation, another machine, money, a credential, a permission, or an act
that reaches one of them. So no sentence of these words alone says to whom or where something goes."""

TOKEN = re.compile(r"[^\s`'\"()\[\]{}<>,;:!?*|&=\u2018-\u201f\u2026]+")
LETTERS = re.compile(r"[^\W\d_]+")
NUMBER = re.compile(r"[#~v]?\d{1,4}(?:[.,:]\d{1,3})*[%a-z]{0,2}")
ENDS = "./-\N{EN DASH}\N{EM DASH}"
PART = re.compile(r"&&|\|\|?|;|\n")
PROSE = re.compile(r"\s*(?:echo|printf|say|:|#|cat\s*<<|git\s+commit)\b")
"""Commands whose arguments are words of anybody's."""
ALONE = frozenset({"a", "i", "s", "t", "x", "c", "r"})
"""Letters that stand alone in a sentence."""
SAY_NOTHING = frozenset(
    LETTERS.findall(
        """
    about after again also always another anything because been before being both does each else every first from
    goes good have here into just know last like look make many more most much must need never next note once only
    other please same should some still take than that their them then there these they thing this those time used
    using want well were what when where which while whole will with without would your
    """
    )
)
FRONT = re.compile(r"^(?:---|name:|description:|#)")
SHORTEST = 4
"""Letters of a word that tells what a line is about; words of a line that has to."""


@cache
def everyday() -> frozenset[str]:
    """The words of the list."""
    return frozenset(EVERYDAY.read_text("utf-8").split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a lesson may name beside everyday words: the words that a person typed, and those of the commands that the
    agent ran to an end without error, and the files that it worked on."""

    own: frozenset[str]

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Ground:
        """The ground that a conversation gives."""
        return cls(own=frozenset(word for piece in pieces for word in _given(piece)))

    def strange(self, text: str) -> list[str]:
        """The words of a text that have no ground, in its order; of a line that touches none of what was typed or run,
        the first words, since everyday words can say much."""
        found = [word for word in _tokens(plain(text)) if not self._has(word)]
        if found:
            return list(dict.fromkeys(found))
        lines = (line.strip() for line in plain(text).splitlines())
        return [line[:60] for line in lines if line and not FRONT.match(line) and not self._touches(line)]

    def _has(self, word: str) -> bool:
        if word in self.own or word in ALONE or NUMBER.fullmatch(word):
            return True
        known, parts = everyday(), LETTERS.findall(word)
        if not word.isascii() or len(word) == 1:
            return False
        return all(part in self.own or part in known or (len(part) == 1 and len(parts) > 1) for part in parts)

    def _touches(self, line: str) -> bool:
        words = [part for word in _tokens(line) for part in {word, *LETTERS.findall(word)}]
        return len(words) < SHORTEST or any(
            len(word) >= SHORTEST and word in self.own and word not in SAY_NOTHING for word in words
        )


def _given(piece: Piece) -> Iterator[str]:
    if piece.by == "person" and piece.trust is Trust.CLEAN:
        for word in _tokens(plain(piece.text)):
            yield from (word, *LETTERS.findall(word))
    elif is_own(piece):
        for part in PART.split(piece.text):
            if not PROSE.match(part):
                yield from _tokens(part)
                yield from (name for word in _tokens(part) for name in (word.rpartition("/")[2],) if name)


def _tokens(text: str) -> list[str]:
    found = (match[0].strip(ENDS).casefold() for match in TOKEN.finditer(text))
    return [word for word in found if word]
