"""Drafts: the writes that a review wants, and what a gate says of them before they are made; the gate of evidence."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import NOWHERE, Location
from hermes_agent.core.errors import Refused
from hermes_agent.core.messages import ToolCall, Trust
from hermes_agent.core.tool import Question, RunlessCall, Tool
from hermes_agent.learning.constraints import without_marks
from hermes_agent.learning.mentions import Named, named_in, stretches
from hermes_agent.learning.sources import Sources, texts_of
from hermes_agent.memory.settings import Target
from hermes_agent.store.learning.lessons import Sort
from hermes_agent.store.learning.proposals import Why
from hermes_agent.store.versions import Backing, Kind

MOST_CITED = 40
CITED = re.compile(r"#(\d{1,6})\b")
# A skill's own files: named in it, and made by the same review.
OWN = re.compile(r"^(?:\./)?(?:references|templates|scripts|assets)/|^(?:SKILL|MEMORY|USER)\.md$")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence stored with a version: the review and its pass, the kind of lesson (`do`, `prefer`, `avoid`, `fact`),
    and the event numbers in its conversation."""

    review: str = ""
    through: str = ""
    sort: str = ""
    messages: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The evidence as the ledger stores it."""
        return msgspec.json.encode(self).decode()


def evidence_of(text: str | None) -> Evidence:
    """Parses stored evidence; an empty one where there is none."""
    try:
        return msgspec.json.decode(text or "{}", type=Evidence)
    except msgspec.MsgspecError:
        return Evidence()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Result of looking up the commands, paths, hosts and tools that a text names: where each was `found` in the
    conversation (event numbers), and which are `missing`."""

    missing: tuple[Named, ...] = ()
    found: Mapping[Named, tuple[int, ...]] = field(default_factory=dict)

    def numbers(self, cited: Sequence[int]) -> tuple[int, ...]:
        """The events to store: those cited, and one for each thing named."""
        first = [numbers[0] for numbers in self.found.values() if numbers]
        return tuple(sorted({*cited, *first}))[:MOST_CITED]


def cited_in(arguments: Mapping[str, object], words: str) -> tuple[int, ...]:
    """The events that a call cites: in its `because`, otherwise as `#12` in the words beside it."""
    given = arguments.get("because")
    if isinstance(given, list | tuple):
        numbers = [int(text) for each in given if (text := str(each).lstrip("#")).isdecimal()]
    else:
        numbers = []
    return tuple(dict.fromkeys(numbers or [int(each) for each in CITED.findall(words)]))[:MOST_CITED]


def check(text: str, known: str, cited: Sequence[int], sources: Sources, tools: Collection[str]) -> Checked:
    """Search the cited messages (none cited: the whole conversation) for everything that a text names and did not
    have before."""
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


BECAUSE = "because"
SORT = "kind"
"""Arguments that a review gives besides those of the tool: they are taken off before the tool sees the call."""
WORDS = ("content", "new_string", "description")
"""The arguments whose words become part of what is learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A write that a review wants. `call` is without `because` and `kind`; `item` is the skill's name or the notes
    file; `new` are the added words, `known` those that the item had; `key` is the call's own; `sort` is what the call
    says that it teaches (see `Sort`), empty where it does not."""

    call: ToolCall
    kind: Kind
    action: str
    item: str
    new: str
    cited: tuple[int, ...]
    key: str
    known: str = ""
    sort: str = ""

    @property
    def words(self) -> str:
        """All words that it would leave behind, also in names."""
        names = (self.call.arguments.get(each, "") for each in ("name", "file", "category"))
        return "\n".join((self.new, *(re.sub(r"[-_/]", " ", str(each)) for each in names)))

    @property
    def teaches(self) -> Sort:
        """The sort of lesson, guessed where the call does not say."""
        if self.sort in set(Sort):
            return Sort(self.sort)
        if self.kind is Kind.SKILL:
            return Sort.DO
        return Sort.PREFER if self.item.endswith(Target.USER.file) else Sort.FACT


