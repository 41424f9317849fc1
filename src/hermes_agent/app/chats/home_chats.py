"""The chats that words name; a home, as a setting has it: `CHAT[:THREAD]`, colons and percent signs escaped."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_agent.app.chats.settings import ChannelSettings
from hermes_agent.core.inbound import Conversation

KINDS = frozenset({"dm", "group"})


def home_of(place: Conversation) -> str:
    """The setting that names a chat."""
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in (place.chat, place.thread) if part)


def place_at(channel: str, home: str) -> Conversation | None:
    """The chat that such a setting names; None where it names none."""
    chat, _, thread = home.partition(":")
    if not chat:
        return None
    chat, thread = (part.replace("%3A", ":").replace("%25", "%") for part in (chat, thread))
    return Conversation(platform=channel, chat_kind="group" if chat.startswith("-") else "dm", chat=chat, thread=thread)


def place_named(target: str, channels: Mapping[str, ChannelSettings]) -> Conversation | None:
    """The chat that a target names: `CHANNEL[:CHAT[:THREAD]]`, a channel alone being its home, or
    `CHANNEL:KIND:CHAT[:THREAD]`. None where it names none."""
    channel, _, rest = target.partition(":")
    if rest.partition(":")[0] in KINDS:
        place = Conversation.parse(target)
        return place if place.chat else None
    if not rest and channel in channels:
        rest = channels[channel].home
    return place_at(channel, rest) if channel else None
