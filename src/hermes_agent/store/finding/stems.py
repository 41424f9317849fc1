"""Stems of English words: Porter's algorithm (1980), after irregular forms have become their base form."""

from __future__ import annotations

import re
from functools import cache

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
    """Word (lower-case, letters a to z) to stem, made when it is first asked for; it forgets all when it is full."""

    def __init__(self, most: int = 100_000) -> None:
        super().__init__()
        self._most = most

    def __missing__(self, word: str) -> str:
        if len(self) >= self._most:
            self.clear()
        self[word] = found = stem(word)
        return found


def stem(word: str) -> str:
    """What is left of a word without its endings: "happily" and "happy" are `happi`. Long ones are cut."""
    word = _bases().get(word, word)[:LONGEST]
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    word = _past(_swapped(word, PLURALS, -1))
    if word.endswith("y") and _voiced(word[:-1]):
        word = word[:-1] + "i"
    word = _swapped(_swapped(word, SECOND, 0), THIRD, 0)
    return _end(_swapped(word, FOURTH, 1))


def roots_of(found: str) -> tuple[str, ...]:
    """How the words begin that have this stem."""
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
