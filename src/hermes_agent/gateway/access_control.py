"""Access control for chat channels: who may speak, in which conversation, and which user ids are hidden."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from enum import StrEnum

from hermes_agent.app.chats.people import EVERYBODY, People, may, standing_of
from hermes_agent.app.chats.pseudonyms import Pseudonyms
from hermes_agent.app.chats.settings import ChannelSettings, ChatSettings
from hermes_agent.core.chat import Conversation, Principal, Standing
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import Media, Said, Sender

MOST_NAMED = 100
"""People whom one message names that are hidden: whoever writes it chooses how many there are."""


class AccessControl:
    """Access rules of all enabled channels, and the pseudonyms of their users. User ids are hidden from the model and
    the logs on platforms that `hashes` names; `hidden` overrides that for all channels."""

    def __init__(
        self,
        settings: Mapping[str, ChannelSettings],
        hashes: Callable[[str], bool] = lambda _: False,
        hidden: bool | None = None,
    ) -> None:
        self.people = People(settings)
        self.pseudonyms = Pseudonyms()
        self._by_platform = hashes
        self.follow(settings, hidden)

    def follow(self, settings: Mapping[str, ChannelSettings], hidden: bool | None) -> None:
        """Apply new rules; ids hidden so far stay hidden."""
        self.people.channels = settings
        self._hidden = hidden
        for name, channel in settings.items():
            if self._hashes(name):
                self.pseudonyms.keep(
                    *channel.owners, *channel.members, *channel.guests, *channel.groups, *channel.chats
                )

    def _hashes(self, channel: str) -> bool:
        return self._by_platform(channel) if self._hidden is None else self._hidden

    def access(self, channel: str) -> Access:
        """The rules of one channel."""
        settings = self.people.channels.get(channel, ChannelSettings())
        return Access(settings=settings, paired=self.people.paired(channel))

    def meet(self, channel: str, sender: Sender, where: Conversation) -> None:
        """Register a sender's ids for hiding, if the channel hides ids."""
        if self._hashes(channel):
            self.pseudonyms.know(sender.user, where.chat)

    def shown(self, channel: str, text: str) -> str:
        """Text of that channel for the model, with hidden ids replaced."""
        return self.pseudonyms.hide(text) if self._hashes(channel) else text

    def read(self, channel: str, said: Said) -> Said:
        """An admitted message with ids replaced in its text, quote, file names and title; ids it mentions are hidden
        from now on."""
        if self._hashes(channel):
            self.pseudonyms.know(*said.named[:MOST_NAMED])
        said = replace(said, title=self.shown(channel, plain(said.title))[:LONGEST_TITLE])
        if not self._hashes(channel):
            return said
        hide, quoted = self.pseudonyms.hide, said.quoted

        def files(media: tuple[Media, ...]) -> tuple[Media, ...]:
            return tuple(replace(each, name=hide(each.name)) for each in media)

        if quoted is not None:
            quoted = replace(quoted, text=hide(quoted.text), media=files(quoted.media))
        return replace(said, text=hide(said.text), media=files(said.media), quoted=quoted)

    def principal(self, channel: str, sender: Sender, standing: Standing) -> Principal:
        """The principal of a sender; remembers a role that only group membership gives."""
        alias = self.pseudonyms.of(sender.user) if self._hashes(channel) else ""
        name = harmless(self.shown(channel, plain(sender.name or alias)))
        who = Principal(platform=channel, user=sender.user, standing=standing, name=name, alias=alias)
        if sender.groups and self.access(channel).standing(sender.user) is not standing:
            self.people.remember(who.key, standing)
        return who


LONGEST_NAME = 40
LONGEST_TITLE = 80
LOOKED_AT = 1000
"""Characters of a name: those that are kept, and among them what is left out. Some platforms let it be a book."""
MARKS = 2
"""Combining marks that one character of a name keeps."""


class Refusal(StrEnum):
    """Reason to refuse a message: a stranger who may get a pairing code; a stranger who may not; a group without
    answers; a group message not addressed to the agent."""

    STRANGER = "stranger"
    UNKNOWN = "unknown"
    GROUP = "group"
    UNADDRESSED = "unaddressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Access rules of one channel: roles, admission, conversations. `paired`: users admitted by a pairing code."""

    settings: ChannelSettings
    paired: Collection[str] = ()

    def standing(self, user: str, groups: Collection[str] = ()) -> Standing | None:
        """The role of a user here; None if they may not speak. Display names are ignored."""
        return standing_of(self.settings, self.paired, user, groups)

    def admits(self, sender: Sender, where: Conversation, *, addressed: bool = True) -> Standing | Refusal:
        """The sender's role, or why the event is refused. Applies equally to messages, edits, buttons and commands."""
        alone = where.chat_kind == "dm"
        standing = self.standing(sender.user, sender.groups)
        if sender.bot and not self.settings.bots:
            return Refusal.UNKNOWN
        if not self.answers_in(where):
            return Refusal.GROUP
        if standing is None:
            return Refusal.STRANGER if alone and self.settings.pairing else Refusal.UNKNOWN
        if not alone and not addressed and self._must_be_named(where.chat):
            return Refusal.UNADDRESSED
        return standing

    def may(self, standing: Standing, command: str) -> bool:
        """Whether a role may use a slash command."""
        return may(self.settings, standing, command)

    def conversation(self, where: Conversation, sender: Sender, standing: Standing, topic: str = "") -> Conversation:
        """The conversation of a message. In a group each person has their own unless it is shared; a thread is
        shared by all; a guest never shares, since everybody in a session sees its content."""
        alone = where.chat_kind == "dm"
        shared = bool(where.thread) or self._is_shared(where.chat)
        own = not alone and (not shared or standing is Standing.GUEST)
        return Conversation(
            platform=where.platform,
            chat_kind=where.chat_kind,
            chat=where.chat,
            thread=where.thread,
            participant=sender.user if own else where.participant,
            topic=topic,
        )

    def chat(self, chat: str) -> ChatSettings:
        """The settings of one chat."""
        return self.settings.chats.get(chat, ChatSettings())

    def answers_in(self, where: Conversation) -> bool:
        """Whether the agent answers there: a private chat, or an allowed group."""
        groups = self.settings.groups
        return where.chat_kind == "dm" or where.chat in groups or EVERYBODY in groups

    def _must_be_named(self, chat: str) -> bool:
        own = self.chat(chat).mention
        return self.settings.mention if own is None else own

    def _is_shared(self, chat: str) -> bool:
        own = self.chat(chat).shared
        return self.settings.shared if own is None else own


def harmless(name: str) -> str:
    """A sender's display name, sanitized and shortened."""
    return plain(name)[:LONGEST_NAME] or "somebody"


def plain(name: str) -> str:
    """Sanitize a name chosen by people: no brackets, line breaks, bidirectional marks or stacked combining marks."""
    kept: list[str] = []
    marks = 0
    for sign in unicodedata.normalize("NFC", name[:LOOKED_AT]):
        category = unicodedata.category(sign)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if sign in "\n\r\t":
            kept.append(" ")
            continue
        if marks > MARKS or category in ("Cf", "Cc", "Cs", "Co", "Cn"):
            continue
        kept.append({"[": "(", "]": ")", "<": "(", ">": ")", "`": "'"}.get(sign, " " if category[0] == "Z" else sign))
    return " ".join("".join(kept).split())
