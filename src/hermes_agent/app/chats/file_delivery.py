"""Tool `send_file`, which sends a file to the people of a chat, and its delivery through the outbox."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from hermes_agent.core.chat import Attachment, Content, Conversation, Letter
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import ToolError
from hermes_agent.core.messages import Origin
from hermes_agent.core.tool import CallContext, tool
from hermes_agent.host.late import Needs
from hermes_agent.store.database import Store
from hermes_agent.tools.files.guard import Guard

HandOver: TypeAlias = Callable[[str, str, Attachment], Awaitable[None]]
"""Has the session of that id given a file, once under that key; durable when it returns."""
UNKNOWN = "application/octet-stream"


class SendTools:
    """The toolset `sending` (tool `send_file`). It sends files that `guard` allows the agent to read."""

    def __init__(self, *, guard: Guard, hand_over: HandOver) -> None:
        self._guard = guard
        self._hand_over = hand_over

    @tool(effect=Effect.KEYED, needs=(Capability.FS_READ, Capability.MESSAGE), paths=("path",), origin=Origin.RUNTIME)
    async def send_file(self, path: str, context: CallContext, caption: str = "") -> str:
        """Send a file into this chat, whose people see no other files of yours: a picture, sound, film or document.

        Args:
            caption: words at the file
        """
        real = await asyncio.to_thread(self._guard.locate, path, context.workspace)
        try:
            size = (await asyncio.to_thread(real.stat)).st_size
        except OSError as error:
            raise ToolError(f"{path} cannot be sent: {error.strerror}.") from error
        if not real.is_file() or not size:
            raise ToolError(f"{path} cannot be sent: {'it is empty' if real.is_file() else 'it is not a file'}.")
        kind = mimetypes.guess_type(real.name)[0] or UNKNOWN
        file = Attachment(path=str(real), name=real.name, media_type=kind, caption=caption)
        await self._hand_over(context.session, f"{context.key}:file", file)
        return f"{path} ({size:,} bytes) is on its way into the chat; leave it where it is."


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDelivery:
    """Puts files into the outbox for a session's chat, each key once: a call repeated after a crash adds nothing."""

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
    """Factory of the toolset `sending`."""
    return SendTools(guard=needs.get(Guard), hand_over=FileDelivery(store=needs.later(Store)))
