"""The review of a conversation: which passes it takes, in which order, and what each is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from hermes_agent.agent.session import Session, fold
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, LimitReached, ProviderError
from hermes_agent.core.events import Entry
from hermes_agent.core.ids import Ids
from hermes_agent.core.messages import Message
from hermes_agent.core.model import Model, Prefix
from hermes_agent.learning.account import used_by
from hermes_agent.learning.dispatch import Dispatch, Tally, Through
from hermes_agent.learning.drafts import EvidenceGate, Gate, OriginGate
from hermes_agent.learning.evidence import evidence_of
from hermes_agent.learning.jobs import Unfinished
from hermes_agent.learning.passes import Pass, Spending
from hermes_agent.learning.prompt import OVERLAP, RAW, WITHHELD, overlaps_in, question
from hermes_agent.learning.proposing import Proposing
from hermes_agent.learning.releasing import Releasing
from hermes_agent.learning.settings import LearningSettings
from hermes_agent.learning.sources import Sources, has_outside, pieces_of
from hermes_agent.learning.stubs import stubbed
from hermes_agent.learning.triggers import What
from hermes_agent.learning.typed import TypedGate
from hermes_agent.learning.writers import Writers
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Account, Claim
from hermes_agent.store.sessions import Session as SessionRecord
from hermes_agent.store.versions import Author

RECENT = 200
"""Versions that are looked through for what an interrupted review wrote."""
LONGEST_NOTE = 300
"""Characters of the reviewer's last words that are kept where nothing else is to be told."""

ModelFor = Callable[[SessionRecord], Awaitable[Model]]
Gates = Callable[[frozenset[str]], Sequence[Gate]]
"""The gates of a review, by the names of the tools that its prompt offers."""


def usual_gates(tools: frozenset[str]) -> Sequence[Gate]:
    """Evidence, then origin."""
    return (EvidenceGate(tools=tools), OriginGate())


