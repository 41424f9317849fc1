"""Parses Matrix room events into gateway events."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from urllib.parse import unquote

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Conversation
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.inbound_events import Heard, Media, Pressed, Removed, Said, Sender, Withdrawn
from hermes_agent.gateway.matrix.client import SIGNS, SLOT, Event, count, inside, number, table, text
from hermes_agent.gateway.matrix.rooms import Rooms, thread_of

PLATFORM = "matrix"
FILES = frozenset({"m.image", "m.file", "m.audio", "m.video"})
SPOKEN = frozenset({"m.text", "m.emote", "m.notice", "m.location"}) | FILES
QUOTED = re.compile(r"\A(?:>[^\n]*\n)+\n?")
"""The message that a reply of an older program repeats."""
PERSON = re.compile(r"@[\w.=/+-]+:[\w.-]*\w(?::\d+)?")
"""An id as it stands in a text."""
PLAIN_SIGNS = tuple(sign.replace("\ufe0f", "") for sign in SIGNS)
VOICE = ("m.voice", "org.matrix.msc3245.voice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Event parser. `own` is the agent's user id, `name` its display name. `threads`: a message to the agent in a
    group starts a thread."""

    own: str
    name: str
    rooms: Rooms
    moves: ChatMigration
    threads: bool

    async def heard(self, room: str, event: Event) -> Heard | None:
        """Parse a room event; None if it is irrelevant."""
        if event.get("sender") == self.own and event.get("type") != "m.room.redaction":
            return None
        content = table(event.get("content"))
        match event.get("type"):
            case "m.room.message":
                return await self._said(room, event, content)
            case "m.reaction":
                return await self._pressed(room, event, content)
            case "m.room.redaction":
                id_ = text(event.get("redacts")) or text(content.get("redacts"))
                self.rooms.redacted(id_)
                # A homeserver lets nobody do it but whoever wrote it and those who moderate the room.
                by = text(event.get("sender"))
                return Withdrawn(source_id=id_, where=await self.where(room, ""), by=by, moderates=True)
            case "m.room.tombstone":
                reason = f"the room was replaced by {text(content.get('replacement_room'))}; invite me there."
                return Removed(where=await self.where(room, ""), reason=reason)
        return None

    async def where(self, room: str, thread: str) -> Conversation:
        """The conversation of a room (by its first predecessor's id) and thread."""
        kind = "dm" if await self.rooms.alone(room) else "group"
        return Conversation(platform=PLATFORM, chat_kind=kind, chat=await self.moves.first(room), thread=thread)

    async def _said(self, room: str, event: Event, content: Event) -> Said | None:
        relation = table(content.get("m.relates_to"))
        id_, replaces = text(event.get("event_id")), relation.get("rel_type") == "m.replace"
        if replaces:
            id_ = text(relation.get("event_id"))
            content = table(content.get("m.new_content"))
        kind = text(content.get("msgtype"))
        if kind not in SPOKEN:
            return None  # A redacted message has no content left.
        user, thread = text(event.get("sender")), thread_of(relation)
        if replaces:
            before = await self.rooms.message(room, id_)
            if before.user != user:
                return None  # Only who wrote a message changes it, whatever servers let through.
            thread = before.thread
        addressed = await self._addressed(room, content, relation)
        where = await self.where(room, thread)
        if where.chat_kind == "dm":
            where = replace(where, participant=user)  # Whoever else is alone with the agent there some day is another.
        elif self.threads and addressed and not thread:
            where = replace(where, thread=id_)
        return Said(
            source_id=id_,
            where=where,
            sender=Sender(
                user=user,
                name=(await self.rooms.people(room)).get(user, ""),
                bot=kind == "m.notice" or SLOT in content,
            ),
            text=self._words(content, replied="m.in_reply_to" in relation, addressed=addressed),
            at=number(event.get("origin_server_ts")) / 1000,
            media=(self._media(content),) if kind in FILES else (),
            addressed=addressed,
            edited=text(event.get("event_id")) if replaces else "",
            title="" if where.chat_kind == "dm" else await self.rooms.title(room),
            named=tuple(PERSON.findall(unquote(text(content.get("body"))))),
        )

    async def _addressed(self, room: str, content: Event, relation: Event) -> bool:
        mentioned = table(content.get("m.mentions")).get("user_ids")
        if isinstance(mentioned, list) and self.own in mentioned:
            return True
        body = text(content.get("body"))
        if self.own in body or (
            self.name and body.lower().startswith((f"{self.name.lower()}:", f"@{self.name.lower()}"))
        ):
            return True
        answered = text(inside(relation, "m.in_reply_to").get("event_id"))
        if relation.get("rel_type") == "m.thread" and relation.get("is_falling_back", False):
            answered = text(relation.get("event_id"))
        return bool(answered) and (await self.rooms.message(room, answered)).mine

    def _words(self, content: Event, *, replied: bool, addressed: bool) -> str:
        """The person's text, without the agent's name and quoted reply."""
        body = text(content.get("body"))
        if content.get("msgtype") in FILES and content.get("filename", body) == body:
            return ""  # The name of a file that has no words beside it.
        if replied:
            body = QUOTED.sub("", body)
        if addressed:
            names = "|".join(
                re.escape(name) for name in (self.own[1:], self.name, self.own[1:].partition(":")[0]) if name
            )
            body = re.sub(rf"\A\s*@?(?:{names})(?:[:,]\s*|\s+|\Z)", "", body, count=1, flags=re.IGNORECASE)
        if place := text(content.get("geo_uri")):
            body = f"{body} ({place})"
        return body.strip()

    def _media(self, content: Event) -> Media:
        info = table(content.get("info"))
        return Media(
            name=text(content.get("filename")) or text(content.get("body")) or "file",
            media_type=(text(info.get("mimetype")) or "application/octet-stream").split(";")[0],
            size=count(info.get("size")),
            reference=json.dumps({name: content[name] for name in ("url", "file") if name in content}),
            voice=any(mark in content for mark in VOICE),
        )

    async def _pressed(self, room: str, event: Event, content: Event) -> Pressed | None:
        relation = table(content.get("m.relates_to"))
        sign = text(relation.get("key")).replace("\ufe0f", "")
        if sign not in PLAIN_SIGNS:
            return None
        under = await self.rooms.message(room, text(relation.get("event_id")))
        if not under.mine or not under.slot:
            return None
        user = text(event.get("sender"))
        return Pressed(
            source_id=text(event.get("event_id")),
            where=await self.where(room, under.thread),
            sender=Sender(user=user, name=(await self.rooms.people(room)).get(user, "")),
            slot=under.slot,
            choice=PLAIN_SIGNS.index(sign),
            at=number(event.get("origin_server_ts")) / 1000,
        )
