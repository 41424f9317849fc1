"""Channels at work in this process: connection state, rate limits, splitting content into platform messages, and one
attempt to deliver a slot of the outbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from hermes_agent.core.chat import Content, Conversation, Piece, Slot, SlotState
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import LostLease, StoreError
from hermes_agent.gateway.channel import Channel, Kind, MessageGone, NeverHere, NotNow, OutcomeUnknown, Pace, Part
from hermes_agent.gateway.media import one_line
from hermes_agent.gateway.text.cutting import cut, size_in
from hermes_agent.gateway.text.markdown import closed, plainest
from hermes_agent.gateway.text.readable import readable

log = logging.getLogger(__name__)

REPEAT = "(This may be a repeat: the connection broke when it was first sent.)\n\n"
"""Before what is sent again and may be there already."""
MANY = 5000
"""Chats that are remembered to take no words without a message."""
MARKS = 20
"""Characters that are kept for the end of a code block that is still being written."""
CAPTION = 1000
"""How long the words at a file may be everywhere; more of them stand before it."""
SHRINKS = 4000
"""Characters by which what is shown may be shorter than what was written: tables and formulas."""
TOOL_WIDTH = 100
"""Characters of the line that says what a run is doing."""


@dataclass(slots=True, kw_only=True)
class ChannelRuntime:
    """A channel that runs in this process. `state` (`starting`, `listening`, `waiting`, `stopped`) and `since` describe
    its connection; `ailment`: what is wrong; `note`: remark for the owner; `undrafted`: chats without draft support."""

    kind: Kind
    channel: Channel
    pacer: Pacer
    state: str = "starting"
    since: float = 0.0
    ailment: str = ""
    note: str = ""
    undrafted: set[str] = field(default_factory=set)

    @property
    def longest(self) -> int:
        """Most text in one message, with room for the repeat notice."""
        abilities = self.kind.abilities
        return abilities.longest_message - size_in(abilities.unit)(REPEAT)

    def drafts(self, to: Conversation) -> bool:
        """Whether drafts can be shown in this chat."""
        return self.kind.abilities.draft > 0 and to.chat_kind == "dm" and to.chat not in self.undrafted

    def drafts_no_more(self, to: Conversation, reason: str) -> None:
        """Fall back to editing the reply's message in this chat; logged once."""
        if not self.undrafted:
            log.warning("%s: replies are shown by changing their message: %s", self.kind.name, reason)
        elif len(self.undrafted) >= MANY:
            self.undrafted.clear()
        self.undrafted.add(to.chat)

    def parts(self, content: Content, *, slot: int, to: Conversation, answers: str = "") -> list[Part]:
        """Split content into platform messages, in order."""
        abilities = self.kind.abilities
        texts = cut(self.words(content.text), self.longest, size_in(abilities.unit))
        reply = answers if to.chat_kind != "dm" else ""
        parts = [Part(text=text, slot=slot, answers="" if number else reply) for number, text in enumerate(texts)]
        if content.buttons and abilities.buttons and parts:
            parts[-1] = replace(parts[-1], buttons=content.buttons[: abilities.buttons])
        for file in (replace(each, name=one_line(each.name)) for each in content.files):
            *before, caption = cut(self.words(file.caption), min(CAPTION, self.longest), size_in(abilities.unit)) or [
                ""
            ]
            parts += [Part(text=text, slot=slot) for text in before]
            if abilities.largest_file:
                parts.append(Part(text=caption, file=file, slot=slot))
            else:
                parts.append(self.without(Part(text=caption, file=file, slot=slot), "cannot be sent here"))
        return parts

    def without(self, part: Part, why: str) -> Part:
        """The part as text that says why its file is missing."""
        name = part.file.name if part.file else ""
        return replace(part, text=f"{part.text}\n\n(The file {name} {why}.)".strip(), file=None)

    def words(self, text: str) -> str:
        """Text in a form that the platform can show."""
        return readable(text) if self.kind.abilities.fences else plainest(readable(text))

    def draft(self, text: str, doing: str) -> str:
        """The visible part of an unfinished reply (at most one message), with what the run is doing."""
        tool = f"⚙ {doing[:TOOL_WIDTH]}" if doing else ""
        size = size_in(self.kind.abilities.unit)
        room = self.kind.abilities.longest_message
        texts = cut(self.words(text[: room + SHRINKS]), room - size(f"\n\n{tool}…") - MARKS, size)
        if len(texts) > 1:
            return f"{texts[0]}\n…"
        return "\n\n".join(filter(None, (*map(closed, texts), tool)))


@dataclass(slots=True, kw_only=True)
class Channels:
    """The enabled channels (`kinds`), and those running in this process (`lines`); another process may run the
    others."""

    kinds: dict[str, Kind]
    lines: dict[str, ChannelRuntime] = field(default_factory=dict)


def made(kind: Kind, channel: Channel, clock: Clock) -> ChannelRuntime:
    """A `ChannelRuntime` that is not listening yet."""
    return ChannelRuntime(kind=kind, channel=channel, pacer=Pacer(kind.pace, clock), since=clock.now())


MINUTE = 60.0
PACED = 1000
"""Chats that are remembered before those whose turn has come are forgotten."""


class Pacer:
    """Rate limiter for the outgoing calls of a channel: first come, first served per chat, spaced by `pace`. After a
    "not now" from the platform, `hold` delays one chat or all."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._pace = pace
        self._clock = clock
        self._next = 0.0
        self._chats: dict[str, float] = {}

    async def turn(self, to: Conversation) -> None:
        """Wait for the next turn of this chat."""
        at = self.reserve(to)
        wait = at - self._clock.monotonic()
        if wait > 0:
            await self._clock.sleep(wait)

    def reserve(self, to: Conversation) -> float:
        """Reserve the chat's next turn. Returns its time (`monotonic`)."""
        now = self._clock.monotonic()
        apart = self._pace.chat if to.chat_kind == "dm" else self._pace.group
        mine = max(now, self._next)
        self._next = mine + self._pace.every
        at = max(mine, self._chats.get(to.chat, 0.0))
        if apart:
            self._chats[to.chat] = at + apart
            if len(self._chats) > PACED:
                self._chats = {chat: until for chat, until in self._chats.items() if until > now}
        return at

    def has_room(self, to: Conversation) -> bool:
        """Take a free turn if there is one now, for optional calls (typing, drafts). It uses no turn of the chat."""
        now = self._clock.monotonic()
        if now < max(self._next, self._chats.get(to.chat, 0.0)):
            return False
        self._next = now + self._pace.every
        return True

    def age(self, at: float) -> float:
        """Seconds since then (of `now`)."""
        return self._clock.now() - at

    def hold(self, seconds: float, to: Conversation | None = None) -> None:
        """Block turns for that time, for all chats or one."""
        until = self._clock.monotonic() + seconds
        if to is None:
            self._next = max(self._next, until)
        else:
            self._chats[to.chat] = max(self._chats.get(to.chat, 0.0), until)


class Minutes:
    """Counts messages per person in one-minute windows; a person's window starts with their first message."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    def count(self, who: str) -> int:
        """Count a message. Returns its number in the window."""
        now = self._clock.monotonic()
        since, count = self._counts.get(who, (now, 0))
        if now - since > MINUTE:
            since, count = now, 0
            self._counts = {key: each for key, each in self._counts.items() if now - each[0] <= MINUTE}
        self._counts[who] = (since, count + 1)
        return count + 1


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
