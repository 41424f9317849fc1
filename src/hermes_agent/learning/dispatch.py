"""What becomes of each call of a review: the whitelist, the gates, and then the change, live or put aside."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Literal

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import BadArguments, Protected, Refused, ToolError
from hermes_agent.core.messages import ToolCall
from hermes_agent.core.tool import Answer, Tool
from hermes_agent.learning.drafts import (
    Checked,
    Draft,
    Evidence,
    Gate,
    OtherWriters,
    Passed,
    Returned,
    Waits,
    Writers,
    draft_of,
)
from hermes_agent.learning.proposing import Proposing
from hermes_agent.learning.sources import LIBRARY, Side, Sources
from hermes_agent.memory.whose import is_shared
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Claim
from hermes_agent.store.learning.proposals import Why
from hermes_agent.store.sessions import Session
from hermes_agent.store.versions import Backing, Kind, Version
from hermes_agent.tools.schema import said

log = logging.getLogger(__name__)

Through = Literal["clean", "raw"]


@dataclass(slots=True)
class Tally:
    """What came of a review so far: versions that are live, proposals, how many calls were refused, and the words of
    the pass that may write live."""

    kept: list[Version] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    refused: int = 0
    said: list[str] = field(default_factory=list)
    keys: Counter[str] = field(default_factory=Counter)
    returned: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """The calls of one pass. `offered` are the tools of the prompt: what is not among them is not there. `asks` says
    that nothing goes live without the owner's yes; `spent` is what the review cost since it was last asked."""

    claim: Claim
    record: Session
    through: Through
    offered: frozenset[str]
    sources: Sources
    gates: Sequence[Gate]
    hands: Writers
    proposing: Proposing
    store: Store
    tally: Tally
    spent: Callable[[], float | None]
    asks: bool = False

    @property
    def allowed(self) -> tuple[str, ...]:
        """The tools that work in a review."""
        return tuple(sorted(LIBRARY & self.offered))

    async def act(self, call: ToolCall, words: str) -> Answer:
        """See `Act`."""
        if call.name not in self.allowed:
            self.tally.refused += 1
            log.warning("review %s: refused a call of %s", self.claim.job.id, call.name[:80])
            raise Refused(f"A review has no tool `{call.name[:80]}`.", hint=f"There are: {', '.join(self.allowed)}.")
        if call.broken:
            raise BadArguments(f"The arguments are not a JSON object: {call.broken[:200]}")
        draft = draft_of(call, words, self._key(call))
        bare = call if draft is None else draft.call
        tool = self.hands.tools(Backing())[call.name]
        tool.facts(bare.arguments, self.record.workspace)
        if draft is None:
            return await tool.run(bare.arguments, self._context(self._key(call)))
        return await self._write(draft)

    async def _write(self, draft: Draft) -> Answer:
        base = await self.hands.content(draft)
        draft = replace(draft, known=(base or b"").decode("utf-8", "replace"))
        verdicts = [await gate.judge(draft, self.sources) for gate in self.gates]
        if reasons := [each.reason for each in verdicts if isinstance(each, Returned)]:
            return self._send_back(draft, " ".join(reasons))
        checked = next(
            (each.checked for each in verdicts if isinstance(each, Passed) and each.checked.found), Checked()
        )
        if waits := next((each for each in verdicts if isinstance(each, Waits)), None):
            return await self._put_aside(draft, waits, checked, base)
        why = self._waits(draft)
        if why is not None:
            return await self._put_aside(draft, why, checked, base)
        return await self._change(draft, checked, base)

    def _waits(self, draft: Draft) -> Waits | None:
        """Why nothing of this pass, of this person, or of any review goes live; None where it does."""
        if self.through == "raw":
            read = sorted({piece.source for piece in self.sources.pieces if piece.side is Side.OUTSIDE})
            return Waits(why=Why.OUTSIDE, taint=f"written in sight of {', '.join(read)[:200]}")
        if draft.kind is Kind.SKILL and not self.hands.is_owner:
            return Waits(why=Why.MEMBER, taint="")
        return Waits(why=Why.ASKED, taint="") if self.asks else None

    async def _change(self, draft: Draft, checked: Checked, base: bytes | None) -> Answer:
        job = self.claim.job
        backing = Backing(first=job.first, last=job.last, evidence=self._evidence(draft, checked), cost=self.spent())
        await self.store.learning.check(self.claim)
        tool: Tool = self.hands.tools(backing)[draft.call.name]
        try:
            answer = await tool.run(draft.call.arguments, self._context(draft.key))
        except Protected as error:
            return await self._put_aside(draft, Waits(why=Why.PROTECTED, taint=str(error)), checked, base)
        version = await self.store.versions.by_key(draft.key)
        if version is not None and version.id not in {each.id for each in self.tally.kept}:
            self.tally.kept.append(version)
        return answer

    async def _put_aside(self, draft: Draft, waits: Waits, checked: Checked, base: bytes | None) -> Answer:
        await self.store.learning.check(self.claim)
        number = await self.proposing.put(draft, waits, self.claim.job, self._evidence(draft, checked), base)
        if number not in self.tally.waiting:
            self.tally.waiting.append(number)
        return said(f"Put aside as p{number}: it is not live, and waits. Do not write it again.")

    def _send_back(self, draft: Draft, reason: str) -> Answer:
        mark = (draft.kind.value, draft.item)
        again = mark in self.tally.returned
        self.tally.returned.add(mark)
        if again:
            self.tally.refused += 1
            raise Refused(f"Refused, it came back once already. {reason}", hint="Leave it; go on with something else.")
        raise ToolError(f"Not written. {reason}", hint="Once more is allowed.")

    def _evidence(self, draft: Draft, checked: Checked) -> str:
        messages = checked.numbers(draft.cited)
        return Evidence(
            review=self.claim.job.id, through=self.through, sort=draft.teaches.value, messages=messages
        ).text

    def _context(self, key: str) -> OtherWriters:
        speaker = "" if is_shared(self.record.conversation) else self.record.principal
        return OtherWriters(key=key, session=self.record.id, workspace=self.record.workspace, speaker=speaker)

    def _key(self, call: ToolCall) -> str:
        """The same for the same call of the same review, also when it is begun again after a crash."""
        body = hashlib.sha256(msgspec.json.encode([call.name, dict(call.arguments)], order="sorted")).hexdigest()[:16]
        self.tally.keys[body] += 1
        return f"{self.claim.job.id}.{self.through}.{body}.{self.tally.keys[body]}"
