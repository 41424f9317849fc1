"""Streams a run's unfinished reply to the chat at the platform's pace: as a native draft, or by editing the reply's
message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field

from hermes_agent.app.operations.chats import post
from hermes_agent.app.operations.serving import check_run, outbox_of
from hermes_agent.app.system import System
from hermes_agent.core.chat import Content, Conversation, Letter, Piece, SlotState
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import StoreError
from hermes_agent.core.events import (
    Answered,
    Asked,
    Entry,
    Event,
    Notice,
    Replied,
    RunEnded,
    RunStarted,
    Seen,
    ToolEnded,
    ToolStarted,
    TurnStarted,
)
from hermes_agent.core.messages import Retrying, TextDelta
from hermes_agent.gateway.bounded_cache import BoundedCache
from hermes_agent.gateway.channel import ChannelError, MessageGone, NeverHere, NotNow, OutcomeUnknown, Part
from hermes_agent.gateway.channel_runtime import ChannelRuntime, in_the_end, in_time
from hermes_agent.host.tasks import spawn
from hermes_agent.runs.one_run import SILENT, reply_key, said_by

log = logging.getLogger(__name__)

FIRST_SIGN = 0.5
"""Seconds after which a run that has said nothing shows that it works."""
QUICKEST = 0.2
STAYS = 0.6
"""How much of the time that words without a message stay is let pass before they are shown again."""
PATIENCE = 5.0
"""Seconds for words without a message: the reply waits for them."""
KNOWN = 5000
"""Sessions whose place is remembered; the next message tells it again."""


@dataclass(slots=True, kw_only=True)
class Draft:
    """Streaming state of one run: `text`, of which `kept` characters are whole replies, and the running tools
    (`doing`); hidden while it `waits` for a person.

    `shown` is the visible text, under `receipt` if it is a message. `signed`: when the next typing indicator is due;
    `fades`: when a native draft must be repeated; `pause`: the platform's requested delay.
    """

    session: str
    run: str
    to: Conversation
    line: ChannelRuntime
    streams: bool
    text: str = ""
    kept: int = 0
    doing: dict[str, str] = field(default_factory=dict)
    waits: bool = False
    shown: str = ""
    receipt: str = ""
    given_up: bool = False
    signed: float = 0.0
    fades: float = 0.0
    pause: float = 0.0
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None

    @property
    def key(self) -> str:
        """The outbox key of the run's reply."""
        return reply_key(self.session, self.run)

    def keep_up(self, event: Event) -> None:
        """Apply an event of the run."""
        match event:
            case TextDelta(text=text):
                self.text += text
            case ToolStarted(call_id=call, summary=summary):
                self.doing[call] = summary
            case ToolEnded(call_id=call):
                self.doing.pop(call, None)
                self.doing.pop("", None)
            case Notice(text=text, live=True):
                self.doing[""] = text
            case Replied(message=message):
                if message.tool_calls:
                    self.text = f"{message.text}\n\n" if message.text else ""
                self.kept = len(self.text)
            case TurnStarted() | Retrying():  # What was streamed of an attempt that failed does not count.
                self.text = self.text[: self.kept]
            case Asked() | Answered():
                self.waits = isinstance(event, Asked)
            case _:
                pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The chat of a session, its channel, and whether its replies are streamed there."""

    to: Conversation
    line: ChannelRuntime
    streams: bool


@dataclass(slots=True, kw_only=True)
class Streaming:
    """All drafts of this process, fed by `overhear` with every event; a run that ends before its first update costs
    only a timer. `held`: slots whose first text is being sent; `astray`: a slot may be claimed without anyone
    sending it, so delivery gives it back. `wake` is called when delivery may continue after a draft."""

    runtime: System
    wake: Callable[[], None]
    held: set[int] = field(default_factory=set)
    astray: bool = False
    _known: BoundedCache[str, Known] = field(default_factory=lambda: BoundedCache(KNOWN))
    _drafts: dict[str, Draft] = field(default_factory=dict)
    _ending: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def know(self, session: str, known: Known) -> None:
        """Register the chat of a session."""
        self._known.put(session, known)

    def overhear(self, seen: Seen) -> None:
        """Apply an event of any run."""
        event = seen.event
        if isinstance(event, RunStarted):
            self._begin(seen)
            return
        draft = self._drafts.get(seen.session)
        if draft is None or draft.run != seen.run:
            return
        if isinstance(event, RunEnded):
            self._end(draft)
            if said_by(seen.session, Entry(number=seen.number, run=seen.run, at=seen.at, event=event)) is None:
                spawn(self._take_back(draft), name=f"take back {draft.key}")
        else:
            draft.keep_up(event)

    async def settled(self, key: str) -> None:
        """Wait until no draft of that slot is in flight."""
        if (task := self._ending.get(key)) is not None:
            await asyncio.wait((task,))

    def _begin(self, seen: Seen) -> None:
        known = self._known.get(seen.session)
        if known is None:
            return
        draft = Draft(
            session=seen.session,
            run=seen.run,
            to=known.to.place,
            line=known.line,
            streams=known.streams,
        )
        if (earlier := self._drafts.get(seen.session)) is not None:  # Its run was left without an end.
            self._end(earlier)
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

    async def _take_back(self, draft: Draft) -> None:
        """Delete the streamed message of a run that ended without a reply."""
        await self.settled(draft.key)
        if draft.receipt:
            letter = Letter(key=draft.key, to=draft.to, content=Content(text=""), session=draft.session)
            await post(self.runtime, letter)

    def _later(self, draft: Draft, seconds: float) -> None:
        draft.timer = asyncio.get_running_loop().call_later(seconds, self._due, draft)

    def _due(self, draft: Draft) -> None:
        if self._drafts.get(draft.session) is not draft:
            return  # It is that of a later run.
        if self.runtime.hermes.runs(draft.session):
            draft.task = spawn(self._sign(draft), name=f"draft {draft.key}")
        else:  # It was left without an end.
            self._end(draft)

    async def _sign(self, draft: Draft) -> None:
        """Update the draft, and schedule the next update."""
        pace, name = draft.line.kind.pace, draft.line.kind.name
        beside, draft.pause = draft.line.drafts(draft.to), 0.0
        try:
            await (self._beside(draft) if beside else self._in_slot(draft))
        except NotNow as error:
            log.info("draft on %s: %s", name, error)
            draft.pause = error.retry_after or 0.0
            if not beside:
                draft.line.pacer.hold(draft.pause, draft.to)
        except (ChannelError, TimeoutError) as error:
            log.info("draft on %s: %s", name, str(error) or "no answer in time")
            draft.given_up |= isinstance(error, MessageGone)
        except StoreError as error:
            log.warning("draft on %s: %s", name, error)
            draft.given_up = self.astray = True
        finally:
            if self._drafts.get(draft.session) is draft:
                self._later(draft, max(pace.draft if beside else pace.edit, QUICKEST, draft.pause))
            else:
                self.wake()

    async def _beside(self, draft: Draft) -> None:
        """Update the native draft; the reply becomes the only message."""
        line, now = draft.line, self.runtime.clock.monotonic()
        text = _words(draft)
        if not text:
            await self._type(draft)
        if not text or (text == draft.shown and now < draft.fades) or not line.pacer.has_room(draft.to):
            return
        try:
            await in_time(line.channel.draft(draft.to, text, draft.key), PATIENCE)
        except NeverHere as error:
            line.drafts_no_more(draft.to, str(error))
            draft.shown = ""
            await self._in_slot(draft)
        else:
            draft.shown, draft.fades = text, now + STAYS * line.kind.abilities.draft

    async def _in_slot(self, draft: Draft) -> None:
        text = _words(draft)
        if text and not draft.given_up and draft.line.kind.abilities.edit:
            await self._show(draft, text)
        elif not draft.receipt:
            await self._type(draft)

    async def _type(self, draft: Draft) -> None:
        if draft.waits:
            return
        lasts, now = draft.line.kind.abilities.typing, self.runtime.clock.monotonic()
        if lasts and now >= draft.signed:
            draft.signed = now + lasts * 0.9
            await in_time(draft.line.channel.typing(draft.to))

    async def _show(self, draft: Draft, text: str) -> None:
        if text == draft.shown:
            return
        if draft.receipt:
            await draft.line.pacer.turn(draft.to)
            check_run(self.runtime, draft.session)  # Whoever took the run over may have shown its reply there.
            with suppress(TimeoutError):
                await in_time(draft.line.channel.edit(draft.to, draft.receipt, Part(text=text)))
        else:
            await self._open(draft, text)
        draft.shown = text if draft.receipt else ""

    async def _open(self, draft: Draft, text: str) -> None:
        """Send the first text, in the outbox slot of the reply."""
        outbox = outbox_of(self.runtime)
        if await outbox.waits(draft.to):
            return  # What was said before comes first.
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
            draft.given_up = not isinstance(failed, NotNow)
            raise
        finally:
            try:
                await in_the_end(lambda: outbox.complete(slot, state, pieces, error=error), self.runtime.clock)
            finally:
                self.held.discard(slot.id)


def _words(draft: Draft) -> str:
    """The text to show; empty while the run may still end in silence."""
    begun = draft.text.strip()
    silent = bool(begun) and any(word.startswith(begun) for word in SILENT)
    if silent or draft.waits or not draft.streams:
        return ""
    *others, latest = [*draft.doing.values()] or [""]
    return draft.line.draft(draft.text, f"{latest} (+{len(others)})" if others else latest)
