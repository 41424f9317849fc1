"""What a deleted conversation alone supported is taken back."""

from __future__ import annotations

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.proposing import Proposing
from hermes_agent.learning.undoing import Undoing
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim
from hermes_agent.store.learning.proposals import ProposalState
from hermes_agent.store.versions import Author, Backing, Kind, Version

PERSONS = frozenset({Author.OWNER, Author.MEMBER})
LIVE = "the conversation that it came from was deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retracting:
    """Does the jobs of the kind `retract`."""

    store: Store
    undoing: Undoing
    proposing: Proposing

    async def __call__(self, claim: Claim) -> Account:
        """Take back what a review of this conversation wrote, where no person changed the item since and no other
        conversation bears it out."""
        session = claim.job.session
        back: list[int] = []
        kept: list[int] = []
        for version in await self.store.versions.of_session(session, Author.BACKGROUND):
            if version.change.undoes is not None or await self.store.versions.undone(version.id):
                continue
            (kept if await self._is_needed(version) or not await self._back(version) else back).append(version.id)
        for proposal in await self.store.proposals.waiting():
            if proposal.session == session:
                await self.proposing.end(proposal.id, ProposalState.RETRACTED)
        return Account(kept=0, note=f"taken back: {back or 'nothing'}; left, others support it: {kept or 'nothing'}")

    async def _is_needed(self, version: Version) -> bool:
        change = version.change
        later = [each for each in await self.store.versions.list(change.kind, change.item) if each.id > version.id]
        if any(each.change.author in PERSONS for each in later):
            return True
        others = {each.change.session for each in later if each.change.undoes is None} - {change.session, ""}
        if others:
            return True
        if change.kind is Kind.MEMORY:
            return False
        users = await self.store.history.calling("skill_view", change.item.partition("/")[0])
        return any(user != change.session for user in users)

    async def _back(self, version: Version) -> bool:
        try:
            await self.undoing.undo(version, Author.BACKGROUND, "", Backing(note=LIVE, approved=True))
        except HermesError:
            return False
        return True
