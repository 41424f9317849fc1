"""The person's view of what was learned: list, show, undo, approve, reject, costs; undoing what a deleted chat
taught."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hermes_agent.core.clock import Clock, moment
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Entry, PrefixFrozen, Replied
from hermes_agent.learning.drafts import evidence_of
from hermes_agent.learning.jobs import Brought, Sum, together
from hermes_agent.learning.proposing import Proposing, title_of, words_of
from hermes_agent.memory.notes import SOUL, Notes
from hermes_agent.skills.skill import Layer
from hermes_agent.skills.versions import diff_of
from hermes_agent.skills.writing import Writer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim, Job, JobKind
from hermes_agent.store.learning.lessons import Sort
from hermes_agent.store.learning.proposals import Proposal, ProposalState
from hermes_agent.store.transaction import Transaction
from hermes_agent.store.versions import (
    ADOPT,
    NO_BACKING,
    UNTOUCHED,
    Author,
    Backing,
    By,
    Change,
    Kind,
    Version,
    VersionState,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """Undoes changes of skills and notes. `writer` and `notes` are created on first use."""

    store: Store
    writer: Callable[[], Writer]
    notes: Callable[[], Notes]

    async def find(self, number: int | None) -> Version:
        """The version of that number, or the newest automatic one that is not undone. Raises `HermesError`."""
        if number is None:
            return await self._newest()
        version = await self.store.versions.get(number)
        if version is None or version.state is not VersionState.DONE:
            raise HermesError(f"There is no version {number}: `hermes learn log` lists them.")
        return version

    async def notice(self) -> None:
        """Record what the files of skills and notes hold that nobody known wrote."""
        writer, notes = self.writer(), self.notes()
        known = await self.store.versions.items(Kind.MEMORY)
        await notes.notice(tuple(dict.fromkeys((*NOTES, SOUL, *known))))
        await writer.mend([each.name for each in await writer.library.all(limit=RECENT) if each.layer is Layer.USER])

    async def undo(self, version: Version, author: Author, principal: str, backing: Backing = NO_BACKING) -> int:
        """Undo a change, byte for byte where it is the latest; the new version, 0 where nothing had to change.
        Raises `HermesError`."""
        if await self.store.versions.undone(version.id):
            raise HermesError(f"Version {version.id} was undone already.")
        if version.change.kind is Kind.SKILL:
            by = By(author=author, principal=principal, undoes=version.id, backing=backing)
            return (await self.writer().undo(version, by)).version
        notes = self.notes()
        await notes.notice([version.change.item])
        return (await notes.undo(version, By(author=author, principal=principal, backing=backing))).version

    async def _newest(self) -> Version:
        for version in await self.store.versions.list(limit=RECENT):
            change, done = version.change, version.state is VersionState.DONE
            person = change.author in (*UNTOUCHED, Author.HUB)
            if done and not person and change.undoes is None and not await self.store.versions.undone(version.id):
                return version
        raise HermesError("There is nothing to undo.")


LIVE = "the conversation that it came from was deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retracting:
    """Handles jobs of the kind `retract`: undoes what only a deleted conversation supports."""

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
        if any(each.change.author in UNTOUCHED for each in later):
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


PROPOSED = re.compile(r"p(\d{1,12})")
NUMBER = re.compile(r"v?(\d{1,12})")
RECENT = 1_000
NOTES = ("MEMORY.md", "USER.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The person's commands on learned changes: list, show, undo, approve, reject. A name is `12` (a version) or
    `p3` (a proposal)."""

    store: Store
    clock: Clock
    undoing: Undoing
    proposing: Proposing

    async def versions(self, limit: int) -> list[Version]:
        """The newest changes."""
        return await self.store.versions.list(limit=limit)

    async def waiting(self) -> list[Proposal]:
        """The open proposals; ends expired ones."""
        await self.store.proposals.expire(self.clock.now())
        return await self.store.proposals.waiting()

    async def show(self, name: str) -> str:
        """All about a change or proposal: author, cause, cost, text."""
        if proposal := await self._proposal(name):
            return _proposed(proposal, together_with(proposal, await self.waiting()))
        return _changed(await self._version(name))

    async def diff(self, name: str) -> str:
        """The difference of a change, or the text of a proposal."""
        if proposal := await self._proposal(name):
            return words_of(proposal)
        change = (await self._version(name)).change
        return diff_of(change.item, change.before, change.after) or "Nothing differs."

    async def undo(self, name: str, principal: str) -> str:
        """Undo a change (empty: the newest automatic one). Raises `HermesError`."""
        if PROPOSED.fullmatch(name):
            raise HermesError(f"{name} is not live: `reject {name}` closes it.")
        version = await self.undoing.find(None) if not name else await self._version(name)
        number = await self.undoing.undo(version, Author.OWNER, principal)
        done = f"version {number}" if number else "nothing had to change"
        return f"Version {version.id} of {version.change.item} is undone ({done})."

    async def adopt(self, name: str, principal: str) -> str:
        """Make what was found in a skill, a notes file or SOUL.md the owner's, as it is. Raises `HermesError`."""
        await self.undoing.notice()
        versions, heads = self.store.versions, list[Version]()
        for kind in Kind:
            items = [item for item in await versions.items(kind) if item.partition("/")[0] == name]
            for item in items:
                if await versions.is_found(kind, item):
                    heads += filter(None, [await versions.latest(kind, item, private=item == SOUL)])
        if not heads:
            raise HermesError(f"Nothing of `{name}` was changed outside: `hermes learn log` lists the changes.")

        async def keep(tx: Transaction) -> None:
            for head in heads:
                old, text = head.change, head.change.after
                change = Change(
                    kind=old.kind,
                    item=old.item,
                    at=self.clock.now(),
                    author=Author.OWNER,
                    action=ADOPT,
                    before=text,
                    after=text,
                    principal=principal,
                    folder=old.folder,
                    private=old.private,
                )
                await versions.record(tx, change, VersionState.DONE, follows=None if old.private else head.id)

        await self.store.write(keep)
        return f"`{name}` is yours, as it is now."

    async def approve(self, name: str) -> str:
        """Apply a proposal with its group. Raises `HermesError` where one does not fit any more; that one and the
        later ones stay open."""
        lines: list[str] = []
        for part in await self._parts(name):
            try:
                version = await self.proposing.apply(part, ProposalState.APPROVED)
            except HermesError as error:
                raise HermesError(" ".join([*lines, f"{part.name} is still open: {error}"])) from error
            done = f"version {version.id}; undo: learn undo {version.id}" if version else "nothing had to change"
            lines.append(f"{part.name} is live ({done}).")
        return "\n".join(lines)

    async def reject(self, name: str) -> str:
        """Reject a proposal with its group. The agent and its reviews do not propose the same again."""
        parts = await self._parts(name)
        for part in parts:
            await self.proposing.end(part.id, ProposalState.REJECTED)
        return "\n".join(f"{part.name} is rejected." for part in parts)

    async def why(self, session: str, turn: int) -> list[str]:
        """The learned text behind a turn: the notes of its prompt, and the skills loaded so far. Turns count the
        model's replies. Raises `HermesError`."""
        entries = await self.store.history.entries(session)
        replies = [entry for entry in entries if isinstance(entry.event, Replied)]
        if not 0 < turn <= len(replies):
            raise HermesError(f"The conversation has {len(replies)} turns; there is no turn {turn}.")
        seen = [entry for entry in entries if entry.number < replies[turn - 1].number]
        frozen = next((entry.at for entry in seen if isinstance(entry.event, PrefixFrozen)), 0.0)
        noted = [each for item in NOTES for each in await self._at(Kind.MEMORY, item, frozen)]
        lines = [f"{line_of(each)} (in the prompt)" for each in noted]
        for at, name in _loaded(seen):
            found = await self._at(Kind.SKILL, f"{name}/SKILL.md", at)
            lines.append(f"{line_of(found[0])} (loaded)" if found else f"skill {name}, which nothing here changed")
        return lines or ["No lessons: its prompt had no notes, and it loaded no skill."]

    async def brought(self, since: float = 0.0) -> Brought:
        """Costs and results of learning."""
        jobs = await self.store.learning.list(since=since, limit=10_000)
        kinds = {kind.value: [job for job in jobs if job.kind is kind] for kind in JobKind}
        every = await self.store.lessons.live()
        bounded = sum(each.sort is not Sort.PREFER for each in every)
        return Brought(
            kinds={kind: together(mine) for kind, mine in kinds.items() if any(each.ended for each in mine)},
            latest=[job for job in jobs if job.kind is not JobKind.PROBE or job.account.note][:10],
            bounded=bounded,
            rules=len(every) - bounded,
            in_line=sum(job.ended is None for job in jobs),
        )

    async def _at(self, kind: Kind, item: str, at: float) -> list[Version]:
        """The version of an item that was in force at a time."""
        versions = await self.store.versions.list(kind, item, limit=RECENT)
        return [each for each in versions if each.change.at <= at and each.state is VersionState.DONE][:1]

    async def _version(self, name: str) -> Version:
        found = NUMBER.fullmatch(name.strip())
        if found is None:
            raise HermesError(f"`{name}` is neither a change (12) nor a proposal (p3): see `learn log`.")
        return await self.undoing.find(int(found[1]))

    async def _proposal(self, name: str) -> Proposal | None:
        found = PROPOSED.fullmatch(name.strip())
        if found is None:
            return None
        proposal = await self.store.proposals.get(int(found[1]))
        if proposal is None:
            raise HermesError(f"There is no proposal {name}: see `learn log`.")
        return proposal

    async def _parts(self, name: str) -> list[Proposal]:
        """What waits under that name and all that belongs to it, in the order in which it was thought of."""
        proposal = await self._waits(name)
        return [each for each in await self.store.proposals.waiting() if each.whole == proposal.whole]

    async def _waits(self, name: str) -> Proposal:
        proposal = await self._proposal(name)
        if proposal is None:
            raise HermesError(f"`{name}` is not an open proposal. Proposals have names like p3: see `learn log`.")
        if proposal.ended is not None:
            raise HermesError(f"{proposal.name} is no longer open: it is {proposal.state.value}.")
        return proposal


