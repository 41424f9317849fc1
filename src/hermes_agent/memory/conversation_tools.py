"""session_search: what was said before, as a tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec

from hermes_agent.core.effects import Effect
from hermes_agent.core.errors import BadArguments, StoreError, ToolError
from hermes_agent.core.messages import Origin, Text
from hermes_agent.core.tool import Answer, CallContext, tool
from hermes_agent.host.late import Needs, late
from hermes_agent.store.database import Store

if TYPE_CHECKING:
    from hermes_agent.memory.conversations import Conversations

CONVERSATIONS = "hermes_agent.memory.conversations:Conversations"


class ConversationTools:
    """The conversations as a tool; `store` gives the log when the first call comes."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    @tool(effect=Effect.READS)
    async def session_search(
        self,
        context: CallContext,
        query: str = "",
        session: str = "",
        around: Annotated[int, msgspec.Meta(ge=0)] = 0,
        limit: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5,
    ) -> Answer:
        """Recall past conversations and what left this one: find by query, read a session, or list recent ones.

        Args:
            query: words, "phrases", -without, dates
            around: message number to read from
        """
        if query and session:
            raise BadArguments("Give query to find, or session to read, not both.")
        past = late(CONVERSATIONS)(self._store(), context.session, context.speaker)
        try:
            text = await _answer(past, query, session, around, limit)
        except StoreError as error:
            raise ToolError(str(error)) from error
        return Answer(parts=(Text(text=text, origin=Origin.TOOL),))


async def _answer(past: Conversations, query: str, session: str, around: int, limit: int) -> str:
    if session:
        return await past.read(session, around)
    return await past.discover(query, limit) if query else await past.browse(limit)


def recall_tools(needs: Needs) -> ConversationTools:
    """The toolset `recall`."""
    return ConversationTools(needs.later(Store))
