"""Proposals: changes that a review may not make at once. Applied when the owner approves or other conversations
come to the same by themselves, else they expire."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, Refused
from hermes_agent.core.messages import ToolCall
from hermes_agent.learning.drafts import Draft, OtherWriters, Waits, Writers, draft_of
from hermes_agent.learning.sources import texts_of
from hermes_agent.learning.wording import plain
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
