"""One session that an editor has open: its events become updates, and its questions requests, until it is closed."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace

from acp import schema

from hermes_agent.acp.editor import Editor
from hermes_agent.acp.options import SessionOptions
from hermes_agent.acp.questions import Questions
from hermes_agent.acp.speech import SPEECHES, Update, message
from hermes_agent.app.commands.command import Desk, Done, perform
from hermes_agent.app.intake import Part
from hermes_agent.app.operations.access import Access
from hermes_agent.app.operations.questions import open_of
from hermes_agent.app.operations.sessions import SessionRecord, get_session, last_number, read_log
from hermes_agent.app.system import System
from hermes_agent.core.chat import Busy, Conversation, Inbound
from hermes_agent.core.errors import HermesError
from hermes_agent.core.events import Entry, MessageTaken, Replied, RunEnded, Seen, Undone
from hermes_agent.core.messages import Origin, Text
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)
PLATFORM = "acp"
PAGE = 200
SWITCHED = "{text}\n\nThis thread stays with its session: open {session} from the editor's list of sessions."


class FollowedSession:
    """A session that the editor sees. `source` begins the ids of its messages. `own` are the rows of messages that
    came from the editor, which shows them itself."""

    def __init__(self, system: System, editor: Editor, record: SessionRecord, source: str) -> None:
        self.system, self.record = system, record
        self._editor, self._source, self._count = editor, source, 0
        self.conversation = Conversation(platform=PLATFORM, chat_kind="folder", chat=record.workspace)
        self.access: Access[System] = Access(
            system=system, who=system.owner, where=self.conversation, session=record.id, folder=record.workspace
        )
        self.options = SessionOptions(self)
        self.questions = Questions(editor, record.id, self._answer, self.say, lambda: self.cancel())
        self.own: set[int] = set()
        self.is_loaded = False
        self._speech = SPEECHES[editor.version](record.workspace)
        self._number, self._moved = 0, asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._cost: float | None = 0.0

    async def show(self, update: Update) -> None:
        """Send an update when there is room for it."""
        await self._editor.transport.room()
        await self._editor.update(self.record.id, update)

    async def say(self, text: str) -> None:
        """Say something that no run says."""
        self._count += 1
        await self.show(message(text, f"command:{self._source}:{self._count}"))

    async def replay(self) -> None:
        """Show the log, without what was undone."""
        undone = [
            range(entry.event.to + 1, entry.number + 1)
            async for entry in self._entries()
            if isinstance(entry.event, Undone)
        ]
        async for entry in self._entries():
            self._number = entry.number
            if not any(entry.number in each for each in undone):
                await self._show(entry, own=False)

    async def _entries(self) -> AsyncIterator[Entry]:
        after = 0
        while page := await read_log(self.access, self.record.id, after, PAGE):
            for entry in page:
                yield entry
            after = page[-1].number

    async def begin(self) -> None:
        """Follow the session from where it is, and ask again what its run waits for."""
        self._number = self._number or await last_number(self.system, self.record.id)
        self.is_loaded = self._number > 0
        for each in await open_of(self.system, self.record.id):
            self.questions.see(each.asked)
        self._watching = spawn(self._watch(self._number), name=f"watch {self.record.id} for the editor")

    async def close(self, *, stop: bool = True) -> None:
        """End the prompts, with `stop` their runs too, and follow the session no more."""
        if stop:
            self.cancel()
            if self.system.hermes.runs(self.record.id):
                await self.system.hermes.stop(self.record.id)
        self.questions.withdraw()
        await self.options.close()
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, after: int) -> None:
        try:
            async with aclosing(self.system.hermes.watch(self.record.id, after)) as events:
                async for seen in events:
                    await self._see(seen)
        except HermesError as error:  # Prompts that wait see it themselves.
            log.warning("%s is followed no more: %s", self.record.id, error)
        finally:
            self._number = sys.maxsize
            self._moved.set()

    async def _see(self, seen: Seen) -> None:
        event = seen.event
        # Boundary: one event listener.
        try:
            self.questions.see(event)
            await self._show(seen, own=isinstance(event, MessageTaken) and event.inbox in self.own)
            if isinstance(event, RunEnded):
                self.options.refresh()
        except Exception:
            log.exception("%s cannot be shown", event.kind)
        self._number = seen.number
        self._moved.set()

    async def _show(self, seen: Seen | Entry, *, own: bool) -> None:
        event = seen.event
        for update in self._speech.updates(seen, own=own):
            await self.show(update)
        if isinstance(event, Replied) and event.usage.known:
            self._cost = None if self._cost is None or event.cost is None else self._cost + event.cost
            size = self.options.window()
            cost = None if self._cost is None else schema.Cost(amount=self._cost, currency="USD")
            used = event.usage.input + event.usage.output
            await self.show(schema.UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost))

    async def perform(self, line: str) -> Done | None:
        """Run a slash command; None for an ordinary message. Raises `HermesError`."""
        record, busy = await self.refresh(), self.system.hermes.runs(self.record.id)
        inbound = self.inbound((Text(text=line, origin=Origin(self.system.owner.standing.value)),))
        done = await perform(Desk(runtime=self.system, record=record, inbound=inbound, busy=busy))
        if done is not None and done.session not in ("", record.id):
            return Done(text=SWITCHED.format(text=done.text, session=done.session))
        return done

    async def _answer(self, question: str, answer: str) -> None:
        """Give a run the person's answer; one that comes too late changes nothing."""
        inbound = self.inbound((Text(text=answer, origin=Origin(self.system.owner.standing.value)),))
        inbound = replace(inbound, source_id=f"answer:{self.record.id}:{question}", answers=question)
        with suppress(HermesError):
            await self.system.hermes.submit(inbound, self.record.id)

    def inbound(self, parts: tuple[Part, ...]) -> Inbound:
        """A message of the person at the editor."""
        self._count += 1
        return Inbound(
            source=PLATFORM,
            source_id=f"{self._source}:{self._count}",
            principal=self.system.owner,
            conversation=self.conversation,
            parts=parts,
            received=self.system.clock.now(),
            busy=Busy(self.system.settings.acp.busy),
        )

    async def refresh(self) -> SessionRecord:
        """Read the session's row again: title or model may have changed. Raises `UnknownSession`."""
        self.record = await get_session(self.access, self.record.id)
        return self.record

    async def until_shown(self, number: int) -> None:
        """Return when the editor was sent everything up to that event."""
        while self._number < number:
            self._moved.clear()
            await self._moved.wait()

    def cancel(self) -> None:
        """End what the editor asked for; a session that is only followed has nothing."""
