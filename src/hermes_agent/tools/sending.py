"""send_file: a file into the chat that a conversation is in."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from hermes_agent.core.effects import Capability, Effect
from hermes_agent.core.errors import ToolError
from hermes_agent.core.outbound import Attachment
from hermes_agent.core.tool import CallContext, tool
from hermes_agent.tools.files.guard import Guard

HandOver: TypeAlias = Callable[[str, str, Attachment], Awaitable[None]]
"""Has the session of that id given a file, once under that key; durable when it returns."""
UNKNOWN = "application/octet-stream"


class SendTools:
    """Sends files that `guard` lets be read."""

    def __init__(self, *, guard: Guard, hand_over: HandOver) -> None:
        self._guard = guard
        self._hand_over = hand_over

    @tool(effect=Effect.KEYED, needs=(Capability.FS_READ, Capability.MESSAGE), paths=("path",))
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
        return f"{real.name} ({size:,} bytes) is on its way into the chat; leave it where it is."
