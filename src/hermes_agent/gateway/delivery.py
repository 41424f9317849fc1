"""Delivery of outbox slots to chats, with retries, and notices about slots that cannot be delivered."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from hermes_agent.app.chats.people import NONE, People
from hermes_agent.app.chats.settings import place_at
from hermes_agent.app.operations.chats import post
from hermes_agent.app.operations.serving import outbox_of
from hermes_agent.app.system import System
from hermes_agent.core.chat import TOLD, Content, Conversation, Letter, Slot, SlotState, lost
from hermes_agent.core.errors import LostLease, StoreError
from hermes_agent.gateway.channel import ChannelError, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.channel_runtime import STORE_PAUSE, Attempt, ChannelRuntime, in_the_end
from hermes_agent.gateway.streaming import Streaming
from hermes_agent.host.logs import log_of
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

MOST = 100
"""Slots of one channel that are on their way at a time: a platform that hangs holds up no other."""
LONGEST_PAUSE = 300.0
DEFECT = "a defect in this program"
DEFECT_PAUSE = 2.0
MOST_DEFECTS = 3
DAY = 86_400.0
"""Seconds after which what could not be delivered is given up."""
KEPT = 30 * DAY
"""For so long it is known what was delivered, or given up."""
MARKUP = re.compile(r"[^\w\s.,;:!?'\"%&+/-]")
FEWEST = 10
"""Attempts that there are before: a day may pass while nobody tries."""


def plain(content: Content) -> Content:
    """The content without Markdown, for text that could not be rendered."""
    return replace(content, text=MARKUP.sub(" ", content.text))


class Delivery:
    """Loop that delivers due outbox slots until cancelled. A slot whose draft is being sent waits for it."""

    def __init__(
        self, runtime: System, lines: Mapping[str, ChannelRuntime], drafts: Streaming, notices: Notices
    ) -> None:
        self._notices = notices
        self._outbox = outbox_of(runtime)
        self._clock = runtime.clock
        self._lines = lines
        self._drafts = drafts
        self._wanted = asyncio.Event()
        self._at_work: dict[int, asyncio.Task[None]] = {}
        self._shares: Counter[str] = Counter()
        self._holding = self._astray = False
        self._pruned = -DAY
        self.delivered = 0

    def wake(self) -> None:
        """Check the outbox now."""
        self._wanted.set()

    async def run(self) -> None:
        """Deliver until cancelled; attempts in flight are abandoned as they are."""
        try:
            while True:
                await self._pass()
        finally:
            for task in self._at_work.values():
                task.cancel()

    async def idle(self) -> None:
        """Wait until nothing is due."""
        while self._busy or await self._outbox.next_ready(tuple(self._lines)) == 0.0:
            self.wake()
            await asyncio.wait((*self._at_work.values(), spawn(asyncio.sleep(0.05), name="a moment")))

    @property
    def _busy(self) -> bool:
        """Whether a slot is in flight or being claimed."""
        return bool(self._at_work) or self._holding or self._wanted.is_set()

    async def _pass(self) -> None:
        self._wanted.clear()
        # Boundary: one job.
        try:
            pause = await self._round()
        except Exception:
            log.exception("nothing could be taken out of the outbox")
            pause, self._astray = STORE_PAUSE, True
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._wanted.wait()

    async def _round(self) -> float | None:
        """Claim due slots and start their attempts. Returns seconds until the next may be due, None if `wake` will
        tell."""
        if self._clock.monotonic() - self._pruned >= DAY:
            await self._outbox.prune(self._clock.now() - KEPT)
            self._pruned = self._clock.monotonic()
        lines = dict(self._lines)
        room = {name: MOST - self._shares[name] for name in lines if self._shares[name] < MOST}
        if not room:
            return None
        self._holding = True
        try:
            if self._astray or self._drafts.astray:  # Something may be held of which nobody was told.
                await self._outbox.give_back({*self._at_work, *self._drafts.held})
                self._astray = self._drafts.astray = False
            for slot in await self._outbox.claim(tuple(room), min(room.values())):
                name = slot.to.platform
                self._shares[name] += 1
                self._at_work[slot.id] = spawn(self._deliver(slot, lines[name]), name=f"deliver slot {slot.id}")
        finally:
            self._holding = False
        return await self._outbox.next_ready(tuple(room))

    async def _deliver(self, slot: Slot, line: ChannelRuntime) -> None:
        if slot.error == DEFECT:
            slot = replace(slot, content=plain(slot.content))
        attempt = Attempt(line, slot, self._outbox.start)
        try:
            await self._drafts.settled(slot.key)
            state, error, delay = await self._shown(slot, line, attempt)
            settle = partial(self._outbox.complete, slot, state, attempt.pieces, error=error, delay=delay)
            await in_the_end(partial(settle, repeats=attempt.repeats), self._clock)
            if state is SlotState.FAILED:
                line.note = f"message {slot.id} could not be shown: {error}"
                await self._notices.undelivered(slot, error)
            if state is SlotState.FAILED and error == DEFECT:
                await self._notices.lost(slot, error)
        except LostLease:
            log.warning("slot %s is delivered by another process", slot.id)
        except StoreError:
            log.exception("nobody can be told that slot %s was given up", slot.id)
        finally:
            del self._at_work[slot.id]
            self._shares[line.kind.name] -= 1
            self.wake()

    async def _shown(self, slot: Slot, line: ChannelRuntime, attempt: Attempt) -> tuple[SlotState, str, float]:
        """Run the attempt. Returns the slot's new state, the reason, and the seconds until the next attempt."""
        # Boundary: one job.
        try:
            await attempt.show()
        except LostLease:
            raise
        except StoreError as failed:
            log.exception("slot %s cannot be noted before it is sent", slot.id)
            state, error, delay = SlotState.PENDING, str(failed), STORE_PAUSE
        except ChannelError as failed:
            state, error, delay = self._judged(slot, line, failed)
        except Exception:
            log.exception("slot %s could not be delivered", slot.id)
            state, error, delay = SlotState.UNSURE if attempt.sending else SlotState.PENDING, DEFECT, DEFECT_PAUSE
            if slot.error == DEFECT and slot.attempts + 1 >= MOST_DEFECTS:
                return SlotState.FAILED, DEFECT, 0.0
        else:
            self.delivered += 1
            log_of("gateway.delivery", session=slot.session).info("slot %s on %s: sent", slot.id, line.kind.name)
            return SlotState.SENT, "", 0.0
        doubtful = slot.state is SlotState.UNSURE and len(attempt.pieces) <= len(slot.pieces)
        if state is SlotState.PENDING and doubtful:
            state = SlotState.UNSURE  # That it was not sent now does not mean that it was not sent before.
        log.warning("slot %s on %s: %s (%s)", slot.id, line.kind.name, error, state.value)
        return state, error, delay

    def _judged(self, slot: Slot, line: ChannelRuntime, failed: ChannelError) -> tuple[SlotState, str, float]:
        """Decide about a failed attempt: the slot's new state, the reason, and the seconds until the next attempt."""
        delay = LONGEST_PAUSE if slot.attempts >= FEWEST else min(2.0**slot.attempts, LONGEST_PAUSE)
        error, state = str(failed) or type(failed).__name__, SlotState.PENDING
        match failed:
            case NotNow(retry_after=wanted):
                if wanted is not None:
                    line.pacer.hold(wanted, slot.to)
                    delay = wanted
            case OutcomeUnknown():
                state = SlotState.UNSURE
            case TokenRefused():
                line.ailment, delay = error, LONGEST_PAUSE
            case NeverHere() | _:
                return SlotState.FAILED, error, 0.0
        return self._still(slot, state, error, delay)

    def _still(self, slot: Slot, state: SlotState, error: str, delay: float) -> tuple[SlotState, str, float]:
        """Retry, or give up after a day of attempts."""
        if slot.attempts >= FEWEST and self._clock.now() - slot.at > DAY:
            return SlotState.FAILED, f"Given up after a day: {error}", 0.0
        return state, error, delay


