"""Gate for constraints: a lesson about what does not work needs a scope, a check and an expiry."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Entry, MessageTaken, Outcome, Replied, RunEnded
from hermes_agent.core.messages import Origin, Text
from hermes_agent.learning.constraints import BEGUN, LONGEST, Constraint, Mark, added, lines_of
from hermes_agent.learning.drafts import Draft, Passed, Returned, Verdict
from hermes_agent.learning.sources import Sources, pieces_of, texts_of
from hermes_agent.skills.format import LONGEST_NAME
from hermes_agent.store.database import Store
from hermes_agent.store.learning.lessons import Sort
from hermes_agent.store.versions import Kind
from hermes_agent.tools.danger.judging import judge
from hermes_agent.tools.danger.verdict import Where

TOOL = re.compile(r"tool ([\w.-]{1,64})")
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
LONGEST_SCOPE = 80
WANTED = (
    "end the line with `[in: WHERE IT HOLDS; check: COMMAND; until: YYYY-MM-DD]`, where COMMAND exits 0 as soon as it "
    "is no longer so, or say what to do instead"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedGate:
    """Requires a marker (scope, check, expiry) on every new line that says what does not work, forbids something, or
    describes this machine. The marker's check must run unattended, and its expiry is at most `days` away. What a person
    asked for needs no marker, but there may be at most `most` such lines of the `principal` (empty: of all)."""

    store: Store
    clock: Clock
    days: int
    most: int
    principal: str = ""

    @property
    def last(self) -> date:
        """The latest expiry that a mark may have."""
        return self._today() + timedelta(days=self.days)

    async def judge(self, draft: Draft, sources: Sources) -> Verdict:
        """Pass, or return the draft with what is missing."""
        front, lines = _new_lines(draft)
        reasons = [f"`{_short(line)}` stands in the frontmatter: constraints belong into the body" for line in front]
        found = [(line, self._reason(line, draft, sources)) for line in lines]
        reasons += [f"`{_short(line)}`: {reason}" for line, reason in found if reason]
        if draft.sort and draft.sort not in set(Sort):
            reasons.append(f"`kind` is one of {', '.join(Sort)}")
        if draft.teaches is Sort.AVOID and draft.new and not any(line.mark for line in lines):
            reasons.append(f"something to avoid has its bounds: {WANTED}")
        if not reasons and (asked := sum(line.forbids and line.mark is None for line in lines)):
            rules = await self.store.lessons.live(Sort.PREFER)
            in_force = sum(self.principal in ("", rule.principal) for rule in rules)
            if in_force + asked > self.most:
                reasons.append(f"{in_force} such rules are in force, and {self.most} are allowed: join or replace some")
        return Returned(reason=f"{'; '.join(reasons[:4])}.") if reasons else Passed()

    def _reason(self, line: Constraint, draft: Draft, sources: Sources) -> str:
        if line.broken:
            return line.broken
        if line.mark is not None:
            return self._of_mark(line, line.mark)
        if line.fails:
            return f"that something does not work is true today at most: {WANTED}"
        if line.forbids:
            return "" if _has_person_words(draft, sources) else f"no person asked for this: {WANTED}"
        fact = draft.kind is Kind.MEMORY and draft.teaches is Sort.FACT
        return f"what is so on a machine changes: {WANTED}" if fact and line.here else ""

    def _of_mark(self, line: Constraint, mark: Mark) -> str:
        if not self._today() <= mark.until <= self.last:
            return f"`until` is a day from {self._today()} to {self.last}"
        if len(line.whole) > LONGEST or len(mark.scope) > LONGEST_SCOPE:
            return f"at most {LONGEST} characters, {LONGEST_SCOPE} of them to say where"
        if not line.words.strip(" -*"):
            return "it says nothing"
        if TOOL.fullmatch(mark.check):
            return ""
        against = objection(mark.check)
        return f"its check cannot run unattended ({against}); a check only looks" if against else ""

    def _today(self) -> date:
        return datetime.fromtimestamp(self.clock.now(), UTC).date()


def objection(check: str) -> str:
    """Why a check may not run unattended, because it does more than read; empty where it may."""
    verdict = judge(check, Where(folder="/", writable=()))
    return verdict.blocked or next(iter(verdict.asks), "")


def _new_lines(draft: Draft) -> tuple[list[Constraint], list[Constraint]]:
    """The constraints in the frontmatter, and the lines below it that the item had not before."""
    front: list[Constraint] = []
    lines: list[Constraint] = []
    for key, text in texts_of(draft.call.arguments):
        if key == "description":
            front += lines_of(draft.kind, text)
        elif key in ("content", "new_string"):
            head = FRONT.match(text)
            front += lines_of(Kind.SKILL, head[0]) if head else []
            lines += added(draft.kind, draft.known, text[head.end() :] if head else text)
    known = {line.whole for line in lines_of(draft.kind, draft.known)}
    named = [line for line in front if line.fails or line.forbids or BEGUN.search(line.whole)]
    return [line for line in named if line.whole not in known], lines


def _has_person_words(draft: Draft, sources: Sources) -> bool:
    """Whether a person speaks in what is cited (in the whole conversation, where nothing is)."""
    said = {piece.number for piece in sources.pieces if piece.by == "person"}
    return bool(said & set(draft.cited) if draft.cited else said) and draft.sort in ("", Sort.PREFER, Sort.DO)


def _short(line: Constraint) -> str:
    return line.whole if len(line.whole) <= 60 else f"{line.whole[:59]}…"


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
    """Whether the person's own words of this turn mention a skill, and nothing of the text was copied from outside.
    The agent's words do not count."""
    entries = await store.history.entries(session)
    return await asyncio.to_thread(_is_asked_for, entries, text)


def _is_asked_for(entries: Sequence[Entry], text: str) -> bool:
    turn = turn_of(entries)
    used, said = _used(turn), [sentence for words in _words(turn) for sentence in SENTENCES.split(words)]
    if any(piece.trust for piece in pieces_of(turn)):
        said = [sentence for sentence in said if not UNSURE.search(sentence)]
    if not any(_speaks_of_one(sentence, used) for sentence in said):
        return False
    sources = Sources(pieces_of(entries))
    return not sources.copied(text) and not sources.strange_hosts(text)


def turn_of(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries after the last final reply, and after the last stopped run."""
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
