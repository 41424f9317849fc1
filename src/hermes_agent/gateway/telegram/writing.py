"""A message of the agent as arguments of the Bot API: where it stands, what it answers, its buttons, its receipt."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hermes_agent.core.inbound import Conversation
from hermes_agent.core.outbound import Button
from hermes_agent.gateway.channel import MessageGone, Part

Plain = Mapping[str, Any]  # arguments and answers of the Bot API
WIDE = 12
"""Letters of a button's label with which it still shares its row."""


def draft_id(key: str) -> int:
    """The same for the same key, and never 0."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % 0x7FFFFFFF + 1


def place(to: Conversation, chat: str) -> dict[str, Any]:
    """A chat, by the id that it has now, and the topic in it."""
    return {"chat_id": chat} | ({"message_thread_id": number_of(to.thread)} if to.thread else {})


def receipt_of(to: Conversation, chat: str, sent: Plain) -> str:
    """The id of a message, with the chat's where that is not the first one: messages are counted anew there."""
    return f"{chat}:{sent['message_id']}" if chat != to.chat else str(sent["message_id"])


def message_at(to: Conversation, chat: str, receipt: str) -> dict[str, Any]:
    """The message of a receipt. Raises `MessageGone` where it stands in a group that moved since."""
    before, _, message = receipt.rpartition(":")
    if (before or to.chat) != chat:
        raise MessageGone("The message stands in the group that this one was before.")
    return {"chat_id": chat, "message_id": number_of(message)}


def reply_to(part: Part, chat: str) -> dict[str, Any]:
    """What a part answers, where that stands in this chat."""
    before, _, message = part.answers.rpartition(":")
    if not message.isdecimal() or before not in ("", chat):
        return {}
    return {"reply_parameters": {"message_id": int(message), "allow_sending_without_reply": True}}


def keyboard(part: Part) -> dict[str, Any]:
    """The buttons of a part: in one row where they are narrow."""
    if not part.buttons:
        return {}
    keys = [_key(button, part.slot, number) for number, button in enumerate(part.buttons)]
    narrow = all(len(button.label) <= WIDE for button in part.buttons)
    return {"reply_markup": {"inline_keyboard": [keys] if narrow else [[key] for key in keys]}}


def _key(button: Button, slot: int, number: int) -> dict[str, str]:
    return {"text": button.label, "callback_data": f"{slot}.{number}"}


def number_of(text: str) -> int:
    """A message's or topic's number. Raises `MessageGone`."""
    if not text.isdecimal():
        raise MessageGone(f"Telegram has no message {text}.")
    return int(text)
