"""Local fact memory: facts with trust scores in the store, found by words and by holographic vectors."""

from __future__ import annotations

import asyncio
import cmath
import hashlib
import heapq
import math
import operator
import re
import struct
from array import array
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from hermes_agent.core.clock import Clock
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.tool import CallContext, tool
from hermes_agent.memory.backend import BackendFor, Exchange, Needs, SourceFor
from hermes_agent.store.database import Store
from hermes_agent.store.facts.facts import NewFact, Source
from hermes_agent.store.facts.finding import Asked, Standing, search_words
from hermes_agent.store.finding.question import STOP
from hermes_agent.store.finding.terms import stemmed, surface, terms

Vector: TypeAlias = "array[float]"
"""Real and imaginary parts in turns, of length one as a whole; all zeros for nothing."""

DIMENSIONS = 64
"""Complex numbers. Two unrelated texts have a likeness of 0 +- 0.09, one divided by the root of twice this."""

SCHEME = 1
"""How vectors are made; kept vectors of another scheme are made again."""

FORM = struct.Struct(f"<B{2 * DIMENSIONS}f")
NAME = "\0name"


def hologram(terms: Sequence[str], names: Iterable[str] = ()) -> Vector:
    """The holographic vector of a text: the sum of its words, of its neighbouring words bound in order, and of its
    names bound to a role."""
    parts = [_word(term) for term in terms]
    parts += [_bound(_word(one), _word(f"{two}>")) for one, two in pairwise(terms)]
    parts += [_bound(_word(NAME), _word(name)) for name in names]
    whole = tuple(map(sum, zip(*parts, strict=True))) if parts else (0j,) * DIMENSIONS
    size = math.sqrt(sum(abs(each) ** 2 for each in whole)) or 1.0
    return array("f", [part / size for each in whole for part in (each.real, each.imag)])


def likeness(one: Vector, two: Vector) -> float:
    """Similarity of two vectors, -1 to 1; about 0 for unrelated texts."""
    return math.fsum(map(operator.mul, one, two))


def packed(vector: Vector) -> bytes:
    """The vector in its stored form."""
    return FORM.pack(SCHEME, *vector)


def unpacked(kept: bytes) -> Vector | None:
    """Decodes what `packed` made; None for anything else."""
    if len(kept) != FORM.size or kept[0] != SCHEME:
        return None
    vector = array("f", FORM.unpack(kept)[1:])
    return vector if likeness(vector, vector) < 1.01 else None  # False for what is no number, too.


@lru_cache(maxsize=20_000)
def _word(word: str) -> tuple[complex, ...]:
    digest = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(DIMENSIONS)
    return tuple(cmath.exp(2j * math.pi * byte / 256) for byte in digest)


def _bound(one: tuple[complex, ...], two: tuple[complex, ...]) -> tuple[complex, ...]:
    return tuple(map(operator.mul, one, two))


MOST_FACTS = 5_000
LONGEST = 2_000
SHOWN = 5
WORDS_COUNT, VECTORS_COUNT = 0.7, 0.3
NEAR = 0.15
"""The score below which a fact has nothing to do with a question."""

CLEAR = 0.35
"""Likeness that counts where no word is shared: four times that by which unrelated texts are off zero."""

START, BETTER, WORSE = 0.5, 0.1, 0.2
"""Trust of a new fact, and what a helpful or a wrong answer changes of it."""

HALF, DAY = 180.0, 86_400.0
"""After so many days without anybody saying that it is right a fact counts three quarters; in the end, half."""

NAMES = re.compile(r"#\w+|\b[^\W\d_a-z][\w-]*")
MOST_NAMES = 16


class Holographic:
    """Fact memory of one person, separated by `space`."""

    def __init__(self, store: Store, space: str, clock: Clock) -> None:
        self.space = space
        self._store, self._clock = store, clock
        self._vectors: dict[int, Vector] = {}

    async def health(self) -> str:
        return f"{await self._store.known_facts.count(self.space)} facts"

    async def recall(self, query: str) -> Sequence[str]:
        asked = await self._store.fact_finding.ask(self.space, search_words(query))
        await self._learn([each.id for each in asked.standing])
        best = await asyncio.to_thread(nearest, asked, self._vectors, seen(query), self._clock.now())
        texts = {each.id: each.text for each in await self._store.fact_finding.kept(self.space, best)}
        return [f"{texts[number]} [fact {number}]" for number in best if number in texts]

    async def remember(self, exchange: Exchange) -> None:
        """Does nothing: the session's log has the exchange; facts are added one by one."""

    async def leaving(self, session: str, text: str) -> None:
        """Does nothing."""

    async def ended(self, session: str) -> None:
        """Does nothing."""

    async def add(self, fact: str, source: Source, /) -> None:
        if not fact or len(fact) > LONGEST:
            raise HermesError(f"holographic: a fact has 1 to {LONGEST:,} characters; this one has {len(fact):,}.")
        if await self._store.known_facts.count(self.space) >= MOST_FACTS:
            raise HermesError(f"holographic: there are {MOST_FACTS:,} facts already; retract what is of no use.")
        await self._store.known_facts.add(self.space, made_of(fact), source, self._clock.now())

    async def judge(self, number: int, source: Source, *, helpful: bool) -> float:
        """Raise or lower the trust in a fact; its new trust. Raises `HermesError` for an unknown number."""
        by = BETTER if helpful else -WORSE
        return await self._store.known_facts.judge(self.space, number, by, source, self._clock.now())

    async def retract(self, number: int, source: Source) -> str:
        """Retract a fact; its text. Raises `HermesError` for an unknown number."""
        return (await self._store.known_facts.retract(self.space, number, source, self._clock.now())).text

    async def _learn(self, numbers: Sequence[int]) -> None:
        """Have the vectors of these facts at hand, and of no others. A fact's text never changes."""
        missing = [number for number in numbers if number not in self._vectors]
        for each in await self._store.fact_finding.kept(self.space, missing) if missing else ():
            self._vectors[each.id] = unpacked(each.vector) or seen(each.text)
        for gone in self._vectors.keys() - set(numbers):
            del self._vectors[gone]