DAY = 86_400.0


class Notices:
    """Reports failed delivery in the channel's home chat (`/sethome`), after a defect also in the chat itself; without
    a home chat it shows in the log and `hermes gateway status`. `wake` is called after posting."""

    def __init__(self, runtime: System, people: People, wake: Callable[[], None]) -> None:
        self._runtime = runtime
        self._people = people
        self._clock = runtime.clock
        self._wake = wake

    async def undelivered(self, slot: Slot, error: str) -> None:
        """Report a message that will never be delivered. Raises `StoreError`."""
        if not slot.key.startswith(TOLD):
            text = f"I could not deliver a message to the chat {slot.to.chat}: {error}"
            await self._send(slot.to, f"slot {slot.id}", text)

    async def lost(self, slot: Slot, error: str) -> None:
        """Tell the chat itself that a defect prevents its message. Raises `StoreError`."""
        if not slot.key.startswith(TOLD):
            await post(self._runtime, lost(slot.id, slot.to, error))
            self._wake()

    async def removed(self, where: Conversation, reason: str) -> None:
        """Report, once a day, that the agent can no longer write in a chat. Raises `StoreError`."""
        day = int(self._clock.now() // DAY)
        await self._send(where, f"{where.key} {day}", f"I can no longer write in the chat {where.chat}: {reason}")

    async def _send(self, about: Conversation, key: str, text: str) -> None:
        home = place_at(about.platform, self._people.channels.get(about.platform, NONE).home)
        if home is None or (home.chat, home.thread) == (about.chat, about.thread):
            return
        letter = Letter(key=f"{TOLD}{key}", to=home, content=Content(text=text))
        await post(self._runtime, letter)
        self._wake()
