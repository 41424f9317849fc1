"""Delivery: what is due in the outbox is held, shown and settled, every place by itself and in its order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from hermes_agent.app.runtime import Runtime
from hermes_agent.core.errors import LostLease, StoreError
from hermes_agent.core.outbound import Slot, SlotState
from hermes_agent.gateway.attempt import Attempt
from hermes_agent.gateway.channel import ChannelError, NeverHere, NotNow, OutcomeUnknown, TokenRefused
from hermes_agent.gateway.drafts import Drafts
from hermes_agent.gateway.line import Line
from hermes_agent.gateway.telling import Telling
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

MOST = 100
"""Slots that are on their way at a time."""
LONGEST_PAUSE = 300.0
STORE_PAUSE = 1.0
DAY = 86_400.0
"""Seconds after which what could not be delivered is given up."""


class Delivery:
    """Delivers on these lines until it is cancelled; a slot whose draft is on its way waits for that."""

    def __init__(self, runtime: Runtime, lines: Mapping[str, Line], drafts: Drafts, telling: Telling) -> None:
        self._telling = telling
        self._outbox = runtime.store.outbox
        self._clock = runtime.clock
        self._lines = lines
        self._drafts = drafts
        self._wanted = asyncio.Event()
        self._at_work: dict[int, asyncio.Task[None]] = {}
        self._holding = False
        self.delivered = 0

    def look(self) -> None:
        """Something may be due."""
        self._wanted.set()

    async def run(self) -> None:
        """Deliver until cancelled; what was on its way then is finished first, within the caller's patience."""
        while True:
            self._wanted.clear()
            try:
                pause = await self._round()
            except StoreError:
                log.exception("the outbox cannot be read")
                pause = STORE_PAUSE
                await self._give_back()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wanted.wait()

    async def idle(self) -> None:
        """Return when nothing that may be shown now is left."""
        while self._busy or await self._outbox.next_ready(tuple(self._lines)) == 0.0:
            self.look()
            await asyncio.wait((*self._at_work.values(), spawn(asyncio.sleep(0.05), name="a moment")))

    @property
    def _busy(self) -> bool:
        """Whether something is on its way, or is just being held."""
        return bool(self._at_work) or self._holding or self._wanted.is_set()

    async def _round(self) -> float | None:
        """Hold what is due; seconds until more may be, None where somebody will say so."""
        lines, room = dict(self._lines), MOST - len(self._at_work)
        names = tuple(lines)
        if not names or room <= 0:
            return None
        self._holding = True
        try:
            slots = await self._outbox.claim(names, room)
            for slot in slots:
                self._at_work[slot.id] = spawn(
                    self._deliver(slot, lines[slot.to.platform]), name=f"deliver slot {slot.id}"
                )
        finally:
            self._holding = False
        return None if slots else await self._outbox.next_ready(names)

    async def _deliver(self, slot: Slot, line: Line) -> None:
        attempt = Attempt(line, slot, self._outbox.begin)
        # Boundary: one job.
        try:
            await self._drafts.settled(slot.key)
            await self._settle(slot, line, attempt)
        except LostLease:
            log.warning("slot %s is delivered by another process", slot.id)
        except StoreError:
            log.exception("slot %s cannot be written", slot.id)
        except Exception:
            log.exception("slot %s could not be delivered", slot.id)
            with suppress(StoreError):
                await self._outbox.settle(slot, SlotState.UNSURE, attempt.pieces, error="a defect", delay=60.0)
        finally:
            del self._at_work[slot.id]
            self.look()

    async def _settle(self, slot: Slot, line: Line, attempt: Attempt) -> None:
        state, error, delay = SlotState.SENT, "", 0.0
        try:
            await attempt.show()
            self.delivered += 1
        except ChannelError as failed:
            state, error, delay = self._judged(slot, line, failed)
            log.warning("slot %s on %s: %s (%s)", slot.id, line.kind.name, error, state.value)
        await self._outbox.settle(slot, state, attempt.pieces, error=error, delay=delay, repeats=attempt.repeats)
        if state is SlotState.FAILED:
            await self._telling.undelivered(slot, error)

    def _judged(self, slot: Slot, line: Line, failed: ChannelError) -> tuple[SlotState, str, float]:
        """What becomes of a slot after a failure: its state, the reason, and the seconds until the next attempt."""
        delay = min(2.0**slot.attempts, LONGEST_PAUSE)
        error = str(failed) or type(failed).__name__
        match failed:
            case NotNow(retry_after=wanted):
                if wanted is not None:
                    line.pacer.hold(wanted, slot.to)
                    delay = wanted
            case OutcomeUnknown():
                return SlotState.UNSURE, error, delay
            case TokenRefused():
                line.ailment, delay = error, LONGEST_PAUSE
            case NeverHere() | _:
                return SlotState.FAILED, error, 0.0
        if self._clock.now() - slot.at > DAY:
            return SlotState.FAILED, f"Given up after a day: {error}", 0.0
        return SlotState.PENDING, error, delay

    async def _give_back(self) -> None:
        """Let go of what a claim may have taken without telling."""
        with suppress(StoreError):
            await self._outbox.give_back({*self._at_work, *self._drafts.held})
