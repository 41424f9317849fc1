"""What a question asks for: words, "phrases in quotes", what is left out by NOT or a minus, and when it was."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.finding.dates import Span, dated
from hermes_agent.store.finding.terms import Phrase, stands_alone, stemmed, surface

LONGEST = 20_000
PIECE = re.compile(r'(?P<minus>(?<!\S)-(?=[^\W\d]|"))?(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]+))')
QUOTES = str.maketrans(dict.fromkeys("“”„«»「」『』", '"'))
OPERATORS = frozenset({"AND", "OR", "NOT"})
# English words that say nothing about what is looked for; in other languages, how common a word is decides.
STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a about am an and are as at be been being but by can could d did do does doing done don for from had has have
        having he her here hers him his how i if in into is it its just ll m may me might mine must my no nor not of on
        or our re s shall she should so t than that the their them then there these they this those to too us ve very
        was we were what when where which who whom whose why will with would you your yours
        """,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`words` are wanted, the more the better; `required` are the quoted phrases; `excluded` must not be there;
    `spans` are the days that it names. Phrases of characters that stand alone are pairs."""

    words: tuple[Phrase, ...]
    required: tuple[Phrase, ...]
    excluded: tuple[Phrase, ...]
    spans: tuple[Span, ...]

    @property
    def apart(self) -> tuple[Phrase, ...]:
        """The words of the quoted phrases, for where nothing holds them together."""
        return tuple(dict.fromkeys((term,) for phrase in self.required for term in phrase))

    @property
    def is_empty(self) -> bool:
        """Whether it has nothing that could be looked for."""
        return not (self.words or self.required or self.spans)


def understood(text: str, now: float) -> Question:
    """Any text is a question: no punctuation has a meaning that could be wrong. Only its first 20,000 characters count,
    `now` is what "yesterday" is counted from."""
    spans, rest = dated(text[:LONGEST], now)
    words: list[str] = []
    required: list[Phrase] = []
    excluded: list[Phrase] = []
    for piece, is_quoted, is_excluded in _pieces(rest.translate(QUOTES)):
        found = surface(piece)
        if is_excluded:
            excluded += [tuple(map(stemmed, found))] if found else []
        elif is_quoted:
            required += [tuple(map(stemmed, found))] if found else []
        else:
            words += [*found, ""]
    plain = [word for word in words if word not in STOP]
    chosen = plain if any(plain) or required or spans else words
    if not (any(chosen) or required or spans):  # Nothing but what is left out: then that is what is looked for.
        chosen, excluded = [*(term for phrase in excluded for term in (*phrase, ""))], []
    return Question(
        words=tuple(dict.fromkeys(phrases(chosen))),
        required=tuple(dict.fromkeys(required)),
        excluded=tuple(dict.fromkeys(excluded)),
        spans=spans,
    )


def phrases(words: list[str]) -> Iterator[Phrase]:
    """Each word alone; characters that stand alone in pairs. An empty word is a gap."""
    before, was_paired = "", False
    for word in [*words, ""]:
        alone = bool(word) and stands_alone(word)
        if before and alone:
            yield before, word
        elif before and not was_paired:
            yield (before,)
        was_paired = bool(before) and alone
        before = word if alone else ""
        if word and not alone:
            yield (stemmed(word),)


def _pieces(text: str) -> Iterator[tuple[str, bool, bool]]:
    shouted = text.isupper()
    negated = False
    for match in PIECE.finditer(text):
        plain = match["plain"] or ""
        if plain in OPERATORS and not shouted:
            negated = plain == "NOT"
            continue
        quoted = match["quoted"]
        yield (plain if quoted is None else quoted), quoted is not None, negated or bool(match["minus"])
        negated = False
