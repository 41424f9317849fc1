"""Whether a person asked for the skill that the agent makes: by their own words of this turn, in any language."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from hermes_agent.core.events import Entry, MessageTaken, Outcome, Replied, RunEnded
from hermes_agent.core.messages import Origin, Text
from hermes_agent.learning.sources import Side, Sources, pieces_of
from hermes_agent.skills.format import LONGEST_NAME
from hermes_agent.store.database import Store

PEOPLE = frozenset({Origin.OWNER, Origin.MEMBER})
# The ways of asking are too many to list; what is asked for has a name, ours or that of a language.
SKILL = re.compile(
    r"(?<![\w/])skills?(?![\w-])|habilidade?s?|compétences?|competenz\w+|fähigkeit\w*|fertigkeit\w*|vaardighe\w+|"
    r"umiejętno\w+|beceri\w*|навык\w*|скилл?\w*|مهارة|कौशल|kỹ năng|スキル|技能|스킬"
)
# The name that stands before what is said in a group, and a mention: names of people may have two words.
NAMES = re.compile(r"^\s*\[[^\]]*\] |(?<!\w)@\S+(?: \w+)?")
SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。\uff01\uff1f؟])|\n")
UNSURE = re.compile(r"[?\uff1f؟]|://|www\.")
"""In a sentence that may speak of the skills which a text from outside is about."""
WORD = re.compile(r"[\w-]+")
NEAR = LONGEST_NAME + 4


async def is_asked_for(store: Store, session: str, text: str) -> bool:
    """Whether a person's own words of this turn speak of a skill, and nothing of the text was copied from outside. What
    the agent says of it counts for nothing."""
    entries, record = await store.history.entries(session), await store.sessions.get(session)
    return await asyncio.to_thread(_is_asked_for, entries, record.workspace if record else "", text)


def _is_asked_for(entries: Sequence[Entry], workspace: str, text: str) -> bool:
    turn = turn_of(entries)
    used, said = _used(turn), [sentence for words in _words(turn) for sentence in SENTENCES.split(words)]
    if any(piece.side is Side.OUTSIDE for piece in pieces_of(turn)):
        said = [sentence for sentence in said if not UNSURE.search(sentence)]
    if not any(_speaks_of_one(sentence, used) for sentence in said):
        return False
    sources = Sources.of(pieces_of(entries), workspace)
    return not sources.copied(text) and not sources.strange_hosts(text)


def turn_of(entries: Sequence[Entry]) -> Sequence[Entry]:
    """What came after the last reply that called for nothing more, and after the last run that was stopped."""
    for place in range(len(entries), 0, -1):
        match entries[place - 1].event:
            case Replied(message=reply) if not reply.tool_calls:
                return entries[place:]
            case RunEnded(outcome=Outcome.STOPPED):
                return entries[place:]
    return entries


def _words(turn: Iterable[Entry]) -> Iterator[str]:
    """What people said, and the names of the skills that they began with."""
    messages = (entry.event.message for entry in turn if isinstance(entry.event, MessageTaken))
    for part in (part for message in messages for part in message.parts if isinstance(part, Text)):
        if part.origin in PEOPLE:
            yield NAMES.sub(" ", part.text.casefold())
        elif part.origin is Origin.SKILL:
            yield part.text.removeprefix("[Skill ").partition(",")[0]


def _used(turn: Iterable[Entry]) -> set[str]:
    """The skills that were loaded."""
    replies = (entry.event.message for entry in turn if isinstance(entry.event, Replied))
    calls = (call for reply in replies for call in reply.tool_calls if call.name == "skill_view")
    return {str(call.arguments.get("name", "")) for call in calls}


def _speaks_of_one(words: str, used: Collection[str]) -> bool:
    """Whether words speak of a skill whose name does not stand beside it as one of those."""
    for found in SKILL.finditer(words):
        before = WORD.findall(words[max(0, found.start() - NEAR) : found.start()])[-1:]
        after = WORD.findall(words[found.end() : found.end() + NEAR])[:1]
        if not {*before, *after} & {*used}:
            return True
    return False
