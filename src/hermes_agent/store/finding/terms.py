"""The terms of a text: stems of words, each character of a script without spaces, and each symbol such as an emoji."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate, chain

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.finding.stems import Stems, roots_of

Term = str
Phrase = tuple[Term, ...]
"""Terms that follow each other in a text."""

# Thai, kana, Chinese characters and Hangul: words are found by any two of their characters that follow each other.
UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
SYMBOLS = "\u2190-\u2bff\U0001f000-\U0001faff"
PLAIN = re.compile(r"[a-z0-9]+")
ANY = re.compile(rf"[{UNSPACED}{SYMBOLS}]|[^\W_{UNSPACED}{SYMBOLS}]+")
LONE = re.compile(rf"[{UNSPACED}{SYMBOLS}]")
LATIN = (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
_stems = Stems()


def terms(text: str) -> list[Term]:
    """The terms in their order: lower-case, without accents, stemmed."""
    if text.isascii():
        return [_stems[word] for word in PLAIN.findall(text.lower())]
    return [_stems[word] for word in ANY.findall(folded(text))]


def beginnings(wanted: Iterable[Term]) -> re.Pattern[str]:
    """What finds, in a text of ASCII, where a word may begin that has one of these terms."""
    roots = sorted({re.escape(root) for term in wanted if term.isascii() for root in roots_of(term)})
    # Without any there is nothing to be found, which this pattern says of every text.
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(roots)})" if roots else r"(?!)", re.IGNORECASE | re.ASCII)


def surface(text: str) -> list[str]:
    """The words as `terms` sees them before it takes their endings off."""
    return ANY.findall(folded(text))


def stemmed(word: str) -> Term:
    """The term of one word of `surface`."""
    return _stems[word]


def stands_alone(term: Term) -> bool:
    """Whether it is a character that is a term of its own."""
    return LONE.fullmatch(term) is not None


def spaced(text: str) -> str:
    """The text with spaces around every character that is a term of its own, for a tokenizer that parts at spaces."""
    return text if text.isascii() else LONE.sub(r" \g<0> ", text)


def placed(text: str) -> list[tuple[Term, int, int]]:
    """The terms with where each begins and ends in the text as it was written."""
    spots: list[tuple[Term, int, int]] = []
    for match in ANY.finditer(text):
        spots.extend((term, match.start(), match.end()) for term in terms(match[0]))
    return spots


def folded(text: str) -> str:
    """Lower-case, in one width, Latin letters without their marks."""
    return unicodedata.normalize("NFKC", text).lower().translate(_unmarked())


@cache
def _unmarked() -> dict[int, str]:
    plain = {code: unicodedata.normalize("NFKD", chr(code))[0] for code in LATIN}
    return {code: letter for code, letter in plain.items() if ord(letter) != code} | {0xDF: "ss", 0xF8: "o"}


# A passage is full when it is this long. Shorter ones are cut finer than people change the subject; longer ones are
# read in full for each search and written again for each message that they gain.
FULL_CHARACTERS = 6000
FULL_MESSAGES = 40
LONGEST_TEXT = 100_000
"""Characters of one message that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageRow:
    """One message, as far as words go."""

    number: int
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A run of messages of one session, by their numbers and times, and all of their terms; `places` are the number of
    each message and how many terms there are up to its end."""

    session: str
    first: int
    last: int
    began: float
    ended: float
    messages: int
    characters: int
    terms: tuple[str, ...]
    places: tuple[tuple[int, int], ...]


def cut(session: str, lines: Iterable[PassageRow]) -> Iterator[Passage]:
    """The passages of these messages in their order; the last one may not be full yet."""
    run: list[PassageRow] = []
    characters = 0
    for line in lines:
        run.append(line)
        characters += len(line.text)
        if len(run) >= FULL_MESSAGES or characters >= FULL_CHARACTERS:
            yield _passage(session, run, characters)
            run, characters = [], 0
    if run:
        yield _passage(session, run, characters)


def _passage(session: str, run: list[PassageRow], characters: int) -> Passage:
    said = [terms(line.text[:LONGEST_TEXT]) for line in run]
    ends = accumulate(map(len, said))
    return Passage(
        session=session,
        first=run[0].number,
        last=run[-1].number,
        began=run[0].at,
        ended=max(line.at for line in run),
        messages=len(run),
        characters=characters,
        terms=tuple(chain.from_iterable(said)),
        places=tuple((line.number, end) for line, end in zip(run, ends, strict=True)),
    )
