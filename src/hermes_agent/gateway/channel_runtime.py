"""A channel at work in this process: its facts, the way to its platform, its pace and how it is."""

from __future__ import annotations

import logging
from dataclasses import field, replace

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Content
from hermes_agent.gateway.channel import Channel, Kind, Part
from hermes_agent.gateway.media import one_line
from hermes_agent.gateway.pacing import Pacer
from hermes_agent.gateway.text.cutting import cut, size_in
from hermes_agent.gateway.text.fences import closed, plainest
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
    """`state` and `since` say how listening stands (`starting`, `listening`, `waiting`, `stopped`), `ailment` what is
    wrong, `note` what its owner may want to know, `undrafted` the chats that take no words without a message."""

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
        """How much of a text one message holds, with room for the mark of a repeat."""
        abilities = self.kind.abilities
        return abilities.longest_message - size_in(abilities.unit)(REPEAT)

    def drafts(self, to: Conversation) -> bool:
        """Whether unfinished words are shown there without a message."""
        return self.kind.abilities.draft > 0 and to.chat_kind == "dm" and to.chat not in self.undrafted

    def drafts_no_more(self, to: Conversation, reason: str) -> None:
        """The platform takes none there, which the log says once: words are shown in the message of the reply."""
        if not self.undrafted:
            log.warning("%s: replies are shown by changing their message: %s", self.kind.name, reason)
        elif len(self.undrafted) >= MANY:
            self.undrafted.clear()
        self.undrafted.add(to.chat)

    def parts(self, content: Content, *, slot: int, to: Conversation, answers: str = "") -> list[Part]:
        """The platform messages that show a content, in order."""
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
        """The part in words alone, which say why its file is not there."""
        name = part.file.name if part.file else ""
        return replace(part, text=f"{part.text}\n\n(The file {name} {why}.)".strip(), file=None)

    def words(self, text: str) -> str:
        """A text as the platform can show it."""
        return readable(text) if self.kind.abilities.fences else plainest(readable(text))

    def draft(self, text: str, doing: str) -> str:
        """What is shown of a reply that is being written: as much as one message holds, and what the run is doing."""
        tool = f"⚙ {doing[:TOOL_WIDTH]}" if doing else ""
        size = size_in(self.kind.abilities.unit)
        room = self.kind.abilities.longest_message
        texts = cut(self.words(text[: room + SHRINKS]), room - size(f"\n\n{tool}…") - MARKS, size)
        if len(texts) > 1:
            return f"{texts[0]}\n…"
        return "\n\n".join(filter(None, (*map(closed, texts), tool)))


@dataclass(slots=True, kw_only=True)
class Channels:
    """The channels that are switched on, and the lines of those that this process listens to by now: another process
    may hold the rest."""

    kinds: dict[str, Kind]
    lines: dict[str, ChannelRuntime] = field(default_factory=dict)


def made(kind: Kind, channel: Channel, clock: Clock) -> ChannelRuntime:
    """A line that has not begun to listen."""
    return ChannelRuntime(kind=kind, channel=channel, pacer=Pacer(kind.pace, clock), since=clock.now())
