"""A file that a run has for the people of its chat, as a slot of the outbox."""

from __future__ import annotations

from collections.abc import Callable

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import ToolError
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Attachment, Content, Letter
from hermes_agent.host.late import Needs
from hermes_agent.store.database import Store
from hermes_agent.tools.files.guard import guard_of
from hermes_agent.tools.sending import SendTools


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDelivery:
    """Hands files over; a call that is made again after a crash hands nothing over twice."""

    store: Callable[[], Store]

    async def __call__(self, session: str, key: str, file: Attachment) -> None:
        store = self.store()
        record = await store.sessions.get(session)
        if record is None:
            raise ToolError("This conversation is in no chat.")
        if await store.outbox.find(key) is not None:
            return
        to, content = Conversation.parse(record.conversation), Content(text="", files=(file,))
        letter = Letter(key=key, to=to, content=content, session=session)
        await store.write(lambda tx: store.outbox.put(tx, letter))


def send_tools(needs: Needs) -> SendTools:
    """The toolset `sending`."""
    return SendTools(guard=guard_of(needs), hand_over=FileDelivery(store=needs.later(Store)))
