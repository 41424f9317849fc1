"""Sessions cut into passages: runs of messages that are ranked as one document, and that never change once full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain

from hermes_agent.core.dataclass import dataclass
from hermes_agent.store.finding.terms import terms

# A passage is full when it is this long. Shorter ones are cut finer than people change the subject; longer ones are
# read in full for each search and written again for each message that they gain.
FULL_CHARACTERS = 6000
FULL_MESSAGES = 40
LONGEST_TEXT = 100_000
"""Characters of one message that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageRow:
    """One message, as far as words go."""

    number: int
    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A run of messages of one session, by their numbers and times, and all of their terms; `places` are the number of
    each message and how many terms there are up to its end."""

    session: str
    first: int
    last: int
    began: float
    ended: float
    messages: int
    characters: int
    terms: tuple[str, ...]
    places: tuple[tuple[int, int], ...]


def cut(session: str, lines: Iterable[PassageRow]) -> Iterator[Passage]:
    """The passages of these messages in their order; the last one may not be full yet."""
    run: list[PassageRow] = []
    characters = 0
    for line in lines:
        run.append(line)
        characters += len(line.text)
        if len(run) >= FULL_MESSAGES or characters >= FULL_CHARACTERS:
            yield _passage(session, run, characters)
            run, characters = [], 0
    if run:
        yield _passage(session, run, characters)


def _passage(session: str, run: list[PassageRow], characters: int) -> Passage:
    said = [terms(line.text[:LONGEST_TEXT]) for line in run]
    ends = accumulate(map(len, said))
    return Passage(
        session=session,
        first=run[0].number,
        last=run[-1].number,
        began=run[0].at,
        ended=max(line.at for line in run),
        messages=len(run),
        characters=characters,
        terms=tuple(chain.from_iterable(said)),
        places=tuple((line.number, end) for line, end in zip(run, ends, strict=True)),
    )