class NothingToReview(HermesError):
    """The conversation, or what its prompt began with, is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """Reviews conversations. `model_for` gives the model that is asked, `effort` its level of reasoning (both the
    conversation's own where the settings say nothing else, so that the provider's cache is shared)."""

    store: Store
    clock: Clock
    ids: Ids
    settings: LearningSettings
    model_for: ModelFor
    hands_of: Callable[[SessionRecord], Writers]
    proposing: Proposing
    effort: str = "medium"
    gates: Gates = usual_gates

    async def __call__(self, claim: Claim) -> Account:
        """Review; what came of it. Raises `HermesError` where it could not be done."""
        seen = await self._seen(claim)
        tally, spending = Tally(), Spending()
        deadline = self.clock.monotonic() + self.settings.max_seconds
        before = await self._before(claim)
        words = ""
        try:
            for through, messages, note in passes(seen, raw=self.settings.raw_pass):
                dispatch = self._dispatch(claim, seen, through, tally, spending)
                subjects = map(What, sorted(claim.job.subjects))
                until = self._typed(seen.record).last
                asked = question(subjects, dispatch.allowed, seen.entries, note=note, before=before, until=until)
                one = Pass(
                    model=seen.model,
                    prefix=seen.prefix,
                    messages=[*messages, asked],
                    dispatch=dispatch,
                    spending=spending,
                    clock=self.clock,
                    ids=self.ids,
                    turns=self.settings.max_turns,
                    deadline=deadline,
                    effort=self.effort,
                    seen=set(seen.calls),
                    said=tally.said if through == "clean" else [],
                )
                words = await one.run() or words
        except (ProviderError, LimitReached) as error:
            raise Unfinished(str(error), await self._account(claim, seen.record, tally, str(error))) from error
        releasing = Releasing(store=self.store, clock=self.clock, proposing=self.proposing)
        tally.kept += await releasing.after(seen.record, seen.sources, live=self.settings.mode == "auto")
        return await self._account(claim, seen.record, tally, words)

    async def _account(self, claim: Claim, record: SessionRecord, tally: Tally, words: str) -> Account:
        said, overlaps = "\n".join(tally.said), tuple[tuple[str, ...], ...]()
        if OVERLAP.search(said):
            overlaps = tuple(dict.fromkeys(overlaps_in(said, await self.hands_of(record).skill_names())))
        note = summary(tally, overlaps) or words[:LONGEST_NOTE]
        kept, waiting = len(tally.kept), len(tally.waiting)
        account = Account(kept=kept, waiting=waiting, refused=tally.refused, note=note, overlaps=overlaps)
        return await used_by(self.store, claim.job.session, claim.job.id, account)

    async def _seen(self, claim: Claim) -> Seen:
        job = claim.job
        record = await self.store.sessions.get(job.session)
        if record is None:
            raise NothingToReview(f"The conversation {job.session} is gone.")
        log = await self.store.history.entries(job.session)
        entries = [entry for entry in log if entry.number <= job.last]
        view = fold(Session(id=record.id, workspace=record.workspace), entries)
        frozen = await self.store.prefixes.get(view.prefix_hash)
        if frozen is None or not view.messages:
            raise NothingToReview(f"The conversation {job.session} has no prompt.")
        sources = await asyncio.to_thread(Sources.of, pieces_of(entries), record.workspace)
        return Seen(
            record=record,
            entries=entries,
            messages=view.messages,
            prefix=frozen.prefix,
            sources=sources,
            calls=frozenset(view.calls),
            model=await self.model_for(record),
        )

    def _dispatch(self, claim: Claim, seen: Seen, through: Through, tally: Tally, spending: Spending) -> Dispatch:
        offered = frozenset(tool.name for tool in seen.prefix.tools)
        return Dispatch(
            claim=claim,
            record=seen.record,
            through=through,
            offered=offered,
            sources=seen.sources,
            gates=(*self.gates(offered), self._typed(seen.record)),
            hands=self.hands_of(seen.record),
            proposing=self.proposing,
            store=self.store,
            tally=tally,
            spent=spending.take,
            asks=self.settings.mode == "propose",
        )

    def _typed(self, record: SessionRecord) -> TypedGate:
        return TypedGate(
            store=self.store,
            clock=self.clock,
            principal=record.principal,
            days=self.settings.constraint_days,
            most=self.settings.max_constraints,
        )

    async def _before(self, claim: Claim) -> list[str]:
        """What an earlier attempt of this review wrote."""
        if claim.job.attempts <= 1:
            return []
        recent = await self.store.versions.list(limit=RECENT)
        return [
            f"{version.change.action} of {version.change.item}"
            for version in recent
            if version.change.author is Author.BACKGROUND
            and evidence_of(version.change.evidence).review == claim.job.id
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A conversation as a review sees it, up to the reply that it follows."""

    record: SessionRecord
    entries: Sequence[Entry]
    messages: Sequence[Message]
    prefix: Prefix
    sources: Sources
    model: Model
    calls: frozenset[str] = field(default_factory=frozenset)


def passes(seen: Seen, *, raw: bool) -> list[tuple[Through, Sequence[Message], str]]:
    """The passes of a review with what each is shown.

    A conversation without anything from outside takes one, over its own messages. Any other takes two: first the one
    that sees everything and writes nothing live, because its beginning is what the provider still has in its cache;
    then the one that sees stubs.
    """
    if not has_outside(seen.messages) and not seen.sources.any_outside:
        return [("clean", seen.messages, "")]
    clean: tuple[Through, Sequence[Message], str] = ("clean", stubbed(seen.messages, seen.sources), WITHHELD)
    return [("raw", seen.messages, RAW), clean] if raw else [clean]


def summary(tally: Tally, overlaps: Sequence[Sequence[str]] = ()) -> str:
    """The one line that the person reads; empty where nothing came of it."""
    parts = []
    for version in tally.kept:
        name = version.change.item.removesuffix("/SKILL.md")
        parts.append(f"{version.change.kind.value} `{name}`: {version.change.action} (undo: /learn undo {version.id})")
    if tally.waiting:
        names = ", ".join(f"p{number}" for number in tally.waiting[:5])
        parts.append(f"{len(tally.waiting)} proposed ({names}: /learn show {names.split(',')[0]})")
    learned = f"Learned: {'; '.join(parts)}." if parts else ""
    pairs = ", ".join(" + ".join(names) for names in overlaps)
    return " ".join(filter(None, [learned, f"Overlapping, for the curator: {pairs}." if pairs else ""]))
