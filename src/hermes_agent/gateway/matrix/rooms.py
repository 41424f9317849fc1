"""Matrix rooms: interface to encryption, cached facts about rooms and messages, and the parser of room events into
gateway events."""

from __future__ import annotations

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from hermes_agent.core.chat import Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.bounded_cache import BoundedCache
from hermes_agent.gateway.channel import Heard, Media, MessageGone, NeverHere, Pressed, Removed, Said, Sender, Withdrawn
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.matrix.client import (
    SIGNS,
    SLOT,
    Client,
    Event,
    count,
    inside,
    joined,
    number,
    table,
    tables,
    text,
)

SHUT = (
    "This room is encrypted, and I cannot read what is written here: use a room without encryption, or let my owner "
    "install `hermes-runtime[matrix-e2ee]` and set `gateway.channels.matrix.options.encryption` to `yes`."
)


class Crypto:
    """Interface for encrypted events; this default does none: encrypted rooms cannot be read, and nothing is sent to
    them.

    - `excuse`: the notice sent once to an unreadable room; `patience`: seconds to wait for a message's key;
    - `begin` is called before the first sync, `synced` with each sync answer before its rooms are processed;
    - `read` decrypts an event; None if it cannot;
    - `write` encrypts an event's type and content for a room; `lock` encrypts a file and returns what receivers need
      (`file` of the content); `unlock` decrypts one;
    - all raise only `ChannelError`.
    """

    excuse = SHUT
    patience = 0.0

    async def begin(self, user: str, device: str) -> None:
        """No-op."""

    async def synced(self, found: Event) -> None:
        """No-op."""

    async def read(self, room: str, event: Event) -> Event | None:  # noqa: ARG002  it reads none
        return None

    async def write(self, room: str, kind: str, content: Event) -> tuple[str, Event]:  # noqa: ARG002  it writes none
        raise NeverHere("The room is encrypted, and options.encryption is not `yes`.")

    def lock(self, content: bytes) -> tuple[bytes, Event]:  # noqa: ARG002  it writes none
        raise NeverHere("The room is encrypted, and options.encryption is not `yes`.")

    def unlock(self, content: bytes, keys: Event) -> bytes:  # noqa: ARG002  it reads none
        raise NeverHere("The file is encrypted, and options.encryption is not `yes`.")

    async def close(self) -> None:
        """No-op."""


PEOPLE_KNOWN = 50_000
"""Of so many people in rooms the names are kept; of the rooms that were asked for last at any rate."""
MESSAGES_KNOWN = 5000
ROOMS_KNOWN = 5000
NAME = "m.room.name"
ALONE = 2
"""People in a room that is a chat with one person: that one and the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Facts about a Matrix message: its author, whether it is the agent's, the outbox slot whose choices it shows (0:
    none), its thread."""

    user: str = ""
    mine: bool = False
    slot: int = 0
    thread: str = ""


