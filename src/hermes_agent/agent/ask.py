"""One model call: builds the request from the view, shows deltas as they arrive, commits the reply."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from hermes_agent.agent.agent import Agent
from hermes_agent.agent.journal import Journal
from hermes_agent.agent.session import Session
from hermes_agent.core.errors import ContextTooLong, EmptyReply
from hermes_agent.core.events import Notice, Replied, TurnStarted
from hermes_agent.core.messages import Message, ModelRequest, Prefix, Remark, Reply, Retrying, TextDelta, ToolCall


async def ask(agent: Agent, session: Session, journal: Journal, *, use_tools: bool = True) -> Reply:
    """Get the model's reply of one turn; it is in the journal when this returns. Compacts the view first where
    needed. Raises `ProviderError`.

    Words streamed before an interruption stay in `session.draft` for the run's end.
    """
    prefix = await agent.prompt.prefix(session, journal)
    if agent.compactor is None:
        return await _asked(agent, session, journal, prefix, use_tools=use_tools, shrink=True)
    shrink = False
    await agent.compactor.fit(session, journal, agent.model.window)
    while True:
        try:
            return await _asked(agent, session, journal, prefix, use_tools=use_tools, shrink=shrink)
        except ContextTooLong:
            if await agent.compactor.refused(session, journal):
                continue
            if shrink:
                raise
            shrink = True


async def _asked(
    agent: Agent, session: Session, journal: Journal, prefix: Prefix, *, use_tools: bool, shrink: bool
) -> Reply:
    request = ModelRequest(
        call_id=agent.ids.short(),
        session=session.id,
        run=session.run,
        turn=session.turn + 1,
        purpose="chat",
        prefix=prefix,
        messages=session.messages,
        deadline=agent.budget.limits.deadline,
        effort=agent.effort,
        use_tools=use_tools,
        shrink=shrink,
    )
    journal.live(TurnStarted(turn=request.turn, call_id=request.call_id, messages=len(session.messages)))
    began = agent.clock.monotonic()
    reply = await _listen(agent, session, journal, request)
    message = with_own_ids(reply.message, session.calls, request.call_id)
    session.draft.clear()
    journal.post(
        Replied(
            turn=request.turn,
            call_id=request.call_id,
            message=message,
            stop=reply.stop,
            usage=reply.usage,
            provider=reply.provider,
            model=reply.model,
            cost=reply.cost,
            seconds=agent.clock.monotonic() - began,
        )
    )
    return replace(reply, message=message)


def with_own_ids(message: Message, seen: set[str], suffix: str) -> Message:
    """The message with new ids for calls whose id the session used before: even undone calls have results, answers
    and processes under theirs."""
    if seen.isdisjoint(call.id for call in message.tool_calls):
        return message
    parts = tuple(
        replace(part, id=f"{part.id}_{suffix}") if isinstance(part, ToolCall) and part.id in seen else part
        for part in message.parts
    )
    return replace(message, parts=parts)


async def _listen(agent: Agent, session: Session, journal: Journal, request: ModelRequest) -> Reply:
    session.draft.clear()
    async with aclosing(agent.model.ask(request)) as stream:
        async for piece in stream:
            match piece:
                case Reply():
                    return piece
                case Remark(text=text, level=level):
                    journal.post(Notice(text=text, level=level))
                    continue
                case TextDelta(text=text):
                    session.draft.append(text)
                case Retrying():
                    session.draft.clear()
                case _:
                    pass
            journal.live(piece)
    raise EmptyReply("The model's stream ended without a reply.", model=agent.model.name)
