"""Past queries and the skill that was loaded for each: a curator pass must keep them findable."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Entry, MessageTaken, Replied
from hermes_agent.core.messages import Message, Origin, Text
from hermes_agent.skills.library import FEWEST_WORDS, OFFERED
from hermes_agent.store.database import Store
from hermes_agent.store.skills_index import STOP_WORDS

LISTED = 10
"""So many skills `skills_list` shows for a query."""
MOST = 600
LONGEST = 4_000
PEOPLE = frozenset({Origin.OWNER, Origin.MEMBER})

Finds = Callable[[str, int], Awaitable[Sequence[str]]]
"""The names of the skills that a query finds, the best first, at most so many."""


class QueryHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A past query that led to a skill: text of a person, or a search of the agent. `shown` is how many skills are
    listed for it; `at` is the time."""

    query: str
    skill: str
    shown: int
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Past use of skills from the logs: queries, the newest first, and when each skill was last loaded."""

    past: tuple[QueryHistory, ...] = ()
    loaded: Mapping[str, float] = field(default_factory=dict)


async def remember(store: Store, since: float) -> Remembered:
    """Collects queries from the conversations that loaded skills since a time."""
    found: dict[tuple[str, str], QueryHistory] = {}
    loaded: dict[str, float] = {}
    for session in await store.history.calling("skill_view"):
        for past in queries_in(await store.history.entries(session)):
            loaded[past.skill] = max(loaded.get(past.skill, 0.0), past.at)
            key = (past.query, past.skill)
            if past.at >= since and past.query and (key not in found or found[key].at < past.at):
                found[key] = past
    newest = sorted(found.values(), key=lambda past: -past.at)[:MOST]
    return Remembered(past=tuple(newest), loaded=loaded)


def queries_in(entries: Iterable[Entry]) -> Iterator[QueryHistory]:
    """Each loaded skill with each query before it since the person's last message; an empty query where there was
    none."""
    heard: list[tuple[str, int]] = []
    for entry in entries:
        match entry.event:
            case MessageTaken(message=message, inbox=inbox) if inbox:
                said = _said(message)
                heard = [(said, OFFERED)] if len(said.split()) >= FEWEST_WORDS else []
            case Replied(message=message):
                for name, query in _asked(message):
                    heard += [(query, LISTED)] if query else []
                    found = heard or [("", OFFERED)]
                    yield from (
                        QueryHistory(query=words, skill=name, shown=n, at=entry.at) for words, n in found if name
                    )
            case _:
                pass


def _said(message: Message) -> str:
    """What a person said, without what they passed on."""
    words = (part.text for part in message.parts if isinstance(part, Text) and part.origin in PEOPLE)
    return " ".join(words)[:LONGEST]


def _asked(message: Message) -> Iterator[tuple[str, str]]:
    """The skills that a reply loads, and the queries that it lists skills for: the other of both is empty."""
    for call in message.tool_calls:
        if call.name == "skills_list":
            yield "", str(call.arguments.get("query", "")).strip()[:LONGEST]
        elif call.name == "skill_view":
            yield str(call.arguments.get("name", "")), ""


async def that_find(past: Iterable[QueryHistory], finds: Finds) -> list[QueryHistory]:
    """The queries that find their skill now."""
    return [each for each in past if each.skill in await finds(each.query, each.shown)]


async def lost(
    past: Iterable[QueryHistory], finds: Finds, covers: Mapping[str, str], gone: Collection[str]
) -> list[QueryHistory]:
    """The queries that find neither their skill nor one that covers it. Skills in `gone`, archived because unused,
    do not count."""
    found = []
    for each in past:
        wanted = covered_by(each.skill, covers)
        if wanted not in gone and wanted not in await finds(each.query, each.shown):
            found.append(each)
    return found


def covered_by(name: str, covers: Mapping[str, str]) -> str:
    """The skill that covers that one now."""
    seen = {name}
    while (cover := covers.get(name, name)) not in seen:
        seen.add(cover)
        name = cover
    return name


WORD = re.compile(r"[^\W_]{2,}")
ALIKE = 0.5
"""Two skills overlap that share so much of the words of both."""
LEAST = 0.2
"""Two that share less are not joined, whatever anybody thinks."""
MOST_WORDS = 2_000


def words_of(text: str) -> frozenset[str]:
    """The words of a skill without stop words."""
    found = dict.fromkeys(word for word in WORD.findall(text.lower()) if word not in STOP_WORDS)
    return frozenset(list(found)[:MOST_WORDS])


def shared(one: Collection[str], other: Collection[str]) -> float:
    """Overlap of two sets of words, 0 to 1."""
    both = set(one) | set(other)
    return len(set(one) & set(other)) / len(both) if both else 0.0


def ordered(pair: tuple[str, str]) -> tuple[str, str]:
    """Two names as a sorted pair."""
    one, other = sorted(pair)
    return one, other


def there(
    overlaps: Iterable[Sequence[str]], names: Collection[str], apart: Collection[tuple[str, str]]
) -> list[tuple[str, ...]]:
    """Reported overlaps whose skills exist and were not separated by a person."""
    kept = (tuple(name for name in each if name in names) for each in overlaps)
    return [each for each in dict.fromkeys(kept) if set(combinations(each, 2)) - set(apart)]


def groups(texts: Mapping[str, str], apart: Collection[tuple[str, str]] = ()) -> list[list[str]]:
    """Groups of overlapping skills by name, the largest first; `texts` are their files. Quadratic: half a second for
    500."""
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
