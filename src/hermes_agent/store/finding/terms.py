"""Tokenizer and English stemmer of the search, and the cutting of a log into passages. Tokens are stems of words,
single characters of scripts without spaces, and symbols such as emoji."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate, chain

from hermes_agent.core.dataclass import dataclass

VOWELS = re.compile(r"[aeiou]|(?<![aeiou])(?<!^)y")
MEASURE = re.compile(r"v+c+")
LONGEST = 40
# Each line: a base form and what is looked up as if it were said.
IRREGULAR = """
become became|begin began begun|bend bent|bind bound|bite bit bitten|blow blew blown|break broke broken|bring brought
build built|buy bought|catch caught|child children|choose chose chosen|come came|deal dealt|dig dug|draw drew drawn
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found
fly flew flown|foot feet|forget forgot forgotten|freeze froze frozen|get got gotten|give gave given|go went gone goes
grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|knife knives|know knew known
lay laid|lead led|leave left|lend lent|life lives|light lit|lose lost|make made|man men|mean meant|meet met|mouse mice
pay paid|person people|ride rode ridden|rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent
shake shook shaken|shine shone|shoot shot|show shown|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid
speak spoke spoken|spend spent|spin spun|stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn
sweep swept|swim swam swum|take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown
tooth teeth|understand understood|wake woke woken|wear wore worn|weave wove woven|wife wives|win won|woman women
write wrote written
"""
PLURALS = (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", ""))
SECOND = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al")),
    *(("iviti", "ive"), ("biliti", "ble"), ("logi", "log")),
)
THIRD = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")),
)
ENDINGS = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "sion", "tion"),
    *("ize", "al", "er", "ic", "ou"),
)
FOURTH = tuple((ending, "") for ending in ENDINGS)
KEEPS = {"sion": "s", "tion": "t"}


class Stems(dict[str, str]):
    """Cache from word (lower-case, a to z) to stem; cleared when full."""

    def __init__(self, most: int = 100_000) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, word: str) -> str:
        if len(self) >= self._most:
            self.clear()
        self[word] = found = stem(word)
        return found


def stem(word: str) -> str:
    """The stem of an English word: "happily" and "happy" give `happi`. Long ones are cut."""
    word = _bases().get(word, word)[:LONGEST]
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    word = _past(_swapped(word, PLURALS, -1))
    if word.endswith("y") and _voiced(word[:-1]):
        word = word[:-1] + "i"
    word = _swapped(_swapped(word, SECOND, 0), THIRD, 0)
    return _end(_swapped(word, FOURTH, 1))


def roots_of(found: str) -> tuple[str, ...]:
    """The beginnings of words that have this stem."""
    # "happi" is also happy, "hope" hoping, "sensibl" sensibility.
    root = found[:-1] if found.endswith(("i", "e", "y", "bl")) else found
    return (root, *_forms().get(found, ()))


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for form, base in _bases().items():
        key = stem(base)
        found[key] = (*found.get(key, ()), form)
    return found


@cache
def _bases() -> dict[str, str]:
    lines = (line.split() for line in re.split(r"[|\n]", IRREGULAR.strip()))
    return {form: base for base, *forms in lines for form in forms}


def _swapped(word: str, endings: tuple[tuple[str, str], ...], least: int) -> str:
    """The first of these endings that the word has, replaced where what stands before it is long enough."""
    for ending, other in endings:
        if word.endswith(ending):
            rest = word[: -len(ending)] + KEEPS.get(ending, "")
            return rest + other if least < 0 or _measure(rest) > least else word
    return word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest != word and _voiced(rest):
            return _restored(rest)
    return word


def _restored(rest: str) -> str:
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest[-1:] == rest[-2:-1] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _is_short(rest) else rest


def _end(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _shape(word: str) -> str:
    return "".join("v" if letter == "v" else "c" for letter in VOWELS.sub("v", word.replace("v", "c")))


def _measure(word: str) -> int:
    return len(MEASURE.findall(_shape(word)))


def _voiced(word: str) -> bool:
    return VOWELS.search(word) is not None


def _is_short(word: str) -> bool:
    return len(word) > 2 and _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


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
    """The tokens in order: lower-case, without accents, stemmed."""
    if text.isascii():
        return [_stems[word] for word in PLAIN.findall(text.lower())]
    return [_stems[word] for word in ANY.findall(folded(text))]


def beginnings(wanted: Iterable[Term]) -> re.Pattern[str]:
    """A pattern that finds in ASCII text where a word with one of these terms may begin."""
    roots = sorted({re.escape(root) for term in wanted if term.isascii() for root in roots_of(term)})
    # Without any there is nothing to be found, which this pattern says of every text.
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(roots)})" if roots else r"(?!)", re.IGNORECASE | re.ASCII)


def surface(text: str) -> list[str]:
    """The words of a text before stemming."""
    return ANY.findall(folded(text))


def stemmed(word: str) -> Term:
    """The token of one word of `surface`."""
    return _stems[word]


def stands_alone(term: Term) -> bool:
    """Whether a token is a single character of a script without spaces, or a symbol."""
    return LONE.fullmatch(term) is not None


def spaced(text: str) -> str:
    """The text with spaces around each single-character token, for tokenizers that split at spaces."""
    return text if text.isascii() else LONE.sub(r" \g<0> ", text)


def placed(text: str) -> list[tuple[Term, int, int]]:
    """The tokens with their start and end in the original text."""
    spots: list[tuple[Term, int, int]] = []
    for match in ANY.finditer(text):
        spots.extend((term, match.start(), match.end()) for term in terms(match[0]))
    return spots


def folded(text: str) -> str:
    """The text in lower case and one width, Latin letters without diacritics."""
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
    """A message as input of `cut`."""

    number: int
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage: consecutive messages of one session, by numbers and times, with all their tokens. `places` holds
    for each message its number and the count of tokens up to its end."""

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
    """Cuts messages into passages in order; the last one may still be open."""
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
