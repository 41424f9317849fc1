"""Channels at work in this process: connection state, rate limits, and splitting content into platform messages."""

from __future__ import annotations

import logging
from dataclasses import field, replace

from hermes_agent.core.chat import Content, Conversation
from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import Channel, Kind, Pace, Part
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
