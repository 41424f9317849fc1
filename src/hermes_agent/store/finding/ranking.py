"""Ranks search results: the sum of BM25 over passages and over messages, higher near the requested dates; makes
snippets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import log

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.messages import Role
from hermes_agent.store.finding.question import Question, Span
from hermes_agent.store.finding.terms import PLAIN, Phrase, beginnings, placed, stemmed, terms

# Chosen on the public LoCoMo conversations (`python -m bench recall`); the results hardly move around these.
PASSAGE = (1.2, 0.6)
MESSAGE = (0.8, 0.3)
BEST_MESSAGE = 0.5
SECOND_MESSAGE = 0.15
IN_SPAN = 1.4
SOON_AFTER = 0.7
SOON = 14 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Statistics for BM25: numbers of passages, messages and characters, and how many passages contain each phrase."""

    passages: int
    messages: int
    characters: int
    holding: Mapping[Phrase, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A message of the log that was found."""

    session: str
    number: int
    at: float
    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Consecutive messages of one passage, and the passage's length in characters where it has more than these."""

    messages: Sequence[Spoken]
    characters: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A message with its score for the query."""

    message: Spoken
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A session with its matching messages, the best first."""

    session: str
    score: float
    messages: tuple[Scored, ...]


class Ranking:
    """Scores passages for one query; `wanted` are the phrases that count."""

    def __init__(self, question: Question, wanted: Sequence[Phrase], counts: Counts) -> None:
        self._question = question
        self._wanted = tuple(dict.fromkeys((*question.required, *wanted)))
        known = {*self._wanted, *question.excluded}
        self._single = frozenset(phrase[0] for phrase in known if len(phrase) == 1)
        self._longer = tuple(phrase for phrase in known if len(phrase) > 1)
        self._beginnings = beginnings({term for phrase in known for term in phrase})
        passages, messages = max(counts.passages, 1), max(counts.messages, 1)
        self._passage_length = max(counts.characters, 1) / passages
        self._message_length = max(counts.characters, 1) / messages
        each = messages / passages
        self._passage_weight, self._message_weight = {}, {}
        for phrase in self._wanted:
            held = min(counts.holding.get(phrase, 0), passages - 0.5)
            # How many messages hold it is not counted; it follows from the passages if it were spread evenly.
            spread = messages * (1 - (1 - held / passages) ** (1 / each))
            self._passage_weight[phrase] = _rarity(held, passages)
            self._message_weight[phrase] = _rarity(spread, messages)
        self._near = log(1 + passages)

    def ranked(self, passages: Iterable[Run]) -> list[Ranked]:
        """The sessions of these passages, the best first; a session scores as its best passage."""
        best: dict[str, float] = {}
        hits: dict[str, list[Scored]] = {}
        for passage in passages:
            score, scored = self._passage(passage)
            if scored:
                session = passage.messages[0].session
                best[session] = max(score, best.get(session, 0.0))
                hits.setdefault(session, []).extend(scored)
        order = sorted(best, key=lambda session: (-best[session], session))
        return [
            Ranked(
                session=session,
                score=best[session],
                messages=tuple(sorted(hits[session], key=lambda each: (-each.score, each.message.number))),
            )
            for session in order
        ]

    def _passage(self, passage: Run) -> tuple[float, list[Scored]]:
        total: dict[Phrase, int] = {}
        length = passage.characters or sum(len(message.text) for message in passage.messages)
        nearness = self._nearness(passage.messages[0].at, passage.messages[-1].at)
        scored: list[Scored] = []
        for message in passage.messages:
            counts = self._counted(message.text)
            for phrase, count in counts.items():
                total[phrase] = total.get(phrase, 0) + count
            score = self._message(counts, len(message.text))
            if self._is_allowed(counts) and (score or nearness == IN_SPAN or not self._wanted):
                scored.append(Scored(message=message, score=score))
        if not scored:
            return 0.0, []
        scores = sorted((each.score for each in scored), reverse=True)[:2]
        value = _bm25(total, self._passage_weight, length / self._passage_length, PASSAGE)
        value += BEST_MESSAGE * scores[0] + SECOND_MESSAGE * sum(scores[1:])
        return value + self._near * nearness, scored

    def _message(self, counts: Mapping[Phrase, int], length: int) -> float:
        return _bm25(counts, self._message_weight, length / self._message_length, MESSAGE)

    def _counted(self, text: str) -> dict[Phrase, int]:
        counts: dict[Phrase, int] = {}
        if text.isascii() and not self._longer:
            self._count_plain(text.lower(), counts)
            return counts
        # Most messages hold nothing that is looked for, which their beginnings tell sooner than their stems.
        if text.isascii() and not self._beginnings.search(text):
            return counts
        words = terms(text)
        for word in words:
            if word in self._single:
                counts[(word,)] = counts.get((word,), 0) + 1
        joined = f" {' '.join(words)} "
        for phrase in self._longer:
            if count := joined.count(f" {' '.join(phrase)} "):
                counts[phrase] = count
        return counts

    def _count_plain(self, text: str, counts: dict[Phrase, int]) -> None:
        """The single words in plain letters: only those are taken for a stem that begin like one of them."""
        for found in self._beginnings.finditer(text):
            word = PLAIN.match(text, found.start())
            if word is not None and (term := stemmed(word[0])) in self._single:
                counts[(term,)] = counts.get((term,), 0) + 1

    def _is_allowed(self, counts: Mapping[Phrase, int]) -> bool:
        question = self._question
        return counts.keys() >= set(question.required) and counts.keys().isdisjoint(question.excluded)

    def _nearness(self, began: float, ended: float) -> float:
        return max((_near(span, began, ended) for span in self._question.spans), default=0.0)


def _near(span: Span, began: float, ended: float) -> float:
    if began < span.end and ended >= span.start:
        return IN_SPAN
    # What happened is often told a little later.
    return SOON_AFTER if span.end <= began < span.end + SOON else 0.0


def _bm25(
    counts: Mapping[Phrase, int], weights: Mapping[Phrase, float], length: float, shape: tuple[float, float]
) -> float:
    often, long = shape
    damp = often * (1 - long + long * length)
    return sum(weights[each] * n * (often + 1) / (n + damp) for each, n in counts.items() if each in weights)


def _rarity(held: float, everything: float) -> float:
    return log(1 + (everything - held + 0.5) / (held + 0.5))


AROUND = 90
BLANK = re.compile(r"\s+")
Spot = tuple[int, int]


def snippet(text: str, wanted: Collection[Phrase]) -> tuple[str, tuple[Spot, ...]]:
    """At most 180 characters of the text on one line, where most of the phrases are close together, and the ranges
    of the found words in it."""
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
    """The snippet with found words in Markdown bold."""
    parts, reached = [], 0
    for start, end in marks:
        parts += [line[reached:start], "**", line[start:end], "**"]
        reached = end
    return "".join(parts) + line[reached:]


def spotted(text: str, wanted: Collection[Phrase]) -> Iterator[Spot]:
    """Ranges of the phrases in a text, in order and without overlaps."""
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