class FactTools:
    """Tools `fact_feedback` and `fact_retract` for single facts of the local fact memory; other external memories
    do not have them."""

    def __init__(self, backend_for: BackendFor, source_for: SourceFor) -> None:
        self._backend_for = backend_for
        self._source_for = source_for

    @tool(effect=Effect.KEYED, needs=(Capability.MEMORY,))
    async def fact_feedback(self, context: CallContext, fact: int, helpful: bool) -> str:
        """Say that a recalled fact was right and helpful, or wrong: what is wrong is recalled less."""
        trust = await self._of(context, lambda memory, source: memory.judge(fact, source, helpful=helpful))
        return f"Trust of fact {fact} is now {trust:.1f}."

    @tool(effect=Effect.KEYED, needs=(Capability.MEMORY,))
    async def fact_retract(self, context: CallContext, fact: int) -> str:
        """Take back a fact that is out of date or that the person wants forgotten: it is not recalled any more."""
        text = await self._of(context, lambda memory, source: memory.retract(fact, source))
        return f"Fact {fact} is retracted: {text}"

    async def _of(
        self, context: CallContext, act: Callable[[Holographic, Source], Awaitable[float | str]]
    ) -> float | str:
        memory = await self._backend_for(context)
        if not isinstance(memory, Holographic):
            raise ToolError("This memory keeps no trust.")
        try:
            return await act(memory, await self._source_for(context))
        except HermesError as error:
            raise ToolError(str(error)) from error


def made_of(text: str) -> NewFact:
    """A text as a new fact."""
    return NewFact(text=text, names=names_in(text), vector=packed(seen(text)), trust=START)


def seen(text: str) -> Vector:
    """The vector of a text, without stop words."""
    said = [stemmed(word) for word in surface(text) if word not in STOP]
    return hologram(said, [term for name in names_in(text) for term in terms(name)])


def names_in(text: str) -> tuple[str, ...]:
    """The names in a text: capitalised words and hashtags."""
    found = (name.lstrip("#") for name in NAMES.findall(text))
    return tuple(dict.fromkeys(name for name in found if name.lower() not in STOP))[:MOST_NAMES]


def nearest(asked: Asked, vectors: Mapping[int, Vector], question: Vector, now: float) -> list[int]:
    """The matching facts, the best first: by shared words (rare ones count more) and similarity, times trust."""
    weights = {
        phrase: math.log(1 + len(asked.standing) / len(holders)) for phrase, holders in asked.holding.items() if holders
    }
    whole = sum(weights.values()) or 1.0
    scores = {each.id: 0.0 for each in asked.standing}
    for phrase, weight in weights.items():
        for number in asked.holding[phrase]:
            scores[number] += weight / whole
    scored = []
    for fact in asked.standing:
        like = likeness(question, vectors[fact.id]) if fact.id in vectors else 0.0
        counts = like > CLEAR or (scores[fact.id] > 0 and like > 0)
        score = WORDS_COUNT * scores[fact.id] + (VECTORS_COUNT * like if counts else 0.0)
        scored.append((score * worth(fact, now), fact.id))
    best = heapq.nsmallest(SHOWN, ((-score, number) for score, number in scored if score >= NEAR))
    return [number for _, number in best]


def worth(fact: Standing, now: float) -> float:
    """Factor of a fact's trust on its score: 0 to 2, 1 for a new fact, less when unconfirmed for long."""
    days = max(0.0, now - fact.checked) / DAY
    trust = min(1.0, max(0.0, fact.trust)) / START
    return trust * (0.5 + 0.5 * math.pow(0.5, days / HALF))


def make(needs: Needs) -> Holographic:
    """Creates the backend on the store."""
    return Holographic(needs.store, needs.space, needs.clock)
