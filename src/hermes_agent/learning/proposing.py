"""The gate of all learning (an item goes live, or waits), and proposals: applied when the owner approves or other
conversations come to the same by themselves, else they expire."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.edits import replace as replaced
from hermes_agent.core.errors import HermesError, Refused, ToolError
from hermes_agent.core.events import Entry, PrefixFrozen
from hermes_agent.core.messages import Origin, ToolCall, Trust
from hermes_agent.learning.drafts import Draft, OtherWriters, Passed, Verdict, Waits, Writers, draft_of
from hermes_agent.learning.grounding import Ground
from hermes_agent.learning.sources import NOT, WORDS, Piece, Sources, pieces_of, prompt_in, texts_of
from hermes_agent.learning.wording import plain, would
from hermes_agent.scanner.finding import Severity
from hermes_agent.scanner.scan import alarms
from hermes_agent.skills.changes import rebased
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Job
from hermes_agent.store.learning.proposals import Proposal, ProposalState, Why
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Backing, Kind, Version

DAY = 86_400.0
ENDED = {
    ProposalState.APPROVED: "the owner said yes",
    ProposalState.RELEASED: "another conversation came to the same by itself",
}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as a proposal stores it: the name of the tool, and the arguments."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposing:
    """Stores drafts as proposals and applies them. `hands_of` gives the write access (`Writers`) of a conversation,
    also of the substitute for a deleted one."""

    store: Store
    clock: Clock
    hands_of: Callable[[Session], Writers]
    days: int = 30

    async def check(self, draft: Draft) -> None:
        """Raise `Refused` for what the owner rejected before."""
        rejected = await self.store.proposals.rejected(draft.kind, draft.item)
        if any(_is_equal(each, draft) for each in rejected):
            raise Refused("The owner does not want that kept.", hint="Do not write it again; go on.")

    async def put(self, draft: Draft, waits: Waits, job: Job, evidence: str, base: bytes | None) -> int:
        """Store a draft as a proposal; its number."""
        now = self.clock.now()
        call = Call(name=draft.call.name, arguments=dict(draft.call.arguments))
        proposal = Proposal(
            why=waits.why,
            kind=draft.kind,
            item=draft.item,
            action=draft.action,
            call=msgspec.json.encode(call).decode(),
            key=draft.key,
            job=job.id,
            session=job.session,
            principal=job.principal,
            first=job.first,
            last=job.last,
            evidence=evidence,
            taint=waits.taint,
            base=base,
            at=now,
            expires=now + self.days * DAY,
        )
        return await self.store.write(lambda tx: self.store.proposals.put(tx, proposal))

    async def apply(self, proposal: Proposal, state: ProposalState) -> Version | None:
        """Apply a proposal on top of later changes; the resulting version, None where nothing had to change.

        Raises `HermesError` where that fails; the proposal stays open then.
        """
        key = f"{proposal.key}.applied"
        if proposal.state is ProposalState.INTENDED:  # A process died while it applied it.
            await self.store.proposals.wait_on(proposal.id)
        if not await self.store.proposals.intend(proposal.id):
            raise HermesError(f"{proposal.name} is no longer open ({proposal.state.value}).")
        try:
            await self._make(proposal, key, ENDED[state])
        except HermesError:
            await self.store.proposals.wait_on(proposal.id)
            raise
        version = await self.store.versions.by_key(key)
        await self.end(proposal.id, state, version.id if version else None)
        return version

    async def end(self, number: int, state: ProposalState, version: int | None = None) -> bool:
        """End a proposal; False where it was ended before."""
        now = self.clock.now()
        return await self.store.write(lambda tx: self.store.proposals.end(tx, number, state, now, version))

    async def _make(self, proposal: Proposal, key: str, note: str) -> None:
        record = await self.store.sessions.get(proposal.session) or nobodys(proposal)
        hands = self.hands_of(record)
        backing = Backing(
            first=proposal.first,
            last=proposal.last,
            evidence=proposal.evidence,
            taint=proposal.taint or None,
            note=f"{proposal.name}: {note}",
            approved=True,
        )
        call = msgspec.json.decode(proposal.call, type=Call)
        arguments = await self._on_top(proposal, call, hands)
        tool = hands.tools(backing)[call.name]
        tool.facts(arguments, record.workspace)
        context = OtherWriters(
            key=key, session=proposal.session, workspace=record.workspace, speaker=proposal.principal
        )
        await tool.run(arguments, context)

    async def _on_top(self, proposal: Proposal, call: Call, hands: Writers) -> Mapping[str, Any]:
        """The arguments; a whole file that was made of another state is put on top of what is there now."""
        draft = draft_of(ToolCall(id="", name=call.name, arguments=call.arguments), "", proposal.key)
        if draft is None or proposal.action != "edit":
            return call.arguments
        whole = str(call.arguments.get("content", "")).encode()
        joined = rebased(await hands.content(draft), proposal.base, whole)
        return {**call.arguments, "content": (joined or whole).decode()}


def nobodys(proposal: Proposal) -> Session:
    """Substitute for a deleted conversation."""
    return Session(
        id=proposal.session,
        principal=proposal.principal,
        conversation="",
        surface="",
        created=proposal.at,
        updated=proposal.at,
    )


LONGEST_ASKED = 160
"""Characters of a proposal that its question shows."""
NEW = ("add", "create")
SHOWN_APART = frozenset({"action", "name", "target"})


def _texts(proposal: Proposal) -> list[str]:
    arguments = msgspec.json.decode(proposal.call, type=Call).arguments
    return [text for name, text in texts_of(arguments) if name not in SHOWN_APART]


def words_of(proposal: Proposal) -> str:
    """The text that a proposal would write."""
    call = msgspec.json.decode(proposal.call, type=Call)
    shown = {name: value for name, value in call.arguments.items() if name not in SHOWN_APART}
    lines = []
    for name, value in shown.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        lines.append(f"{name}: {text}" if "\n" not in text else f"{name}:\n{text}")
    return "\n".join(lines)


def question_of(proposal: Proposal) -> str:
    """What a proposal would write, and why it waits, in one line that no quoted text can end early."""
    words = " ".join(" ".join(_texts(proposal)).split())
    more = len(words) > LONGEST_ASKED
    shown = words[:LONGEST_ASKED].replace('"', "'") + ("…" if more else "")
    what = "note" if proposal.kind is Kind.MEMORY else f"skill {proposal.item}"
    change = "" if proposal.action in NEW else f" ({proposal.action})"
    why = proposal.taint or ("a person wrote that" if proposal.why is Why.PROTECTED else "you want to be asked")
    whole = f" All of it: `/learn show {proposal.name}`." if more or not words else ""
    return f'Learned: {what}{change} "{shown}" ({proposal.name}) — {" ".join(why.split())}.{whole}'


def title_of(proposal: Proposal, others: str = "") -> str:
    """A proposal in one line: its name, change, reason to wait, and its group (`others`)."""
    why = {
        Why.ASKED: f"needs your approval{': ' if proposal.taint else ''}{proposal.taint}",
        Why.PROTECTED: "needs your approval: it changes a text that a person wrote or pinned",
        Why.MEMBER: "needs your approval: it comes from somebody else's conversation",
        Why.OUTSIDE: f"in quarantine: {proposal.taint}",
    }[proposal.why]
    why = f"{why}, together with {others}" if others else why
    state = why if proposal.ended is None else proposal.state.value
    return f"{proposal.name}  {proposal.kind.value} {proposal.item}: {proposal.action} ({state})"


WORD = re.compile(r"\w+")


async def end_equal(proposing: Proposing, draft: Draft, version: Version) -> None:
    """End the proposals that say what went live without them: a conversation that saw nothing from outside came to the
    same, sentence by sentence."""
    for proposal in await proposing.store.proposals.waiting():
        if _is_equal(proposal, draft):
            await proposing.end(proposal.id, ProposalState.RELEASED, version.id)


def _is_equal(proposal: Proposal, draft: Draft) -> bool:
    call = msgspec.json.decode(proposal.call, type=Call)
    other = draft_of(ToolCall(id="", name=call.name, arguments=call.arguments), "", proposal.key)
    if other is None or (other.kind, other.item) != (draft.kind, draft.item):
        return False
    return _same(other.new) == _same(draft.new) and (bool(draft.new) or other.call.arguments == draft.call.arguments)


def _same(text: str) -> list[str]:
    return WORD.findall(plain(text).casefold())


CONTEXT = "# Project context"


async def sources_of(store: Store, entries: Sequence[Entry], own: Origin) -> Sources:
    """The texts of a conversation, and of its prompt what the workspace's file says there."""
    hashes = [entry.event.hash for entry in entries if isinstance(entry.event, PrefixFrozen)]
    frozen = await store.prefixes.get(hashes[-1]) if hashes else None
    said = frozen.prefix.system.partition(CONTEXT)[2] if frozen else ""
    first = [Piece(number=0, trust=Trust.WORKSPACE, text=said, source="the project's file")] if said else []
    return await asyncio.to_thread(lambda: Sources([*first, *pieces_of(entries, own)], prompt_in(entries)))