class Rooms:
    """Cache of facts about Matrix rooms and messages: asks the homeserver for what is missing, and follows state
    events. `crypto` decrypts messages."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.crypto = Crypto()
        self._people: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._steps: Counter[str] = Counter()
        self._encrypted: dict[str, bool] = {}
        self._titles = BoundedCache[str, str](ROOMS_KNOWN)
        self.messages = BoundedCache[str, Known](MESSAGES_KNOWN)
        self.known_signs = BoundedCache[str, tuple[str, ...]](MESSAGES_KNOWN)
        self.gone = BoundedCache[str, bool](MESSAGES_KNOWN)
        self.own = ""

    async def people(self, room: str) -> Mapping[str, str]:
        """Members of a room with display names; empty if the agent is not in it."""
        while room not in self._people:
            step = self._steps[room]
            try:
                found = await self._client.call("GET", f"{joined('rooms', room)}/joined_members", reads=True)
            except (NeverHere, MessageGone):
                found = {}
            if step != self._steps[room]:
                continue  # Somebody came or went since that was answered.
            members = table(found.get("joined"))
            self._people[room] = {user: text(table(each).get("display_name")) for user, each in members.items()}
            known = sum(map(len, self._people.values()))
            while known > PEOPLE_KNOWN and len(self._people) > 1:
                known -= len(self._people.popitem(last=False)[1])
        return self._people[room]

    async def alone(self, room: str) -> bool:
        """Whether a room is a private chat; False if unknown."""
        return 0 < len(await self.people(room)) <= ALONE

    async def encrypted(self, room: str) -> bool:
        """Whether a room is encrypted. Raises `ChannelError` if unknown, so that nothing is sent unencrypted by
        mistake."""
        if room not in self._encrypted:
            try:
                path = f"{joined('rooms', room, 'state', 'm.room.encryption')}/"
                self._encrypted[room] = bool(await self._client.call("GET", path, reads=True))
            except MessageGone:
                self._encrypted[room] = False
        return self._encrypted[room]

    async def title(self, room: str) -> str:
        """A room's name; empty if it has none."""
        if (known := self._titles.get(room)) is not None:
            return known
        return self._titles.put(room, text((await self.state(room, NAME)).get("name")))

    async def state(self, room: str, kind: str) -> Event:
        """A room's state event content; empty if unavailable."""
        try:
            return await self._client.call("GET", f"{joined('rooms', room, 'state', kind)}/", reads=True)
        except (NeverHere, MessageGone):
            return {}

    def changed(self, room: str, event: Event) -> None:
        """Apply a state event."""
        content = table(event.get("content"))
        if event.get("type") == "m.room.encryption":
            self._encrypted[room] = True
        elif event.get("type") == NAME:
            self._titles.put(room, text(content.get("name")))
        elif event.get("type") == "m.room.member":
            self._steps[room] += 1
            if room not in self._people:
                return
            if content.get("membership") == "join":
                self._people[room][text(event.get("state_key"))] = text(content.get("displayname"))
            else:
                self._people[room].pop(text(event.get("state_key")), None)

    def forget(self, room: str) -> None:
        """Drop the cached members of a room."""
        self._steps[room] += 1
        self._people.pop(room, None)

    async def message(self, room: str, id_: str) -> Known:
        """Facts about a message."""
        if (known := self.messages.get(id_)) is None:
            try:
                found = await self._client.call("GET", joined("rooms", room, "event", id_), reads=True)
            except (NeverHere, MessageGone):
                found = {}
            if found.get("type") == "m.room.encrypted":
                found = {**found, **table(await self.crypto.read(room, found))}
            known = self.messages.put(id_, self._read(found))
        return known

    async def signs(self, room: str, id_: str) -> tuple[str, ...]:
        """Event ids of the agent's own button reactions to a message."""
        if (known := self.known_signs.get(id_)) is None:
            path = joined("rooms", room, "relations", id_, "m.annotation")
            found = tables((await self._client.call("GET", path, reads=True, version="v1")).get("chunk"))
            own = tuple(text(each.get("event_id")) for each in found if each.get("sender") == self.own)
            known = self.known_signs.put(id_, own)
        return known

    def _read(self, event: Event) -> Known:
        content = table(event.get("content"))
        newest = inside(event, "unsigned", "m.relations", "m.replace", "content", "m.new_content") or content
        return Known(
            user=text(event.get("sender")),
            mine=event.get("sender") == self.own,
            slot=count(newest.get(SLOT)),
            thread=thread_of(table(content.get("m.relates_to"))),
        )


def thread_of(relation: Event) -> str:
    """The thread root of a message; empty if it is in none."""
    return text(relation.get("event_id")) if relation.get("rel_type") == "m.thread" else ""


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
    """Parser of Matrix room events into gateway events. `own` is the agent's user id, `name` its display name.
    `threads`: a message to the agent in a group starts a thread."""

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
                self.rooms.gone.put(id_, True)
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
