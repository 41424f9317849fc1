"""Runs the passes of a review: each tool call of the model meets whitelist and gates, then a live change or a
proposal."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import field, replace
from typing import Literal

import msgspec

from hermes_agent.agent.act import failure
from hermes_agent.agent.ask import with_own_ids
from hermes_agent.core.clock import Clock, Ids
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import (
    BadArguments,
    EmptyReply,
    HermesError,
    Protected,
    Refused,
    StoreError,
    ToolError,
)
from hermes_agent.core.messages import (
    Message,
    Model,
    ModelRequest,
    Origin,
    Prefix,
    Reply,
    Role,
    ToolCall,
    ToolResult,
    Trust,
    trust_of,
)
from hermes_agent.core.tool import Answer, Tool, unexpected
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
from hermes_agent.learning.proposing import DICTATED, MEANT, LessonGate, Proposing, end_equal
from hermes_agent.learning.sources import LIBRARY, Sources
from hermes_agent.memory.settings import is_shared
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
    """Outcome of a review so far: live versions, proposals, the number of refused calls, and what the model said in
    the pass that may write live."""

    kept: list[Version] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    refused: int = 0
    said: list[str] = field(default_factory=list)
    keys: Counter[str] = field(default_factory=Counter)
    returned: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """Handles the tool calls of one review pass. `offered` are the tools in the session's prompt, of which those
    for skills and memory work. `asks`: nothing goes live without the owner's approval; `spent` is the cost of the
    review since the last call; `read` are the classes of what the pass looked up."""

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
    read: list[Trust] = field(default_factory=list)

    @property
    def _gate(self) -> LessonGate:
        """The gate of all learning; the clean pass sees nothing that is not, unless it looked it up."""
        saw = self.through == "raw" or any(self.read)
        return LessonGate(trust=max((self.sources.trust, *self.read)), share=DICTATED if saw else MEANT)

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
            try:
                answer = await tool.run(bare.arguments, self._context(self._key(call)))
            except ToolError as error:
                self.read.extend([error.quoted.origin.trust] if error.quoted else ())
                raise
            self.read.extend(map(trust_of, answer.parts))
            return answer
        return await self._write(draft)

    async def _write(self, draft: Draft) -> Answer:
        base = await self.hands.content(draft)
        draft = replace(draft, known=(base or b"").decode("utf-8", "replace"))
        await self.proposing.check(draft)
        gates = (*self.gates, self._gate)
        verdicts = [await gate.judge(draft, self.sources) for gate in gates]
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
        """Why nothing of this person, or of any review, goes live; None where it does."""
        if draft.kind is Kind.SKILL and not self.hands.is_owner:
            return Waits(why=Why.MEMBER, taint="")
        return Waits(why=Why.ASKED, taint="") if self.asks else None

    async def _change(self, draft: Draft, checked: Checked, base: bytes | None) -> Answer:
        job = self.claim.job
        note = f"learned in {self.record.workspace}" if self.sources.trust else None
        evidence = self._evidence(draft, checked)
        backing = Backing(first=job.first, last=job.last, evidence=evidence, cost=self.spent(), note=note)
        await self.store.learning.check(self.claim)
        tool: Tool = self.hands.tools(backing)[draft.call.name]
        try:
            answer = await tool.run(draft.call.arguments, self._context(draft.key))
        except Protected as error:
            return await self._put_aside(draft, Waits(why=Why.PROTECTED, taint=str(error)), checked, base)
        version = await self.store.versions.by_key(draft.key)
        if version is not None:
            await end_equal(self.proposing, draft, version)
        if version is not None and version.id not in {each.id for each in self.tally.kept}:
            self.tally.kept.append(version)
        return answer

    async def _put_aside(self, draft: Draft, waits: Waits, checked: Checked, base: bytes | None) -> Answer:
        await self.store.learning.check(self.claim)
        number = await self.proposing.put(draft, waits, self.claim.job, self._evidence(draft, checked), base)
        if number not in self.tally.waiting:
            self.tally.waiting.append(number)
        return said(f"Put aside as p{number}: it is not live, and waits. Do not write it again.", Origin.RUNTIME)

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


PURPOSE = "review"


Act = Callable[[ToolCall, str], Awaitable[Answer]]
"""Does a call of a pass, whose reply also held these words. Raises `HermesError` for a refusal."""


@dataclass(slots=True, kw_only=True)
class Spending:
    """Cost of a review so far, and how much of it is not yet assigned to a write (US dollars)."""

    open: float = 0.0
    known: bool = True

    def add(self, cost: float | None) -> None:
        """Add the cost of a reply."""
        self.known = self.known and cost is not None
        self.open += cost or 0.0

    def take(self) -> float | None:
        """The cost to assign to the next change; None where a price is unknown."""
        found, self.open = self.open, 0.0
        return found if self.known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass of a review: lets the model work on `messages`, which end with the question. `deadline` is a moment
    of the clock; `said` collects the text of all replies."""

    model: Model
    prefix: Prefix
    messages: Sequence[Message]
    store: Store
    claim: Claim
    act: Act
    clock: Clock
    ids: Ids
    turns: int
    deadline: float
    effort: str
    spending: Spending = field(default_factory=Spending)
    seen: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)

    async def run(self) -> str:
        """Ask until no more tools are called, at most `turns` times; the reviewer's last words.

        Raises `ProviderError`, `LimitReached`, `LostLease`; what was written until then stays.
        """
        messages, words = list(self.messages), ""
        for turn in range(1, self.turns + 1):
            await self.store.learning.check(self.claim)
            reply = await self._ask(messages, turn)
            messages.append(reply.message)
            words = reply.message.text.strip() or words
            self.said.append(reply.message.text)
            self.seen.update(call.id for call in reply.message.tool_calls)
            if not reply.message.tool_calls:
                break
            messages += [await self._answer(call, reply.message.text) for call in reply.message.tool_calls]
        return words

    async def _answer(self, call: ToolCall, words: str) -> Message:
        """The result of a call; a refusal and a failure are results too."""
        # Boundary: one tool call.
        try:
            answer = await self.act(call, words)
        except StoreError:
            raise
        except HermesError as error:
            answer = failure(error, Origin.RUNTIME)
        except Exception as error:
            log.exception("job %s: %s failed", self.claim.job.id, call.name)
            answer = failure(unexpected(error), Origin.RUNTIME)
        result = ToolResult(call_id=call.id, name=call.name, parts=answer.parts, is_error=answer.is_error)
        return Message(role=Role.TOOL, parts=(result,))

    async def _ask(self, messages: list[Message], turn: int) -> Reply:
        job = self.claim.job
        request = ModelRequest(
            call_id=self.ids.short(),
            session=job.session,
            run=job.id,
            turn=turn,
            purpose=PURPOSE,
            prefix=self.prefix,
            messages=messages,
            deadline=self.deadline,
            effort=self.effort,
            shrink=True,
        )
        async with aclosing(self.model.ask(request)) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    self.spending.add(piece.cost)
                    return replace(piece, message=with_own_ids(piece.message, self.seen, request.call_id))
        raise EmptyReply("The model's stream ended without a reply.", model=self.model.name)
