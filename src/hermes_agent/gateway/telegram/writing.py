"""Builds Bot API arguments for outgoing messages: chat, reply, buttons, files and MarkdownV2 formatting."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from hermes_agent.core.chat import Button, Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import MessageGone, Part
from hermes_agent.gateway.text.markdown import Dialect, rendered

Plain = Mapping[str, Any]  # arguments and answers of the Bot API
WIDE = 12
"""Letters of a button's label with which it still shares its row."""


def draft_id(key: str) -> int:
    """Deterministic nonzero draft id for a key."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % 0x7FFFFFFF + 1


def place(to: Conversation, chat: str) -> dict[str, Any]:
    """Arguments for a chat (by its current id) and topic."""
    return {"chat_id": chat} | ({"message_thread_id": number_of(to.thread)} if to.thread else {})


def receipt_of(to: Conversation, chat: str, sent: Plain) -> str:
    """The receipt of a sent message; includes the chat id after a migration, as message ids restart there."""
    return f"{chat}:{sent['message_id']}" if chat != to.chat else str(sent["message_id"])


def message_at(to: Conversation, chat: str, receipt: str) -> dict[str, Any]:
    """Arguments for the message of a receipt. Raises `MessageGone` if it is in the group before its migration."""
    before, _, message = receipt.rpartition(":")
    if (before or to.chat) != chat:
        raise MessageGone("The message stands in the group that this one was before.")
    return {"chat_id": chat, "message_id": number_of(message)}


def reply_to(part: Part, chat: str) -> dict[str, Any]:
    """Reply arguments, if the answered message is in this chat."""
    before, _, message = part.answers.rpartition(":")
    if not message.isdecimal() or before not in ("", chat):
        return {}
    return {"reply_parameters": {"message_id": int(message), "allow_sending_without_reply": True}}


def keyboard(part: Part) -> dict[str, Any]:
    """Inline keyboard for a part's buttons; narrow ones share a row."""
    if not part.buttons:
        return {}
    keys = [_key(button, part.slot, number) for number, button in enumerate(part.buttons)]
    narrow = all(len(button.label) <= WIDE for button in part.buttons)
    return {"reply_markup": {"inline_keyboard": [keys] if narrow else [[key] for key in keys]}}


def _key(button: Button, slot: int, number: int) -> dict[str, str]:
    return {"text": button.label, "callback_data": f"{slot}.{number}"}


def number_of(text: str) -> int:
    """Parse a message or topic number. Raises `MessageGone`."""
    if not text.isdecimal():
        raise MessageGone(f"Telegram has no message {text}.")
    return int(text)


MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A Bot API method that sends a file: its name, the argument for the file, and its size limit in bytes."""

    method: str
    field: str
    largest: int = 50 * MB


DOCUMENT = Way(method="sendDocument", field="document")
PHOTO = Way(method="sendPhoto", field="photo", largest=10 * MB)
VIDEO = Way(method="sendVideo", field="video")
AUDIO = Way(method="sendAudio", field="audio")
VOICE = Way(method="sendVoice", field="voice")
ANIMATION = Way(method="sendAnimation", field="animation")
WAYS: Mapping[str, Way] = {
    "image/jpeg": PHOTO,
    "image/png": PHOTO,
    "image/gif": ANIMATION,
    "video/mp4": VIDEO,
    "audio/mpeg": AUDIO,
    "audio/mp4": AUDIO,
    "audio/x-m4a": AUDIO,
    "audio/mp4a-latm": AUDIO,
    "audio/ogg": VOICE,
    "audio/opus": VOICE,
}
"""Media types -> what core.telegram.org/bots/api says takes them; every other file is a document."""


def ways_of(media_type: str, size: int) -> tuple[Way, ...]:
    """The methods to try for a file, best first."""
    way = WAYS.get(media_type, DOCUMENT)
    return (way, DOCUMENT) if way is not DOCUMENT and size <= way.largest else (DOCUMENT,)


RESERVED = str.maketrans({sign: f"\\{sign}" for sign in "_*[]()~`>#+-=|{}.!\\"})
IN_CODE = re.compile(r"([`\\])")
IN_LINK = re.compile(r"([)\\])")
NAME = re.compile(r"(?<![\w@.])@(?=\w)")
OWN_SCHEME = "tg:"
"""Links of Telegram's own mention people by their ids, and press what a person would have to."""
UNMEANT, WIDE_SIGN = "@\N{WORD JOINER}", "\N{FULLWIDTH COMMERCIAL AT}"
LONGEST = 4096


def formatted(text: str) -> str:
    """Convert Markdown to MarkdownV2 (`parse_mode`), without creating mentions."""
    marked = rendered(text, MARKDOWN_V2)
    return marked if _has_room(text) else marked.replace(UNMEANT, WIDE_SIGN)


def escaped(text: str) -> str:
    """Escape text so that nothing in it is markup."""
    return NAME.sub(UNMEANT, text).translate(RESERVED)


def unmeant(text: str) -> str:
    """Plain text without creating mentions."""
    return NAME.sub(UNMEANT if _has_room(text) else WIDE_SIGN, text)


def _has_room(text: str) -> bool:
    """Whether the message still fits with one more character per name."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 + text.count("@") <= LONGEST


def _link(shown: str, address: str) -> str:
    if address.lower().startswith(OWN_SCHEME):
        return f"{shown} \\({escaped(address)}\\)"
    return f"[{shown}]({IN_LINK.sub(chr(92) * 2 + chr(92) + '1', address)})"


MARKDOWN_V2 = Dialect(
    escape=escaped,
    code=lambda text: IN_CODE.sub(r"\\\1", text),
    link=_link,
    quote=">",
    languages=True,
)
