"""One single-turn question to an auxiliary model: the `Small` record and `asked`, which returns the reply's text."""

from __future__ import annotations

from contextlib import aclosing

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import EmptyReply
from hermes_agent.core.messages import Message, Model, ModelRequest, Reply
from hermes_agent.core.section import Section, freeze

LONGEST = 2_000
"""Tokens of a short answer, with room for a model that thinks before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """A single question for an auxiliary model, outside any conversation. `whose`: session, run and turn to bill."""

    call_id: str
    purpose: str
    system: str
    message: Message
    whose: tuple[str, str, int]
    deadline: float | None = None


async def asked(model: Model, small: Small) -> str:
    """Ask the model and return its reply text. Raises `ProviderError` or `LimitReached`."""
    session, run, turn = small.whose
    request = ModelRequest(
        call_id=small.call_id,
        session=session,
        run=run,
        turn=turn,
        purpose=small.purpose,
        prefix=freeze((Section(name=small.purpose, text=small.system),), ()),
        messages=(small.message,),
        deadline=small.deadline,
        max_output=LONGEST,
        effort="low",
    )
    async with aclosing(model.ask(request)) as stream:
        async for piece in stream:
            if isinstance(piece, Reply):
                return piece.message.text.strip()
    raise EmptyReply("The model's stream ended without a reply.", model=model.name)
