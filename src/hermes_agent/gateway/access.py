"""Who may speak, and with which rights: decided in one place, from the settings and from who was let in."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from enum import StrEnum

from hermes_agent.app.chats.people import EVERYBODY, may, standing_of
from hermes_agent.app.chats.settings import ChannelSettings, ChatSettings
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Conversation, Standing
from hermes_agent.gateway.inbound_events import Sender

LONGEST_NAME = 40
LONGEST_TITLE = 80
LOOKED_AT = 1000
"""Characters of a name: those that are kept, and among them what is left out. Some platforms let it be a book."""
MARKS = 2
"""Combining marks that one character of a name keeps."""


class Refusal(StrEnum):
    """Why somebody is not heard: a stranger who may ask for a code; a stranger elsewhere; a group in which it does not
    answer; words that are not for it."""

    STRANGER = "stranger"
    UNKNOWN = "unknown"
    GROUP = "group"
    UNADDRESSED = "unaddressed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The rules of one channel; `paired` are the ids of those who were let in by a code."""

    settings: ChannelSettings
    paired: Collection[str] = ()

    def standing(self, user: str, groups: Collection[str] = ()) -> Standing | None:
        """What somebody is here; None where they may not speak. Names count for nothing."""
        return standing_of(self.settings, self.paired, user, groups)

    def admits(self, sender: Sender, where: Conversation, *, addressed: bool = True) -> Standing | Refusal:
        """Whether somebody is heard there, and as what. The same for words, edits, buttons and every command."""
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
        """Whether somebody has a slash command."""
        return may(self.settings, standing, command)

    def conversation(self, where: Conversation, sender: Sender, standing: Standing, topic: str = "") -> Conversation:
        """The conversation that words belong to. A group is each person's own unless it is shared, a thread is shared
        by all; a guest shares with nobody, since what is in a session is for all who are in it."""
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
        """What is set for one chat."""
        return self.settings.chats.get(chat, ChatSettings())

    def answers_in(self, where: Conversation) -> bool:
        """Whether anybody is heard there: alone, or in a group that is allowed."""
        groups = self.settings.groups
        return where.chat_kind == "dm" or where.chat in groups or EVERYBODY in groups

    def _must_be_named(self, chat: str) -> bool:
        own = self.chat(chat).mention
        return self.settings.mention if own is None else own

    def _is_shared(self, chat: str) -> bool:
        own = self.chat(chat).shared
        return self.settings.shared if own is None else own


def harmless(name: str) -> str:
    """A name of somebody, as `plain`."""
    return plain(name)[:LONGEST_NAME] or "somebody"


def plain(name: str) -> str:
    """A name that people chose, unable to pass for anything else: no brackets, no line breaks, no signs that turn
    writing around, no towers of marks."""
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
