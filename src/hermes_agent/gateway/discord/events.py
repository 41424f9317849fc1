"""Parses Discord events into gateway events."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from hermes_agent.core.chat import Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import Heard, Media, Pressed, Quoted, Removed, Said, Sender, Withdrawn

PLATFORM = "discord"
BUTTON = "hermes"
SPOKEN = frozenset({0, 19})
"""Kinds of messages that people write: plain ones and replies."""
MENTION = re.compile(r"<@!?(\d+)>")
SOMEBODY = re.compile(r"<@!?(\d{15,20})>")
"""One who may be nobody there, for whom anybody may write any number: shorter ones are no ids, but numbers of texts."""
COMPONENT = 3
VOICE = 1 << 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Name of a Discord channel or thread, and a thread's parent channel."""

    parent: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Parser of Discord events into gateway events. `own` is the bot's user id; `place` looks up a channel or thread,
    `role` the bot's own role in a server; `now` is the time."""

    own: str
    place: Callable[[str], Awaitable[Place]]
    role: Callable[[str], Awaitable[str]]
    now: Callable[[], float]

    async def heard(self, name: str, data: Mapping[str, Any]) -> Heard | None:
        """Parse an event; None if it is irrelevant."""
        found: Heard | None = None
        match name:
            case "MESSAGE_CREATE":
                found = await self._said(data)
            case "MESSAGE_UPDATE" if stamp := data.get("edited_timestamp"):
                found = await self._said(data, edited=str(stamp))
            case "MESSAGE_DELETE":  # Discord lets the sender and moderators do it, and does not say who did.
                found = Withdrawn(source_id=str(data.get("id")), where=await self._where(data))
            case "INTERACTION_CREATE":
                found = await self._pressed(data)
            case "CHANNEL_DELETE":
                found = Removed(where=_place(str(data.get("id", "")), "", data), reason="The channel was deleted.")
            case "THREAD_DELETE":
                where = _place(str(data.get("parent_id", "")), str(data.get("id", "")), data)
                found = Removed(where=where, reason="The thread was deleted.")
        return found

    async def _said(self, data: Mapping[str, Any], *, edited: str = "") -> Said | None:
        author = data.get("author") or {}
        user = str(author.get("id", ""))
        if not user or user == self.own or data.get("type", 0) not in SPOKEN:
            return None
        member, replied = data.get("member") or {}, data.get("referenced_message") or {}
        forwarded = [each.get("message") or {} for each in data.get("message_snapshots") or ()]
        mentioned = {str(each.get("id")): _name(each) for each in data.get("mentions") or ()}
        # People take its role, which has its name, for the agent itself.
        called = {str(each) for each in data.get("mention_roles") or ()}
        role = await self.role(str(data.get("guild_id", ""))) if called else ""
        text = "\n".join(str(each.get("content", "")) for each in (data, *forwarded))
        writer = str((replied.get("author") or {}).get("id", ""))
        return Said(
            source_id=str(data.get("id")),
            where=await self._where(data),
            sender=Sender(
                user=user,
                name=str(member.get("nick") or _name(author)),
                groups=tuple(str(role) for role in member.get("roles") or ()),
                bot=bool(author.get("bot")) or data.get("webhook_id") is not None,
            ),
            text=plain(text.replace(f"<@&{role}>", "") if role else text, self.own, mentioned),
            at=self._time(data),
            media=tuple(
                self._media(file, each) for each in (data, *forwarded) for file in each.get("attachments") or ()
            ),
            addressed=self.own in mentioned or role in called or writer == self.own,
            edited=edited,
            forwarded=bool(forwarded),
            quoted=self._quoted(replied),
            title=(await self._place(data)).name,
            named=(writer, *mentioned, *SOMEBODY.findall(f"{text} {replied.get('content')}")),
        )

    def _quoted(self, replied: Mapping[str, Any]) -> Quoted | None:
        """The replied-to message, unless the bot wrote it."""
        names = {str(each.get("id")): _name(each) for each in replied.get("mentions") or ()}
        text = plain(str(replied.get("content", "")), self.own, names)
        media = tuple(self._media(file, replied) for file in replied.get("attachments") or ())
        own = str((replied.get("author") or {}).get("id", "")) == self.own
        return Quoted(text=text, media=media) if (text or media) and not own else None

    def _media(self, file: Mapping[str, Any], data: Mapping[str, Any]) -> Media:
        url = str(file.get("url", ""))
        kind = str(file.get("content_type") or "application/octet-stream").split(";")[0]
        return Media(
            name=str(file.get("filename") or "file"),
            media_type=kind,
            size=int(file.get("size") or 0),
            reference=url,
            voice=bool(int(data.get("flags") or 0) & VOICE),
        )

    async def _pressed(self, data: Mapping[str, Any]) -> Pressed | None:
        mark, _, rest = str((data.get("data") or {}).get("custom_id", "")).partition(":")
        slot, _, choice = rest.partition(":")
        if data.get("type") != COMPONENT or mark != BUTTON or not slot.isdecimal() or not choice.isdecimal():
            return None
        member = data.get("member") or {}
        user = member.get("user") or data.get("user") or {}
        roles = tuple(str(role) for role in member.get("roles") or ())
        return Pressed(
            source_id=str(data.get("id")),
            where=await self._where(data),
            sender=Sender(user=str(user.get("id", "")), name=str(member.get("nick") or _name(user)), groups=roles),
            slot=int(slot),
            choice=int(choice),
            at=self.now(),
        )

    async def _where(self, data: Mapping[str, Any]) -> Conversation:
        channel, parent = str(data.get("channel_id", "")), (await self._place(data)).parent
        return _place(parent or channel, channel if parent else "", data)

    async def _place(self, data: Mapping[str, Any]) -> Place:
        return await self.place(str(data.get("channel_id", ""))) if data.get("guild_id") else Place()

    def _time(self, data: Mapping[str, Any]) -> float:
        try:
            return datetime.fromisoformat(str(data.get("timestamp"))).timestamp()
        except ValueError:
            return self.now()


def singly(name: str, data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Split a bulk deletion into single events; other events pass unchanged."""
    if name == "MESSAGE_DELETE_BULK":
        for id_ in data.get("ids") or ():
            yield "MESSAGE_DELETE", {**data, "id": id_}
    else:
        yield name, data


def plain(text: str, own: str, mentioned: Mapping[str, str]) -> str:
    """Message text with mentions replaced by names, without the bot's own."""

    def mention(found: re.Match[str]) -> str:
        return "" if found[1] == own else f"@{mentioned.get(found[1], found[1])}"

    text = MENTION.sub(mention, text)
    return re.sub(r"<a?(:\w+:)\d+>", r"\1", text).strip()


def _name(user: Mapping[str, Any]) -> str:
    return str(user.get("global_name") or user.get("username") or "")


def _place(chat: str, thread: str, data: Mapping[str, Any]) -> Conversation:
    kind = "group" if data.get("guild_id") else "dm"
    return Conversation(platform=PLATFORM, chat_kind=kind, chat=chat, thread=thread)
