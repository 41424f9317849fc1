"""Which skills say nearly the same: by the words of their names, descriptions and bodies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from hermes_agent.learning.curator.journal import ordered
from hermes_agent.store.skills_index import STOP_WORDS

WORD = re.compile(r"[^\W_]{2,}")
ALIKE = 0.5
"""Two skills overlap that share so much of the words of both."""
LEAST = 0.2
"""Two that share less are not joined, whatever anybody thinks."""
MOST_WORDS = 2_000


def words_of(text: str) -> frozenset[str]:
    """The words of a skill that say something."""
    found = dict.fromkeys(word for word in WORD.findall(text.lower()) if word not in STOP_WORDS)
    return frozenset(list(found)[:MOST_WORDS])


def shared(one: Collection[str], other: Collection[str]) -> float:
    """How much two sets of words share: 0 nothing, 1 everything."""
    both = set(one) | set(other)
    return len(set(one) & set(other)) / len(both) if both else 0.0


def there(
    overlaps: Iterable[Sequence[str]], names: Collection[str], apart: Collection[tuple[str, str]]
) -> list[tuple[str, ...]]:
    """What reviews saw overlap, as far as it is there and no person took it apart."""
    kept = (tuple(name for name in each if name in names) for each in overlaps)
    return [each for each in dict.fromkeys(kept) if set(combinations(each, 2)) - set(apart)]


def groups(texts: Mapping[str, str], apart: Collection[tuple[str, str]] = ()) -> list[list[str]]:
    """Skills that overlap, by name, in groups, the largest first; `texts` are their files. Takes time with the square
    of their number: half a second for 500."""
    words = {name: words_of(text) for name, text in texts.items()}
    root = {name: name for name in texts}

    def top(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    kept_apart = set(apart)
    for one, other in combinations(sorted(texts), 2):
        if ordered((one, other)) not in kept_apart and shared(words[one], words[other]) >= ALIKE:
            root[top(other)] = top(one)
    found: dict[str, list[str]] = {}
    for name in sorted(texts):
        found.setdefault(top(name), []).append(name)
    return sorted((group for group in found.values() if len(group) > 1), key=lambda group: (-len(group), group))
