"""The gate of all learning: by the worst class in view, an item goes live, or waits for the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.edits import replace as replaced
from hermes_agent.core.errors import ToolError
from hermes_agent.core.events import Entry, PrefixFrozen
from hermes_agent.core.messages import Origin, Trust
from hermes_agent.learning.drafts import Draft, Passed, Verdict, Waits
from hermes_agent.learning.grounding import Ground
from hermes_agent.learning.sources import NOT, WORDS, Piece, Sources, pieces_of, prompt_in
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
