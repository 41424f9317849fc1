"""How a quarantined item comes free without the owner: two further conversations bear it out, with no word of it from
outside."""

from __future__ import annotations

import logging
import re

import msgspec

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import ToolCall
from hermes_agent.learning.drafts import draft_of
from hermes_agent.learning.naming import named_in
from hermes_agent.learning.proposing import Call, Proposing
from hermes_agent.learning.sources import Side, Sources
from hermes_agent.store.database import Store
from hermes_agent.store.learning.proposals import Proposal, ProposalState, Why
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Version

log = logging.getLogger(__name__)

ENOUGH = 2
"""So many conversations besides the one that it came from."""
SHARE = 0.8
"""Of the words of an item that names nothing, as many have to be a person's own."""
LEAST_WORDS = 4
WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Releasing:
    """Looks at what is in quarantine after each review."""

    store: Store
    clock: Clock
    proposing: Proposing

    async def after(self, record: Session, sources: Sources, *, live: bool) -> list[Version]:
        """Note what this conversation bears out, and apply what that is enough for (where `live`)."""
        await self.store.proposals.expire(self.clock.now())
        released = []
        for proposal in await self.store.proposals.waiting(Why.OUTSIDE):
            if not await self._independent(proposal, record) or not bears_out(proposal, sources):
                continue
            await self._note(proposal, record)
            supporters = await self.store.proposals.supporters(proposal.name)
            if live and len(supporters) >= ENOUGH and (version := await self._release(proposal)):
                released.append(version)
        return released

    async def _independent(self, proposal: Proposal, record: Session) -> bool:
        """Whether a conversation is another one than that of the proposal, and no copy of it or of one that counted."""
        counted = {proposal.session, *await self.store.proposals.supporters(proposal.name)} - {record.id}
        if proposal.session == record.id or record.parent in counted:
            return False
        others = [await self.store.sessions.get(session) for session in counted]
        family = {other.parent for other in others if other is not None and other.parent}
        return record.id not in family and (not record.parent or record.parent not in family)

    async def _note(self, proposal: Proposal, record: Session) -> None:
        now = self.clock.now()
        await self.store.write(lambda tx: self.store.proposals.support(tx, proposal.name, record.id, now))

    async def _release(self, proposal: Proposal) -> Version | None:
        try:
            return await self.proposing.apply(proposal, ProposalState.RELEASED)
        except HermesError as error:
            log.info("%s could not be released: %s", proposal.name, error)
            return None


def bears_out(proposal: Proposal, sources: Sources) -> bool:
    """Whether a conversation says the same by itself: everything that the item names was said or done in it by a person
    or the agent, nothing of it stands in what came from outside there; an item that names nothing needs its words from
    people."""
    call = msgspec.json.decode(proposal.call, type=Call)
    draft = draft_of(ToolCall(id="", name=call.name, arguments=call.arguments), "", proposal.key)
    if draft is None or not draft.new or sources.copied(draft.new) or sources.strange_hosts(draft.new):
        return False
    if named := named_in(draft.new):
        return all(sources.backs(each) for each in named)
    wanted = {word.casefold() for word in WORD.findall(draft.new)}
    said = {
        word.casefold() for piece in sources.pieces if piece.side is Side.CLEAN for word in WORD.findall(piece.text)
    }
    return len(wanted) >= LEAST_WORDS and len(wanted & said) >= SHARE * len(wanted)