class Writers(Protocol):
    """Write access of a review to skills and notes, for one conversation.

    - `tools` gives the tools of skills and memory by name; their writes are authored by the background, with this
      backing;
    - `content` is the file that a draft would change, None where there is none;
    - `skill_names` are those of the home;
    - `is_owner` says whether the conversation is the owner's.
    """

    @property
    def is_owner(self) -> bool: ...

    def tools(self, backing: Backing) -> Mapping[str, Tool]: ...

    async def content(self, draft: Draft) -> bytes | None: ...

    async def skill_names(self) -> Collection[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWriters(RunlessCall):
    """`CallContext` of an unattended call: it cannot ask a person or call other tools. `speaker` is the only person
    of the conversation, empty where others read along."""

    key: str
    session: str
    workspace: str
    speaker: str
    turn: int = 0
    trust: Trust = Trust.CLEAN
    attach: bool = False
    begun_at: Location = NOWHERE
    run: str = ""

    @property
    def speakers(self) -> frozenset[str]:
        """The only person, if any."""
        return frozenset(filter(None, (self.speaker,)))

    def progress(self, text: str) -> None:
        """Does nothing."""

    async def ask(self, question: Question) -> str:
        """Raises `Refused`: nobody attends."""
        raise Refused(f"No one is here to answer: {question.text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Verdict of a gate: the draft is accepted; `checked` says what was verified."""

    checked: Checked = field(default_factory=Checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """Verdict of a gate: the draft goes back to the reviewer with a reason; the second time it is refused."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Verdict of a gate: the draft may not go live; it waits for a person or in quarantine. `taint` names its parts
    of outside origin."""

    why: Why
    taint: str


Verdict = Passed | Returned | Waits


class Gate(Protocol):
    """Checks a review's draft before it may be written. All gates are asked: a returned draft gets the reasons of
    all; otherwise the first gate that lets it wait decides."""

    async def judge(self, draft: Draft, sources: Sources) -> Verdict: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceGate:
    """Requires that commands, paths, hosts and tools that a draft names appear in the cited messages. `tools` are
    the names of all tools."""

    tools: Collection[str] = ()

    async def judge(self, draft: Draft, sources: Sources) -> Verdict:
        """Pass with what was found, or return the draft with what was not."""
        checked = check(without_marks(draft.new), draft.known, draft.cited, sources, self.tools)
        if not checked.missing:
            return Passed(checked=checked)
        named = ", ".join(f"{each.sort} `{each.text}`" for each in checked.missing[:8])
        return Returned(reason=f"The cited messages do not hold: {named}. Leave it out, or cite the messages that do.")


def draft_of(call: ToolCall, words: str, key: str) -> Draft | None:
    """The draft that a call makes; None for a reading call. `words` stand beside the call in the reply."""
    arguments = {name: value for name, value in call.arguments.items() if name not in (BECAUSE, SORT)}
    bare = ToolCall(id=call.id, name=call.name, arguments=arguments, broken=call.broken)
    action = str(arguments.get("action", ""))
    if call.name == "memory":
        item, action = _notes(arguments), action or ("operations" if arguments.get("operations") else "")
        kind = Kind.MEMORY
    else:
        item, kind = str(arguments.get("name", "")), Kind.SKILL
    if not action or (kind is Kind.SKILL and call.name != "skill_manage"):
        return None
    new = "\n\n".join(text for key_, text in texts_of(arguments) if key_ in WORDS)
    return Draft(
        call=bare,
        kind=kind,
        action=action,
        item=item,
        new=new,
        cited=cited_in(call.arguments, words),
        key=key,
        sort=str(call.arguments.get(SORT, "")),
    )


def _notes(arguments: Mapping[str, Any]) -> str:
    try:
        return Target(str(arguments.get("target", ""))).file
    except ValueError:
        return ""
