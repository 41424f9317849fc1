"""What the curator keeps from pass to pass, in `skills/.curator.json`: when it looked, grades, ages as last told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from hermes_agent.core.errors import HomeError
from hermes_agent.host.files import read_small, write_private
from hermes_agent.host.locks import change_under

LARGEST = 1 << 24


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """What a skill of that hash was found to be worth: points by criterion, at a time in seconds since 1970."""

    hash: str
    points: dict[str, int]
    at: float


class CuratorJournal(msgspec.Struct, frozen=True, kw_only=True):
    """`passed` is when the last pass ended, `looked` when the first did, which only looks, `asked` when a model was
    asked last (0: never); `mended` is the library as it left it. `ages` are those of the names that are not active, as
    last told; `since` says from when on a skill's age counts, where a person brought it back; `apart` are skills that a
    person took apart again."""

    paused: bool = False
    looked: float = 0.0
    passed: float = 0.0
    asked: float = 0.0
    mended: str = ""
    ages: dict[str, str] = {}
    since: dict[str, float] = {}
    ratings: dict[str, Rating] = {}
    apart: tuple[tuple[str, str], ...] = ()


class JournalFile:
    """The notebook of one home. `get` blocks."""

    def __init__(self, skills: Path) -> None:
        self.path = skills / ".curator.json"

    def get(self) -> CuratorJournal:
        """What it says. Raises `HomeError` for a file that is not ours."""
        content = read_small(self.path, LARGEST)
        try:
            return CuratorJournal() if content is None else msgspec.json.decode(content, type=CuratorJournal)
        except msgspec.DecodeError as error:
            raise HomeError(f"{self.path} cannot be read ({error}): repair it, or move it out of the way.") from error

    async def change(self, change: Callable[[CuratorJournal], CuratorJournal]) -> CuratorJournal:
        """Read, change, and write under a lock."""

        def work() -> CuratorJournal:
            changed = change(self.get())
            write_private(self.path, msgspec.json.format(msgspec.json.encode(changed)))
            return changed

        return await change_under(self.path.with_suffix(".lock"), work)


def paused(said: bool) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that stops passes, or lets them go on."""
    return lambda old: msgspec.structs.replace(old, paused=said)


def brought_back(names: Iterable[str], at: float) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that counts the age of these anew: a person wants them."""
    wanted = dict.fromkeys(names, at)

    def change(old: CuratorJournal) -> CuratorJournal:
        ages = {name: age for name, age in old.ages.items() if name not in wanted}
        return msgspec.structs.replace(old, since={**old.since, **wanted}, ages=ages)

    return change


def kept_apart(pairs: Iterable[tuple[str, str]]) -> Callable[[CuratorJournal], CuratorJournal]:
    """The change that keeps these apart from now on."""
    return lambda old: msgspec.structs.replace(old, apart=tuple(dict.fromkeys((*old.apart, *map(ordered, pairs)))))


def ordered(pair: tuple[str, str]) -> tuple[str, str]:
    """Two names as a pair, whichever comes first."""
    one, other = sorted(pair)
    return one, other
