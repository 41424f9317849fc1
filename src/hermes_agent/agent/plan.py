"""Which calls of one turn may run side by side: reads, and writes to provably different paths."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from hermes_agent.core.effects import Effect
from hermes_agent.core.tool import CallFacts


class HasFacts(Protocol):
    """A planned call; without facts it only has an answer, which disturbs nobody."""

    @property
    def facts(self) -> CallFacts | None: ...


ABOUT_PATHS = {Effect.READS, Effect.WRITES, Effect.KEYED}
"""Effects that touch nothing but the paths that the call names, where it names any."""

P = TypeVar("P", bound=HasFacts)


def side_by_side(planned: Sequence[P]) -> Iterator[list[P]]:
    """The calls in batches: those of one batch may run together, the batches run in order."""
    batch: list[P] = []
    for item in planned:
        if batch and not all(_independent(item.facts, other.facts) for other in batch):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def _independent(one: CallFacts | None, other: CallFacts | None) -> bool:
    if one is None or other is None:
        return True
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
