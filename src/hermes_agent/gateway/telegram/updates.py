"""Parses Telegram updates into gateway events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_agent.core.chat import Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import Heard, Media, Pressed, Quoted, Removed, Said, Sender

Plain = Mapping[str, Any]  # one object of the Bot API
LISTENED = ("message", "edited_message", "callback_query", "my_chat_member")
FORWARDED = ("forward_origin", "forward_date")
"""Fields of a message that another one was forwarded in; the second one is that of older servers."""
LONGEST_NUMBER = 20
FILES = {
    "document": "",
    "audio": "audio/mpeg",
    "video": "video/mp4",
    "video_note": "video/mp4",
    "voice": "audio/ogg",
    "animation": "video/mp4",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Id and name of the Telegram bot itself."""

    id: int
    name: str


def heard_in(update: Plain, me: Me) -> Heard | None:
    """Parse an update; None if it is irrelevant."""
    if message := update.get("message"):
        return _said(message, me)
    if message := update.get("edited_message"):
        return _said(message, me, edited=str(message.get("edit_date", update.get("update_id"))))
    if query := update.get("callback_query"):
        return _pressed(query)
    if changed := update.get("my_chat_member"):
        return _removed(changed)
    return None


def moved_in(update: Plain) -> tuple[str, str] | None:
    """A group migration in the update: the old and the new id; None if it has none."""
    message = update.get("message") or {}
    chat = str((message.get("chat") or {}).get("id", ""))
    if to := message.get("migrate_to_chat_id"):
        return chat, str(to)
    if before := message.get("migrate_from_chat_id"):
        return str(before), chat
    return None


def where_of(message: Plain) -> Conversation:
    """The conversation (chat and topic) of a message."""
    chat = message["chat"]
    thread = str(message.get("message_thread_id", "")) if message.get("is_topic_message") else ""
    return Conversation(
        platform="telegram",
        chat_kind="dm" if chat["type"] == "private" else "group",
        chat=str(chat["id"]),
        thread=thread,
    )


def _said(message: Plain, me: Me, *, edited: str = "") -> Said | None:
    if "from" not in message:
        return None  # A channel's own post, or a service of Telegram.
    text, named, for_others = _words(message, me)
    media = _media(message)
    if for_others or not (text or media):
        return None
    where = where_of(message)
    answers = message.get("reply_to_message") or message.get("external_reply") or {}
    answered = answers.get("from", {}).get("id") == me.id
    return Said(
        source_id=f"{where.chat}:{message['message_id']}",
        where=where,
        sender=_sender(message["from"]),
        text=text,
        at=float(message.get("edit_date") or message["date"]),
        media=media,
        addressed=named or answered or where.chat_kind == "dm",
        edited=edited,
        forwarded=any(mark in message for mark in FORWARDED),
        quoted=_quoted(message, answers, own=answered),
        title=str(message["chat"].get("title") or ""),
        named=_named(message, answers),
    )


def _named(message: Plain, answers: Plain) -> tuple[str, ...]:
    """Ids of people mentioned, answered or forwarded from."""
    entities = message.get("entities") or message.get("caption_entities") or ()
    origin = message.get("forward_origin") or {}
    people = (*(each.get("user") for each in entities), answers.get("from"), origin.get("sender_user"))
    return tuple(str(each["id"]) for each in people if each)


def _quoted(message: Plain, answers: Plain, *, own: bool) -> Quoted | None:
    """The replied-to text: the selected part, or all of it unless the bot wrote it."""
    chosen = str((message.get("quote") or {}).get("text") or "")
    if own:
        return Quoted(text=chosen) if chosen else None
    text, media = chosen or str(answers.get("text") or answers.get("caption") or ""), _media(answers)
    return Quoted(text=text, media=media) if text or media else None


