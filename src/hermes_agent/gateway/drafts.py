"""Drafts: what a run says while it works, shown in the slot of its reply at the pace of the platform."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress
from dataclasses import field

from hermes_agent.app.runtime import Runtime
from hermes_agent.app.service.posting import SILENT, reply_key
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import StoreError
from hermes_agent.core.events import Replied, RunEnded, RunStarted, Seen, ToolEnded, ToolStarted
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.model import TextDelta
from hermes_agent.core.outbound import Content, Letter, Piece, SlotState
from hermes_agent.gateway.attempt import in_time
from hermes_agent.gateway.channel import ChannelError, OutcomeUnknown, Part
from hermes_agent.gateway.line import Line
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

FIRST_SIGN = 0.5
"""Seconds after which a run that has said nothing shows that it works."""
KNOWN = 5000
"""Sessions whose place is remembered; the next message tells it again."""


@dataclass(slots=True, kw_only=True)
class Draft:
    """What one run shows."""

    session: str
    key: str
    to: Conversation
    line: Line
    streams: bool
    text: str = ""
    doing: str = ""
    shown: str = ""
    receipt: str = ""
    given_up: bool = False
    signed: float = 0.0
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Where a session is spoken to, and whether its replies are shown while they are written."""

    to: Conversation
    line: Line
    streams: bool


@dataclass(slots=True, kw_only=True)
class Drafts:
    """The drafts of this process. `overhear` is told every event; a run that is over before its first sign costs
    nothing but a timer. `held` are the slots whose first words are being sent."""

    runtime: Runtime
    held: set[int] = field(default_factory=set)
    _known: OrderedDict[str, Known] = field(default_factory=OrderedDict)
    _drafts: dict[str, Draft] = field(default_factory=dict)
    _ending: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def know(self, session: str, known: Known) -> None:
        """Where that session is."""
        self._known[session] = known
        self._known.move_to_end(session)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)

    def overhear(self, seen: Seen) -> None:
        """Keep up with a run."""
        event = seen.event
        if isinstance(event, RunStarted):
            self._begin(seen)
            return
        draft = self._drafts.get(seen.session)
        if draft is None:
            return
        match event:
            case TextDelta(text=text):
                draft.text += text
            case ToolStarted(summary=summary):
                draft.doing = summary
            case ToolEnded():
                draft.doing = ""
            case Replied(message=message) if message.tool_calls:
                draft.text = f"{message.text}\n\n" if message.text else ""
            case RunEnded():
                self._end(draft)
            case _:
                pass

    async def settled(self, key: str) -> None:
        """Return when no draft of that slot is on its way."""
        if (task := self._ending.get(key)) is not None:
            await asyncio.wait((task,))

    def _begin(self, seen: Seen) -> None:
        known = self._known.get(seen.session)
        if known is None:
            return
        draft = Draft(
            session=seen.session,
            key=reply_key(seen.session, seen.run),
            to=known.to.place,
            line=known.line,
            streams=known.streams and known.line.kind.abilities.edit,
        )
        self._drafts[seen.session] = draft
        self._later(draft, FIRST_SIGN)

    def _end(self, draft: Draft) -> None:
        del self._drafts[draft.session]
        if draft.timer is not None:
            draft.timer.cancel()
        if draft.task is not None and not draft.task.done():
            key = draft.key
            self._ending[key] = draft.task
            draft.task.add_done_callback(lambda _: self._ending.pop(key, None))

    def _later(self, draft: Draft, seconds: float) -> None:
        draft.timer = asyncio.get_running_loop().call_later(seconds, self._due, draft)

    def _due(self, draft: Draft) -> None:
        if draft.session in self._drafts:
            draft.task = spawn(self._sign(draft), name=f"draft {draft.key}")

    async def _sign(self, draft: Draft) -> None:
        """Show how far the run is."""
        text = draft.line.draft(draft.text, draft.doing)
        silent = any(word.startswith(draft.text.strip()) for word in SILENT)
        try:
            if draft.streams and not draft.given_up and text and not silent:
                await self._show(draft, text)
            elif not draft.receipt:
                await self._type(draft)
        except ChannelError as error:
            log.info("draft on %s: %s", draft.line.kind.name, error)
        except StoreError as error:
            log.warning("draft on %s: %s", draft.line.kind.name, error)
            draft.given_up = True
        finally:
            if self._drafts.get(draft.session) is draft:
                self._later(draft, max(draft.line.kind.pace.edit, 0.2))

    async def _type(self, draft: Draft) -> None:
        lasts, now = draft.line.kind.abilities.typing, self.runtime.clock.monotonic()
        if lasts and now >= draft.signed:
            draft.signed = now + lasts * 0.9
            await in_time(draft.line.channel.typing(draft.to))

    async def _show(self, draft: Draft, text: str) -> None:
        if text == draft.shown:
            return
        if draft.receipt:
            await draft.line.pacer.turn(draft.to)
            with suppress(TimeoutError):
                await in_time(draft.line.channel.edit(draft.to, draft.receipt, Part(text=text)))
        else:
            await self._open(draft, text)
        draft.shown = text if draft.receipt else ""

    async def _open(self, draft: Draft, text: str) -> None:
        """Send the first words, in the slot that the reply will have."""
        outbox = self.runtime.store.outbox
        letter = Letter(key=draft.key, to=draft.to, content=Content(text=text), session=draft.session)
        slot = await outbox.open(letter)
        if slot is None:
            draft.given_up = True
            return
        self.held.add(slot.id)
        pieces, state, error = list(slot.pieces), SlotState.SENT, ""
        try:
            if not pieces:
                await draft.line.pacer.turn(draft.to)
                receipt = await in_time(draft.line.channel.send(draft.to, Part(text=text), f"{draft.key}:0"))
                pieces = [Piece(receipt=receipt, version=0)]
            draft.receipt = pieces[0].receipt
        except (OutcomeUnknown, TimeoutError) as failed:
            state, error, draft.given_up = SlotState.UNSURE, str(failed) or "no answer in time", True
        except ChannelError as failed:
            state, error = SlotState.PENDING, str(failed)
        finally:
            self.held.discard(slot.id)
            await outbox.settle(slot, state, pieces, error=error)