def stats_lines(found: Brought) -> list[str]:
    """Costs and results of learning as lines."""
    lines = [f"{kind}: {_sum(total)}" for kind, total in found.kinds.items()]
    lines += [f"  {_job(job)}" for job in found.latest]
    if found.bounded or found.rules:
        lines.append(f"in force: {found.bounded} lessons that expire, {found.rules} prohibitions")
    lines += [f"queued: {found.in_line}"] if found.kinds or found.in_line else []
    return lines or ["No conversation was reviewed yet."]


def together_with(proposal: Proposal, waiting: Sequence[Proposal]) -> str:
    """The names of the other proposals of its group."""
    return ", ".join(each.name for each in waiting if each.whole == proposal.whole and each.id != proposal.id)


NOBODY = "nobody known"


def line_of(version: Version) -> str:
    """A change in one line."""
    change = version.change
    source = f", from {change.session}" if change.session else ""
    undoes = f" of {change.undoes}" if change.undoes else ""
    return (
        f"{version.id}  {moment(change.at)}  {change.kind.value} {change.item.removesuffix('/SKILL.md')}: "
        f"{change.action}{undoes} by {NOBODY if change.author is Author.FOUND else change.author.value}{source}"
    )


def _changed(version: Version) -> str:
    change = version.change
    evidence = evidence_of(change.evidence)
    lines = [line_of(version)]
    if change.session:
        lines.append(f"Conversation {change.session}, events {change.first} to {change.last}.")
    if evidence.review:
        cited = ", ".join(f"#{number}" for number in evidence.messages) or "none in particular"
        lines.append(f"Review {evidence.review} ({evidence.through} pass); messages: {cited}.")
    lines += [f"Kind: {evidence.sort}."] if evidence.sort else []
    lines += [f"From outside: {change.taint}."] if change.taint else []
    lines += [f"Cost: US dollars {change.cost:.4f}."] if change.cost is not None else []
    lines += [f"Note: {change.note}."] if change.note else []
    return "\n".join([*lines, "", diff_of(change.item, change.before, change.after)])