def _words(message: Plain, me: Me) -> tuple[str, bool, bool]:
    """The text without the bot's name; whether it was mentioned; whether a command is for another bot."""
    text = str(message.get("text") or message.get("caption") or _wordless(message))
    entities = message.get("entities") or message.get("caption_entities") or ()
    units = text.encode("utf-16-le", "surrogatepass")
    named = False
    for entity in sorted(entities, key=lambda each: -int(each["offset"])):
        start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
        words = units[start:end].decode("utf-16-le", "surrogatepass")
        command, _, bot = words.partition("@")
        mine = bot.lower() == me.name.lower()
        match entity["type"]:
            case "mention" if mine:
                named, units = True, units[:start] + units[end:]
            case "text_mention" if entity.get("user", {}).get("id") == me.id:
                named, units = True, units[:start] + units[end:]
            case "bot_command" if bot and not mine:
                return text, False, True
            case "bot_command" if bot:
                named, units = True, units[:start] + command.encode("utf-16-le") + units[end:]
            case _:
                pass
    return units.decode("utf-16-le", "surrogatepass").strip(), named, False


def _wordless(message: Plain) -> str:
    """Text for messages without any: location, contact, poll, sticker, dice."""
    sign, dice = message.get("sticker") or {}, message.get("dice") or {}
    venue, place = message.get("venue") or {}, message.get("location") or {}
    who, poll = message.get("contact") or {}, message.get("poll") or {}
    choices = ", ".join(str(each.get("text", "")) for each in poll.get("options") or ())
    told = {
        "A place": (venue.get("title"), venue.get("address"), place.get("latitude"), place.get("longitude")),
        "A contact": (who.get("first_name"), who.get("last_name"), who.get("phone_number")),
        "A poll": (f"{poll.get('question', '')} {choices}".strip(),),
    }
    for name, facts in told.items():
        if known := ", ".join(str(each) for each in facts if each not in (None, "")):
            return f"({name}: {known})"
    return str(sign.get("emoji") or "") or f"{dice.get('emoji', '')} {dice.get('value', '')}".strip()


def _sender(user: Plain) -> Sender:
    name = " ".join(filter(None, (user.get("first_name"), user.get("last_name")))) or str(user.get("username") or "")
    return Sender(user=str(user["id"]), name=name, bot=bool(user.get("is_bot")))


def _media(message: Plain) -> tuple[Media, ...]:
    found: list[Media] = []
    if photos := message.get("photo"):
        best = max(photos, key=lambda each: int(each.get("width", 0)))
        found.append(_file(best, "photo.jpg", "image/jpeg"))
    for kind, media_type in FILES.items():
        if (file := message.get(kind)) and not (kind == "document" and message.get("animation")):
            name = str(file.get("file_name") or f"{kind}.{media_type.partition('/')[2] or 'bin'}")
            found.append(_file(file, name, media_type or "application/octet-stream", voice=kind == "voice"))
    return tuple(found)


def _file(file: Plain, name: str, media_type: str, *, voice: bool = False) -> Media:
    return Media(
        name=name,
        media_type=str(file.get("mime_type") or media_type),
        size=int(file.get("file_size") or 0),
        reference=str(file["file_id"]),
        voice=voice,
    )


def _pressed(query: Plain) -> Pressed | None:
    message = query.get("message")
    slot, _, choice = str(query.get("data") or "").partition(".")
    if message is None or not (slot.isdecimal() and choice.isdecimal() and len(query["data"]) <= 2 * LONGEST_NUMBER):
        return None
    return Pressed(
        source_id=f"press:{query['id']}",
        where=where_of(message),
        sender=_sender(query["from"]),
        slot=int(slot),
        choice=int(choice),
        at=float(message.get("date") or 0),
    )


def _removed(changed: Plain) -> Removed | None:
    status = changed.get("new_chat_member", {}).get("status")
    if status not in ("left", "kicked"):
        return None
    return Removed(where=where_of({"chat": changed["chat"]}), reason=f"The bot was {status}.")