DICTATED, MEANT = 1.0, 0.6
"""Of the words of a sentence, so many a person typed: for a model that saw anything else, and for one that did not."""
NEAR = 2
"""Lines beside what is new that it is read together with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonGate:
    """Decides on every write to notes and skills, of the foreground, the review and the curator alike. `trust` is the
    worst class of the conversation, `share` how much of each sentence a person must have typed to pass for theirs.

    - What the person typed is theirs, whatever was in view.
    - Else with the outside in view it waits.
    - What copies the workspace, names a host known only from there, or alarms the scanner waits.
    - So does whatever would have the agent send, pay, fetch and run, and the like (see `wording.would`).
    - With the workspace in view, so does what has no ground in what was typed or run (see `grounding`).
    """

    trust: Trust = Trust.CLEAN
    share: float = DICTATED

    async def judge(self, draft: Draft, sources: Sources) -> Verdict:
        """Pass, or make the draft wait."""
        return await asyncio.to_thread(self._judged, draft, sources)

    def _judged(self, draft: Draft, sources: Sources) -> Verdict:
        known = [line.strip() for line in draft.known.splitlines()]
        new = "\n".join(line for line in draft.words.splitlines() if line.strip() not in known)
        if new.strip() and sources.typed(new, self.share):
            return Passed()
        found = self._of_outside(sources) or _of_words(new, _around(draft, known, new), sources)
        return found or self._of_ground(new, sources) or Passed()

    def _of_ground(self, new: str, sources: Sources) -> Waits | None:
        strange = Ground.of(sources.pieces).strange(new) if self.trust is Trust.WORKSPACE else []
        if strange:
            return Waits(why=Why.ASKED, taint=f"neither you nor a command named: {', '.join(strange[:5])[:120]}")
        return None

    def _of_outside(self, sources: Sources) -> Waits | None:
        if self.trust is Trust.OUTSIDE:
            read = sorted({piece.source for piece in sources.pieces if piece.trust is Trust.OUTSIDE})
            return Waits(why=Why.OUTSIDE, taint=f"written in sight of {', '.join(read)[:200] or 'what is outside'}")
        return None


def _around(draft: Draft, known: Sequence[str], new: str) -> tuple[str, str]:
    """What stands around the new words when they are written, and what stood there: it may come in parts."""
    words = {name: str(draft.call.arguments.get(name) or "") for name in ("old_string", "new_string")}
    try:
        after = replaced(draft.known, words["old_string"], words["new_string"], everywhere=True).content
    except ToolError:
        before = " ".join(known[-NEAR:])
        return f"{before} {new}", before
    lines = [line.strip() for line in after.splitlines()]
    return _changed(lines, known), _changed(known, lines)


def _changed(lines: Sequence[str], others: Sequence[str]) -> str:
    """The lines that are not among the others, with those near them."""
    at = [number for number, line in enumerate(lines) if line not in others]
    return " ".join(lines[max(0, at[0] - NEAR) : at[-1] + NEAR + 1]) if at else ""


def _denials(text: str) -> int:
    return sum(word.casefold() in NOT for word in WORDS.findall(text))


def _of_words(new: str, around: tuple[str, str], sources: Sources) -> Waits | None:
    if copied := sources.copied(new):
        span = max(copied, key=lambda each: each.end - each.start)
        words = " ".join(new[span.start : span.end].split())
        return Waits(why=Why.OUTSIDE, taint=f"copied from {copied[span]}: {words[:120]}")
    if hosts := sources.strange_hosts(new):
        return Waits(why=Why.OUTSIDE, taint=f"no person named: {', '.join(hosts[:5])}")
    if grave := alarms(new, Severity.BLOCK):
        return Waits(why=Why.OUTSIDE, taint=f"the scanner is alarmed: {grave[0].what}")
    now, before = around
    if act := would(new) or (would(now) if not would(before) or _denials(now) < _denials(before) else ""):
        return Waits(why=Why.ASKED, taint=f"it would have the agent {act}")
    return None
