"""One pass of a review: the model is asked, its calls are dispatched, until it has nothing more to say."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import field, replace

from hermes_agent.agent.act import failure
from hermes_agent.agent.ask import with_own_ids
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import EmptyReply, HermesError, StoreError, unexpected
from hermes_agent.core.ids import Ids
from hermes_agent.core.messages import Message, Role, ToolCall, ToolResult
from hermes_agent.core.model import Model, ModelRequest, Prefix, Reply
from hermes_agent.core.tool import Answer
from hermes_agent.store.database import Store
from hermes_agent.store.learning.jobs import Claim

log = logging.getLogger(__name__)

PURPOSE = "review"


Act = Callable[[ToolCall, str], Awaitable[Answer]]
"""Does a call of a pass, whose reply also held these words. Raises `HermesError` for a refusal."""


@dataclass(slots=True, kw_only=True)
class Spending:
    """What a review cost so far, and how much of that nothing was written for yet (US dollars)."""

    open: float = 0.0
    known: bool = True

    def add(self, cost: float | None) -> None:
        """A reply was paid."""
        self.known = self.known and cost is not None
        self.open += cost or 0.0

    def take(self) -> float | None:
        """What led to the change that is made now; None where a price is unknown."""
        found, self.open = self.open, 0.0
        return found if self.known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A pass over `messages`, which end with the question. `deadline` is a moment of the clock; `said` collects the
    words of all replies."""

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
        """Ask until nothing more is called for, at most `turns` times; the reviewer's last words.

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
            answer = failure(error)
        except Exception as error:
            log.exception("job %s: %s failed", self.claim.job.id, call.name)
            answer = failure(unexpected(error))
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
