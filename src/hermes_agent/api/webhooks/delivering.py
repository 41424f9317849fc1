"""Where the reply to a webhook goes: into the outbox once its run is over, also when that was in another process."""

from __future__ import annotations

import logging
from contextlib import aclosing
from functools import partial

from hermes_agent.app.chats.home_chats import place_named
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.chats import is_posted, post_once, retried
from hermes_agent.app.operations.sessions import list_sessions
from hermes_agent.app.system import System
from hermes_agent.core.errors import UnknownSession
from hermes_agent.core.events import RunEnded
from hermes_agent.core.inbound import Conversation, Principal
from hermes_agent.core.outbound import Content, Letter
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

RECENT = 3600.0
"""Seconds for which replies that nobody put into the outbox are looked for after a start."""
MOST = 200


class Deliveries:
    """Replies on their way to where their routes say; the session's own conversation holds the target."""

    def __init__(self, runtime: System) -> None:
        self._runtime = runtime

    def start(self, session: str, target: str) -> None:
        """Deliver the session's reply once it is there."""
        work = partial(self._deliver, session, target)
        spawn(retried(work, self._runtime.clock), name=f"delivery of {session}")

    async def resume(self, principal: Principal) -> None:
        """Deliver what a process before this one left."""
        now = self._runtime.clock.now()
        for record in await list_sessions(Access(system=self._runtime, who=principal), MOST):
            target = Conversation.parse(record.conversation).thread
            if target and record.created > now - RECENT and not await is_posted(self._runtime, key_of(record.id)):
                self.start(record.id, target)

    async def _deliver(self, session: str, target: str) -> None:
        try:
            text = await self._reply(session)
        except UnknownSession:
            return  # It was deleted.
        to = place_named(target, self._runtime.settings.gateway.channels)
        if to is None:
            log.warning("the reply of %s goes nowhere: `%s` names no chat (any more)", session, target)
        elif text.strip():
            letter = Letter(key=key_of(session), to=to, content=Content(text=text), session=session)
            await post_once(self._runtime, letter)

    async def _reply(self, session: str) -> str:
        async with aclosing(self._runtime.hermes.watch(session, live=False)) as events:
            async for seen in events:
                if isinstance(seen.event, RunEnded):
                    return seen.event.text
        return ""


def key_of(session: str) -> str:
    """The key of the slot in which a session's reply is delivered."""
    return f"webhook:{session}"
