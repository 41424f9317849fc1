"""The order of one turn's calls, and which of them may run side by side: reads, and writes to provably different
paths."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from hermes_agent.core.effects import Effect
from hermes_agent.core.tool import CallFacts


class HasFacts(Protocol):
    """A planned call of a tool; without facts it only has an answer, which disturbs nobody."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> CallFacts | None: ...


ABOUT_PATHS = {Effect.READS, Effect.WRITES, Effect.KEYED}
"""Effects that touch nothing but the paths that the call names, where it names any."""

P = TypeVar("P", bound=HasFacts)


def side_by_side(planned: Sequence[P]) -> Iterator[list[P]]:
    """The calls in batches: those of one batch may run together, the batches run in order. A call comes after those of
    the tools that it depends on."""
    batch: list[P] = []
    for item in _ordered(planned):
        if batch and not all(_independent(item, other) for other in batch):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def _ordered(planned: Sequence[P]) -> list[P]:
    """As asked, but for those that depend on a tool that is called later."""
    left, ordered = list(planned), []
    while left:
        names = {item.name for item in left}
        free = next((item for item in left if names.isdisjoint(_depends_on(item) - {item.name})), left[0])
        left.remove(free)
        ordered.append(free)
    return ordered


def _depends_on(item: HasFacts) -> set[str]:
    return set(item.facts.depends_on) if item.facts else set()


def _independent(item: HasFacts, before: HasFacts) -> bool:
    one, other = item.facts, before.facts
    if one is None or other is None:
        return True
    if before.name in one.depends_on:
        return False
    effects = {one.effect, other.effect}
    if effects == {Effect.READS}:
        return True
    if not effects <= ABOUT_PATHS or one.paths is None or other.paths is None:
        return False
    return _disjoint(one.paths, other.paths)


def _disjoint(ours: Iterable[str], theirs: Sequence[str]) -> bool:
    return not any(_within(a, b) or _within(b, a) for a in ours for b in theirs)


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(outer.rstrip(os.path.sep) + os.path.sep)
