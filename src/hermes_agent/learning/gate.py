"""The gate of all learning: by the worst class in view, an item goes live, or waits for the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.events import Entry, PrefixFrozen
from hermes_agent.core.messages import Origin, Trust
from hermes_agent.learning.drafts import Draft, Passed, Verdict, Waits
from hermes_agent.learning.sources import Piece, Sources, pieces_of, prompt_in
from hermes_agent.learning.wording import would
from hermes_agent.scanner.finding import Severity
from hermes_agent.scanner.scan import alarms
from hermes_agent.store.database import Store
from hermes_agent.store.learning.proposals import Why

CONTEXT = "# Project context"


async def sources_of(store: Store, entries: Sequence[Entry], own: Origin) -> Sources:
    """The texts of a conversation, and of its prompt what the workspace's file says there."""
    hashes = [entry.event.hash for entry in entries if isinstance(entry.event, PrefixFrozen)]
    frozen = await store.prefixes.get(hashes[-1]) if hashes else None
    said = frozen.prefix.system.partition(CONTEXT)[2] if frozen else ""
    first = [Piece(number=0, trust=Trust.WORKSPACE, text=said, source="the project's file")] if said else []
    return await asyncio.to_thread(lambda: Sources.of([*first, *pieces_of(entries, own)], prompt_in(entries)))


DICTATED, MEANT = 1.0, 0.6
"""Of the words of a sentence, so many a person typed: for a model that saw anything else, and for one that did not."""
NEAR = 2
"""Lines before what is new that it is read together with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonGate:
    """Decides on every write to notes and skills, of the foreground, the review and the curator alike. `trust` is the
    worst class of the conversation, `share` how much of each sentence a person must have typed to pass for theirs.

    - What the person typed is theirs, whatever was in view.
    - Else with the outside in view it waits.
    - What copies the workspace, names a host known only from there, or alarms the scanner waits.
    - So does whatever would have the agent send, pay, fetch and run, and the like (see `wording.would`).
    """

    trust: Trust = Trust.CLEAN
    share: float = DICTATED

    async def judge(self, draft: Draft, sources: Sources) -> Verdict:
        """Pass, or make the draft wait."""
        known = [line.strip() for line in draft.known.splitlines()]
        new = "\n".join(line for line in draft.words.splitlines() if line.strip() not in known)
        if new.strip() and sources.typed(new, self.share):
            return Passed()
        before = " ".join(known[-NEAR:])
        return self._of_outside(sources) or _of_words(new, before, sources) or Passed()

    def _of_outside(self, sources: Sources) -> Waits | None:
        if self.trust is Trust.OUTSIDE:
            read = sorted({piece.source for piece in sources.pieces if piece.trust is Trust.OUTSIDE})
            return Waits(why=Why.OUTSIDE, taint=f"written in sight of {', '.join(read)[:200] or 'what is outside'}")
        return None


def _of_words(new: str, before: str, sources: Sources) -> Waits | None:
    if copied := sources.copied(new):
        span = max(copied, key=lambda each: each.end - each.start)
        words = " ".join(new[span.start : span.end].split())
        return Waits(why=Why.OUTSIDE, taint=f"copied from {copied[span]}: {words[:120]}")
    if hosts := sources.strange_hosts(new):
        return Waits(why=Why.OUTSIDE, taint=f"no person named: {', '.join(hosts[:5])}")
    if grave := alarms(new, Severity.BLOCK):
        return Waits(why=Why.OUTSIDE, taint=f"the scanner is alarmed: {grave[0].what}")
    if act := would(new) or (would(f"{before} {new}") if not would(before) else ""):  # It may come in parts.
        return Waits(why=Why.ASKED, taint=f"it would have the agent {act}")
    return None
