"""Grounding of lessons: whether each word is an everyday one, or was typed by a person or run by the agent."""

from __future__ import annotations

import re
from collections.abc import Sequence
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

OUTWARD = EVERYDAY.with_name("outward.txt")
"""The words that were taken out of it. No name of code may hold one either."""

TOKEN = re.compile(r"[^\s`'\"()\[\]{}<>,;:!?*|&=\u2018-\u201f\u2026]+")
SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n")
ELSEWHERE = re.compile(r"[@/~]|\\\\")
"""What a name of a file or an address has: it must have been typed or run."""
CODE = re.compile(r"[a-z]+[_=().]+[a-z]|[a-z]\d|\d[a-z]")
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
LETTERS = re.compile(r"[^\W\d_]+")
NUMBER = re.compile(r"[#~v]?\d{1,4}(?:[.,:]\d{1,3})*[%a-z]{0,2}")
ENDS = "./-\N{EN DASH}\N{EM DASH}"
PART = re.compile(r"&&|\|\|?|;|\n")
PROSE = re.compile(r"\s*(?:echo|printf|say|:|#|cat\s*<<|git\s+commit)\b")
"""Commands whose arguments are words of anybody's."""
MOST_LETTERS = 4
"""In a sentence, of letters that stand alone: `-m`, `s`."""
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
KEPT = ("ss", "us", "is")
ENDINGS = (
    *(("ically", "ic"), ("ies", "y"), ("ied", "y"), ("ying", "y"), ("sses", "ss")),
    *((ending, "") for ending in ("ing", "ed", "ly", "es", "s")),
)
LEAST_LEFT = 3
FRONT = re.compile(r"^(?:---|name:|description:|#)")
LONGEST_NAME = 24
WORDS_A_NAME = 6
"""In so many words one name that nobody knows is let pass."""
GIVES = frozenset({"to", "with", "at", "for", "by", "via", "onto", "towards", "let", "give", "gives", "show", "shows"})
ARTICLES = frozenset({"the", "a", "an", "our", "my", "this", "that", "their", "its"})
SHORTEST = 4
"""Letters of a word that tells what a line is about; words of a line that has to."""


@cache
def everyday() -> frozenset[str]:
    """The words of the list, without their endings."""
    return frozenset(map(base, EVERYDAY.read_text("utf-8").split()))


@cache
def outward() -> frozenset[str]:
    """The words of that list, without their endings."""
    return frozenset(map(base, OUTWARD.read_text("utf-8").split()))


def base(word: str) -> str:
    """An English word without its ending; what is left need not be a word."""
    stripped = () if word.endswith(KEPT) else ENDINGS
    for ending, left in stripped:
        if len(word) - len(ending) >= LEAST_LEFT and word.endswith(ending):
            word = word.removesuffix(ending) + left
            break
    if len(word) > LEAST_LEFT and word[-1] == word[-2] and word[-1] in "bdgmnprt":
        return word[:-1]
    return word[:-1] if len(word) > LEAST_LEFT and word.endswith("e") else word


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a lesson may name beside everyday words: `typed` by a person, and `ran`, the words of the commands that the
    agent ran to an end without error; `named` are the programs and what they were to do. A file may have had the agent
    run a command, so that no other word of it is the goal of something."""

    typed: frozenset[str]
    named: frozenset[str]
    ran: frozenset[str]

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Ground:
        """The ground that a conversation gives."""
        said = (piece.text for piece in pieces if piece.by == "person" and piece.trust is Trust.CLEAN)
        typed = frozenset(base(part) for text in said for word in _tokens(text) for part in _parts(word))
        parts = (part for piece in pieces if is_own(piece) for part in PART.split(piece.text))
        commands = [_tokens(part) for part in parts if not PROSE.match(part)]
        named = frozenset(word for words in commands for word in words[:2])
        ran = frozenset(each for words in commands for word in words for each in (word, _last(word)))
        return cls(typed=typed, named=named, ran=ran)

    def strange(self, text: str) -> list[str]:
        """The words of a text that have no ground, in its order. Where all have, the lines that touch nothing of what
        was typed or run, by their beginnings: everyday words can say much."""
        text = plain(text)
        if found := [word for sentence in SENTENCE.split(text) for word in self._strange_in(_tokens(sentence))]:
            return list(dict.fromkeys(found))
        lines = (line.strip() for line in text.splitlines())
        return [line[:60] for line in lines if line and not FRONT.match(line) and not self._touches(line)]

    def _strange_in(self, words: Sequence[str]) -> list[str]:
        """Of one sentence. A name or two that nobody knows are let pass (`iterparse`), but not as the goal of
        something (`to Maria`)."""
        odd = [word for word in words if not self._has(word)]
        hard = [word for word in odd if not _is_name(word)]
        doubtful = {*odd, *filter(str.isalpha, self.ran - self.named)}
        goals = [word for place, word in enumerate(words) if word in doubtful and _is_given(words[:place])]
        given = [word for word in goals if base(word) not in everyday() | self.typed]
        letters = [word for word in words if len(word) == 1 and word.isalpha()]
        if len(letters) > MOST_LETTERS:
            return letters
        is_much = len(odd) > max(1, len(words) // WORDS_A_NAME)
        return odd or given if hard or given or is_much else []

    def _has(self, word: str) -> bool:
        if (len(word) == 1 and word.isascii()) or NUMBER.fullmatch(word) or self._knows(word):
            return True
        if not word.isascii() or ELSEWHERE.search(word):
            return False
        strange = [part for part in LETTERS.findall(word) if not self._knows(part) and len(part) > 1]
        is_code = not word.replace("-", "").isalpha() and len(word) <= LONGEST_NAME
        return not strange or (is_code and not any(map(_is_outward, strange)))

    def _knows(self, part: str) -> bool:
        return part in self.ran or base(part) in everyday() or base(part) in self.typed

    def _touches(self, line: str) -> bool:
        words = {part for word in _tokens(line) for part in _parts(word)}
        telling = [word for word in words if len(word) >= SHORTEST and word not in SAY_NOTHING]
        is_told = any(base(word) in self.typed for word in telling)
        return len(words) < SHORTEST or is_told or bool(words & self.ran) or any(map(CODE.search, words))


def _is_outward(part: str) -> bool:
    return base(part) in outward()


def _is_name(word: str) -> bool:
    """Whether an unknown word may be the name of a program or a part of one."""
    parts = LETTERS.findall(word)
    return word.isascii() and word.replace("-", "").isalpha() and not any(map(_is_outward, parts))


def _is_given(before: Sequence[str]) -> bool:
    """Whether a word after these is the goal of something."""
    last = [word for word in before[-2:] if word not in ARTICLES]
    return bool(last) and last[-1] in GIVES


def _last(path: str) -> str:
    return path.rpartition("/")[2] or path


def _parts(word: str) -> set[str]:
    return {word, *LETTERS.findall(word)}


def _tokens(text: str) -> list[str]:
    found = (match[0].strip(ENDS).casefold() for match in TOKEN.finditer(HUMP.sub("_", text)))
    return [word for word in found if word]
