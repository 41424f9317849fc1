"""A memory on this machine: facts with trust in a file, found by their words and by holographic vectors."""

from __future__ import annotations

import asyncio
import cmath
import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.core.tool import CallContext, tool
from hermes_agent.host.files import PRIVATE_FOLDER, read_small, write_private
from hermes_agent.host.held import held
from hermes_agent.memory.backend import BackendFor, Exchange, Needs, ToldAlready

MOST_FACTS = 2_000
LARGEST = 4 << 20
SHOWN = 5
NEAR = 0.15
"""Likeness below which a fact has nothing to do with a question."""

DIMENSIONS = 64
WORDS = re.compile(r"\w+")
START, BETTER, WORSE = 0.5, 0.1, 0.2
"""Trust of a new fact, and what a helpful or a wrong answer changes of it."""

Vector = tuple[complex, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that is known, and how far it is trusted, 0 to 1."""

    id: int
    text: str
    trust: float = START


@dataclass(frozen=True, slots=True, kw_only=True)
class Holographic(ToldAlready):
    """The facts of one person."""

    file: Path
    # One waiter of this process at a time, or waiting would use up the threads that the holder works with.
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def health(self) -> str:
        return f"{len(await asyncio.to_thread(self._facts))} facts"

    async def recall(self, query: str) -> Sequence[str]:
        facts = await asyncio.to_thread(self._facts)
        return [f"{fact.text} [fact {fact.id}]" for fact in await asyncio.to_thread(nearest, facts, query)]

    async def remember(self, exchange: Exchange) -> None:
        """Nothing: what was said is in the session's log; a fact is what somebody adds."""

    async def add(self, fact: str) -> None:
        async with self._turn, held(self._lock()):
            facts = await asyncio.to_thread(self._facts)
            if len(facts) >= MOST_FACTS:
                raise HermesError(f"holographic: there are {MOST_FACTS:,} facts already.")
            if all(each.text != fact for each in facts):
                number = max((each.id for each in facts), default=0) + 1
                await asyncio.to_thread(self._write, [*facts, Fact(id=number, text=fact)])

    async def judge(self, number: int, *, helpful: bool) -> Fact:
        """Trust a fact more or less. Raises `ToolError` where there is none of that number."""
        async with self._turn, held(self._lock()):
            facts = {fact.id: fact for fact in await asyncio.to_thread(self._facts)}
            if number not in facts:
                raise ToolError(f"There is no fact {number}.")
            trust = facts[number].trust + (BETTER if helpful else -WORSE)
            facts[number] = replace(facts[number], trust=round(min(1.0, max(0.0, trust)), 2))
            await asyncio.to_thread(self._write, list(facts.values()))
            return facts[number]

    def _lock(self) -> Path:
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        return self.file.with_suffix(".lock")

    def _facts(self) -> list[Fact]:
        try:
            return msgspec.json.decode(read_small(self.file, LARGEST) or b"[]", type=list[Fact])
        except msgspec.DecodeError as error:
            raise HermesError(f"holographic: {self.file} is damaged ({error}); mend it or move it away.") from error

    def _write(self, facts: list[Fact]) -> None:
        write_private(self.file, msgspec.json.encode(facts))


class Feedback:
    """Trust as a tool."""

    def __init__(self, backend_for: BackendFor) -> None:
        self._backend_for = backend_for

    @tool(effect=Effect.WRITES, needs=(Capability.MEMORY,))
    async def fact_feedback(self, context: CallContext, fact: int, helpful: bool) -> str:
        """Say that a recalled fact was right and helpful, or wrong: what is wrong is recalled less."""
        memory = await self._backend_for(context)
        if not isinstance(memory, Holographic):
            raise ToolError("This memory keeps no trust.")
        found = await memory.judge(fact, helpful=helpful)
        return f"Trust of fact {fact} is now {found.trust:.1f}."


def nearest(facts: Sequence[Fact], query: str) -> list[Fact]:
    """The facts that fit, the best first: by shared words (rare ones count more) and likeness, times their trust."""
    asked, wanted = set(words(query)), vector(query)
    often = Counter(word for fact in facts for word in set(words(fact.text)))
    weights = {word: math.log(1 + len(facts) / often[word]) for word in asked if word in often}
    whole = sum(weights.values()) or 1.0
    scored = []
    for fact in facts:
        shared = sum(weights.get(word, 0.0) for word in set(words(fact.text))) / whole
        score = 0.7 * shared + 0.3 * max(0.0, likeness(wanted, vector(fact.text)))
        scored.append((score * fact.trust / START, fact))
    return [fact for score, fact in sorted(scored, key=lambda each: (-each[0], each[1].id)) if score >= NEAR][:SHOWN]


def words(text: str) -> list[str]:
    """The words in lower case, a plural's s left away."""
    return [word.rstrip("s") if len(word) > 3 else word for word in WORDS.findall(text.lower())]


@lru_cache(maxsize=4 * MOST_FACTS)
def vector(text: str) -> Vector:
    """A text as one holographic vector: each word's vector and, bound together, each two neighbours', all added up."""
    said = words(text)
    parts = [_word(word) for word in said]
    parts += [_bound(_word(one), _word(f"{two}>")) for one, two in pairwise(said)]
    return tuple(map(sum, zip(*parts, strict=True))) if parts else (0j,) * DIMENSIONS


def likeness(one: Vector, two: Vector) -> float:
    """-1 to 1: about 0 for texts that have nothing in common."""
    size = math.sqrt(sum(abs(each) ** 2 for each in one) * sum(abs(each) ** 2 for each in two))
    return sum((a * b.conjugate()).real for a, b in zip(one, two, strict=True)) / size if size else 0.0


@lru_cache(maxsize=20_000)
def _word(word: str) -> Vector:
    digest = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(DIMENSIONS)
    return tuple(cmath.exp(2j * math.pi * byte / 256) for byte in digest)


def _bound(one: Vector, two: Vector) -> Vector:
    return tuple(a * b for a, b in zip(one, two, strict=True))


def make(needs: Needs) -> Holographic:
    """In the folder of the notes."""
    return Holographic(file=needs.folder / "facts" / f"{needs.space}.json")
