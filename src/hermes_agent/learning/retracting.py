"""What a deleted conversation alone supported is taken back."""

from __future__ import annotations

from collections.abc import Callable

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.learning.proposing import Proposing
from hermes_agent.memory.notes import By as NotesBy
from hermes_agent.memory.notes import Notes
from hermes_agent.skills.changes import By as SkillBy
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim
from hermes_agent.store.learning.proposals import ProposalState
from hermes_agent.store.versions import NO_BACKING, Author, Backing, Kind, Version, VersionState

RECENT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """One undo for skills and notes. `writer` and `notes` are made when they are needed."""

    store: Store
    writer: Callable[[], Writer]
    notes: Callable[[], Notes]

    async def find(self, number: int | None) -> Version:
        """The version of that number, or the newest that the agent, a review or the curator made and nobody took back.
        Raises `HermesError`."""
        if number is None:
            return await self._newest()
        version = await self.store.versions.get(number)
        if version is None or version.state is not VersionState.DONE:
            raise HermesError(f"There is no version {number}: `hermes learn log` lists them.")
        return version

    async def undo(self, version: Version, author: Author, principal: str, backing: Backing = NO_BACKING) -> int:
        """Take a change back, to the byte where nothing came after it; the version that this is, 0 where nothing had to
        change. Raises `HermesError`."""
        if await self.store.versions.undone(version.id):
            raise HermesError(f"Version {version.id} was undone already.")
        if version.change.kind is Kind.SKILL:
            by = SkillBy(author=author, principal=principal, undoes=version.id, backing=backing)
            return (await self.writer().undo(version, by)).version
        notes = self.notes()
        await notes.notice([version.change.item])
        return (await notes.undo(version, NotesBy(author=author, principal=principal, backing=backing))).version

    async def _newest(self) -> Version:
        for version in await self.store.versions.list(limit=RECENT):
            change, done = version.change, version.state is VersionState.DONE
            person = change.author in (Author.OWNER, Author.MEMBER, Author.HUB)
            if done and not person and change.undoes is None and not await self.store.versions.undone(version.id):
                return version
        raise HermesError("There is nothing to undo.")


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