def _proposed(proposal: Proposal, others: str) -> str:
    cited = ", ".join(f"#{number}" for number in evidence_of(proposal.evidence).messages) or "none in particular"
    lines = [
        title_of(proposal, others),
        f"Conversation {proposal.session}, review {proposal.job}; messages: {cited}.",
        f"It expires {moment(proposal.expires)}." if proposal.ended is None else "",
        "",
        words_of(proposal),
    ]
    return "\n".join(line for place, line in enumerate(lines) if line or place > 2)


def _loaded(entries: Sequence[Entry]) -> list[tuple[float, str]]:
    """The skills that were loaded, with the time, each once."""
    found: dict[str, float] = {}
    for entry in entries:
        if isinstance(entry.event, Replied):
            for call in entry.event.message.tool_calls:
                name = str(call.arguments.get("name", "")) if call.name == "skill_view" else ""
                found |= {name: entry.at} if name else {}
    return [(at, name) for name, at in found.items()]


def _sum(total: Sum) -> str:
    price = f"US dollars {total.cost:.4f}" + (f", price unknown for {total.unpriced}" if total.unpriced else "")
    return (
        f"{total.jobs} ended ({total.empty} kept nothing, {total.failed} failed), {total.calls} model calls, "
        f"{total.input:,} tokens in ({total.cached_share:.0%} cached), {total.output:,} out, {price}; "
        f"{total.kept} changes live, {total.waiting} proposals, {total.refused} calls refused"
    )


def _job(job: Job) -> str:
    whose = f" of {job.session}" if job.session else ""
    return f"{moment(job.created)}  {job.kind.value} {job.id}{whose}: {job.state.value}. {job.account.note}"
