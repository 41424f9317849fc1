"""The home chat of a channel, as a setting has it: `CHAT[:THREAD]`, percent signs and colons of its own escaped."""

from __future__ import annotations

from hermes_agent.core.inbound import Conversation


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
