"""What stands behind something learned: the messages that it came from, and whether they hold what it names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.learning.naming import Named, named_in, stretches
from hermes_agent.learning.sources import Sources

MOST_CITED = 40
CITED = re.compile(r"#(\d{1,6})\b")
# A skill's own files: named in it, and made by the same review.
OWN = re.compile(r"^(?:\./)?(?:references|templates|scripts|assets)/|^(?:SKILL|MEMORY|USER)\.md$")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept beside a version: the review and its pass, what it said that it teaches (`do`, `prefer`, `avoid`,
    `fact`), and the numbers of the events of its conversation."""

    review: str = ""
    through: str = ""
    sort: str = ""
    messages: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """As the ledger keeps it."""
        return msgspec.json.encode(self).decode()


def evidence_of(text: str | None) -> Evidence:
    """The evidence that was kept so; an empty one where there is none."""
    try:
        return msgspec.json.decode(text or "{}", type=Evidence)
    except msgspec.MsgspecError:
        return Evidence()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What of a text was found in the conversation, by event, and what was `missing`."""

    missing: tuple[Named, ...] = ()
    found: Mapping[Named, tuple[int, ...]] = field(default_factory=dict)

    def numbers(self, cited: Sequence[int]) -> tuple[int, ...]:
        """The events to keep: those cited, and one of each thing that was named."""
        first = [numbers[0] for numbers in self.found.values() if numbers]
        return tuple(sorted({*cited, *first}))[:MOST_CITED]


def cited_in(arguments: Mapping[str, object], words: str) -> tuple[int, ...]:
    """The events that a call cites: its `because`, else the `#12` in the words beside it."""
    given = arguments.get("because")
    if isinstance(given, list | tuple):
        numbers = [int(text) for each in given if (text := str(each).lstrip("#")).isdecimal()]
    else:
        numbers = []
    return tuple(dict.fromkeys(numbers or [int(each) for each in CITED.findall(words)]))[:MOST_CITED]


def check(text: str, known: str, cited: Sequence[int], sources: Sources, tools: Collection[str]) -> Checked:
    """Look for everything that a text names, and that was not in it before, in the cited messages (none cited: in the
    whole conversation)."""
    there = {piece.number for piece in sources.pieces}
    among = [number for number in cited if number in there]
    missing, found = [], {}
    for named in named_in(text, tools):
        if (named.sort == "path" and OWN.search(named.text)) or named.text in known:
            continue
        numbers = _where(named, among, sources)
        if numbers:
            found[named] = tuple(numbers)
        else:
            missing.append(named)
    return Checked(missing=tuple(missing), found=found)


def _where(named: Named, among: Sequence[int], sources: Sources) -> list[int]:
    if named.sort != "command":
        return sources.numbers_of(named, among)
    parts = [sources.numbers_of(Named("command", part), among) for part in stretches(named.text)]
    return sorted({each for part in parts for each in part}) if parts and all(parts) else []
