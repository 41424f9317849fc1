"""One delivery attempt of an outbox slot: sends, edits or deletes its platform messages one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from hermes_agent.core.chat import Piece, Slot, SlotState
from hermes_agent.core.clock import Clock
from hermes_agent.core.errors import LostLease, StoreError
from hermes_agent.gateway.channel import MessageGone, NeverHere, NotNow, OutcomeUnknown, Part
from hermes_agent.gateway.channel_runtime import REPEAT, ChannelRuntime

log = logging.getLogger(__name__)

T = TypeVar("T")
MB = 1_000_000
LONG = 8000
"""Characters of a text that takes some milliseconds."""
CALL_SECONDS = 60.0
"""The longest that a platform may take for one answer."""
FILE_PATIENCE = 5
"""How much longer it may take for a file."""
CLOCKS_DIFFER = 600.0
"""Seconds by which this machine's clock may be ahead of the platform's."""
FIRST_CLAIM = 2
"""The epoch of a slot that nobody held before."""
STORE_PAUSE = 1.0
LONGEST_STORE_PAUSE = 30.0
"""Seconds between two tries where the store fails, doubling."""


class Begins(Protocol):
    """Callback that records, before sending, that the next piece of a slot is about to be sent (`store.outbox`).
    Raises `LostLease`."""

    def __call__(self, slot: Slot, pieces: Sequence[Piece], *, repeats: int = 0) -> Awaitable[None]: ...


class Attempt:
    """One attempt to deliver the content of an outbox slot. `pieces`: what is certainly shown; `repeats`: how often it
    resent what may have arrived already; `sending`: whether it failed in the middle of a send. Raises `ChannelError`;
    `OutcomeUnknown` if the next piece may have arrived."""

    def __init__(self, line: ChannelRuntime, slot: Slot, begin: Begins, patience: float = CALL_SECONDS) -> None:
        self._line = line
        self._slot = slot
        self._begin = begin
        self._patience = patience
        self.pieces = list(slot.pieces)
        self.repeats = 0
        self.sending = False

    async def show(self) -> None:
        """Edit shown messages, send missing ones, delete surplus ones."""
        parts = await self._parts()
        for index, part in enumerate([await self._possible(part) for part in parts]):
            if index < len(self.pieces):
                await self._change(index, part)
            else:
                await self._add(part)
        while len(self.pieces) > len(parts):
            await self._remove()

    async def _parts(self) -> list[Part]:
        """The platform messages of the slot; long texts are split in a thread."""
        slot = self._slot
        make = partial(self._line.parts, slot.content, slot=slot.id, to=slot.to, answers=slot.answers)
        length = len(slot.content.text) + sum(len(file.caption) for file in slot.content.files)
        return await asyncio.to_thread(make) if length > LONG else make()

    async def _possible(self, part: Part) -> Part:
        """The part, without its file if that exceeds the platform's limit."""
        if part.file is None:
            return part
        with suppress(OSError):
            size = (await asyncio.to_thread(Path(part.file.path).stat)).st_size
            if size > (largest := self._line.kind.abilities.largest_file):
                title = self._line.kind.title
                return self._line.without(
                    part, f"is too large: {title} takes {largest / MB:g} MB, it has {size / MB:.1f}"
                )
        return part

    async def _change(self, index: int, part: Part) -> None:
        piece = self.pieces[index]
        if piece.version == self._slot.version or not self._line.kind.abilities.edit:
            return
        try:
            await self._again_harmless(lambda: self._line.channel.edit(self._slot.to, piece.receipt, part))
        except MessageGone:
            if index < len(self.pieces) - 1:
                return  # Somebody took it away: what follows it stands.
            self.pieces.pop()
            await self._add(part)
        else:
            self.pieces[index] = self._piece(piece.receipt)

    async def _add(self, part: Part) -> None:
        slot, abilities = self._slot, self._line.kind.abilities
        key = f"{slot.key}:{len(self.pieces)}"
        doubtful = slot.state is SlotState.UNSURE and len(self.pieces) == len(slot.pieces)
        if doubtful and abilities.read_back and await self._found(part, key):
            return
        await self._line.pacer.turn(slot.to)
        sent = part
        # A file is found by its name: what was begun of an earlier version may have been words.
        honoured = self._line.pacer.age(slot.at) < abilities.keyed
        certain = honoured or (abilities.read_back and (slot.version == 1 or part.file is None))
        if doubtful and not certain:
            self.repeats += 1
            sent = replace(part, text=f"{REPEAT}{part.text}")
        if not abilities.keyed:
            await self._begin(slot, self.pieces, repeats=self.repeats)
        self.sending = True
        try:
            patience = self._patience if part.file is None else FILE_PATIENCE * self._patience
            receipt = await in_time(self._line.channel.send(slot.to, sent, key), patience)
        except TimeoutError as error:
            raise OutcomeUnknown(f"No answer within {patience:g} seconds.") from error
        except (NeverHere, MessageGone) as error:
            self.sending = False
            if part.file is None:
                raise
            log.warning("slot %s: the file %s could not be sent: %s", slot.id, part.file.name, error)
            await self._add(self._line.without(part, f"could not be sent: {str(error).rstrip('.')}"))
            return
        self.sending = False
        # Who held the slot before and died may have sent under this key what an earlier version said.
        await self._shown(receipt, part, doubtful=honoured and (doubtful or slot.epoch > FIRST_CLAIM))

    async def _shown(self, receipt: str, part: Part, *, doubtful: bool) -> None:
        """Record a new piece. `doubtful`: it may be from an earlier version and show its content."""
        self.pieces.append(self._piece(receipt))
        if doubtful and self._slot.version > 1:
            self.pieces[-1] = Piece(receipt=receipt, version=0)
            await self._change(len(self.pieces) - 1, part)

    async def _found(self, part: Part, key: str) -> bool:
        find = self._line.channel.find
        since = max(0.0, self._slot.at - CLOCKS_DIFFER)
        receipt = await self._again_harmless(lambda: find(self._slot.to, part, key, since), paced=False)
        if receipt is not None:
            await self._shown(receipt, part, doubtful=True)
        return receipt is not None

    async def _remove(self) -> None:
        piece = self.pieces[-1]
        if self._line.kind.abilities.delete:
            with suppress(MessageGone):
                await self._again_harmless(lambda: self._line.channel.delete(self._slot.to, piece.receipt))
        self.pieces.pop()

    async def _again_harmless(self, call: Callable[[], Awaitable[T]], *, paced: bool = True) -> T:
        """Make an idempotent call: an unknown outcome counts as a plain failure."""
        if paced:
            await self._line.pacer.turn(self._slot.to)
        try:
            return await in_time(call(), self._patience)
        except (OutcomeUnknown, TimeoutError) as error:
            raise NotNow(str(error) or "No answer in time.") from error

    def _piece(self, receipt: str) -> Piece:
        return Piece(receipt=receipt, version=self._slot.version)


async def in_time(call: Awaitable[T], patience: float = CALL_SECONDS) -> T:
    """Await a platform's answer. Raises `TimeoutError`."""
    async with asyncio.timeout(patience):
        return await call


async def in_the_end(settle: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Write a slot's outcome, retrying until the store accepts it. Raises `LostLease`."""
    pause = STORE_PAUSE
    while True:
        try:
            return await settle()
        except LostLease:
            raise
        except StoreError as error:
            log.error("what became of a slot cannot be written: %s", error)  # noqa: TRY400  again and again
            await clock.sleep(pause)
            pause = min(2 * pause, LONGEST_STORE_PAUSE)
