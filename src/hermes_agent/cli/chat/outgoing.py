"""Messages of the chat on their way: with the files that they name, queued until a run reads them, and taken back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

from hermes_agent.app.intake import Part
from hermes_agent.app.operations.access import Access
from hermes_agent.cli.chat.attaching import attached_in, take
from hermes_agent.cli.chat.chat_session import ChatSession
from hermes_agent.cli.chat.text import YELLOW
from hermes_agent.cli.chat.transcript import Transcript
from hermes_agent.core.chat import Inbound
from hermes_agent.core.errors import HermesError
from hermes_agent.core.messages import Message, Role, Text
from hermes_agent.core.shown import words_of
from hermes_agent.host.late import late
from hermes_agent.host.tasks import spawn

READ_NAMED = "hermes_agent.app.operations.mcp.servers:read_named"


class Outgoing:
    """Submits messages of one chat. `give_back` puts words back into the input; `outputs` gives what the model is to be
    told of the person's own commands."""

    def __init__(
        self,
        session: ChatSession,
        transcript: Transcript,
        outputs: Callable[[], list[Text]],
        changed: Callable[[], None],
    ) -> None:
        self.give_back: Callable[[str], None] = lambda text: transcript.remark(f"Not sent: {text}", YELLOW)
        self._session, self._transcript, self._outputs, self._changed = session, transcript, outputs, changed
        self._queued: dict[int, Inbound] = {}
        self._warm = False

    async def submit_words(self, inbound: Inbound) -> None:
        """Submit what was typed, with its attachments. Raises `HermesError`."""
        await self.submit(await self._with_files(inbound))

    async def submit(self, inbound: Inbound) -> None:
        """Submit a message, and show it as queued until a run reads it. Raises `HermesError`."""
        if not self._warm:
            self._warm = True
            spawn(asyncio.to_thread(late, "hermes_agent.cli.chat.markdown:render"), name="load the renderer")
        row = await self._session.submit(inbound)
        self._transcript.wait(row, own_words(inbound))
        self._queued = {each: sent for each, sent in self._queued.items() if each in self._transcript.waiting}
        if row is not None:
            self._queued[row] = inbound

    async def take_back(self) -> None:
        """Withdraw the messages that no run has read, and give their words back to the input."""
        texts = []
        for row in list(self._transcript.waiting):
            inbound = self._queued.pop(row, None)
            if inbound is None or inbound.answers:
                continue
            self._transcript.withdrawn.add(inbound.text)
            words = own_words(inbound)
            back = replace(inbound, source_id=f"{inbound.source_id}:withdrawn", parts=(), withdraws=inbound.source_id)
            if (
                await self._session.runtime.hermes.withdraw(back)
                and self._transcript.waiting.pop(row, None) is not None
            ):
                texts.append(words)
        if texts:
            self.give_back("\n".join(texts))
        self._changed()

    async def _with_files(self, inbound: Inbound) -> Inbound:
        """The message with the files that it names, and the output of the person's own commands since the last one.
        Raises `HermesError` for a file that cannot be read; the words are given back then."""
        session = self._session
        files = await asyncio.to_thread(attached_in, inbound.text, session.folder)
        model = session.record.model if session.record else ""
        try:
            taken = await take(session.runtime.intake, files, await session.runtime.intake.window(model))
            named = await self._resources(inbound)
        except HermesError:
            self.give_back(inbound.text)
            raise
        return replace(inbound, parts=(*self._outputs(), *inbound.parts, *taken.parts, *named), notice=taken.notice)

    async def _resources(self, inbound: Inbound) -> tuple[Part, ...]:
        """The resources of MCP servers that it names."""
        session = self._session
        if not re.search(r"@[\w-]+:", inbound.text):
            return ()
        access = Access(system=session.runtime, who=inbound.principal, folder=session.folder)
        found: tuple[Part, ...] = await late(READ_NAMED)(access, inbound.text)
        return found


def own_words(inbound: Inbound) -> str:
    """What the person typed of a message."""
    return words_of(Message(role=Role.USER, parts=inbound.parts))
