"""Texts as holographic reduced representations: vectors of one size for words, bound, added up, made the same anywhere.

Circular convolution is done in the frequency domain, where it is a product number by number: a word is a vector of
phases of length one (Plate, Holographic Reduced Representations, 2003, chapter 4).
"""

from __future__ import annotations

import cmath
import hashlib
import math
import operator
import struct
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

Vector: TypeAlias = "array[float]"
"""Real and imaginary parts in turns, of length one as a whole; all zeros for nothing."""

DIMENSIONS = 64
"""Complex numbers. Two unrelated texts have a likeness of 0 +- 0.09, one divided by the root of twice this."""

SCHEME = 1
"""How vectors are made; kept vectors of another scheme are made again."""

FORM = struct.Struct(f"<B{2 * DIMENSIONS}f")
NAME = "\0name"


def hologram(terms: Sequence[str], names: Iterable[str] = ()) -> Vector:
    """A text: each word, each two neighbours bound in their order, each name bound to the role of one, all added up."""
    parts = [_word(term) for term in terms]
    parts += [_bound(_word(one), _word(f"{two}>")) for one, two in pairwise(terms)]
    parts += [_bound(_word(NAME), _word(name)) for name in names]
    whole = tuple(map(sum, zip(*parts, strict=True))) if parts else (0j,) * DIMENSIONS
    size = math.sqrt(sum(abs(each) ** 2 for each in whole)) or 1.0
    return array("f", [part / size for each in whole for part in (each.real, each.imag)])


def likeness(one: Vector, two: Vector) -> float:
    """-1 to 1: about 0 for texts that have nothing in common."""
    return math.fsum(map(operator.mul, one, two))


def packed(vector: Vector) -> bytes:
    """The vector as it is kept."""
    return FORM.pack(SCHEME, *vector)


def unpacked(kept: bytes) -> Vector | None:
    """What `packed` made; None for anything else."""
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
