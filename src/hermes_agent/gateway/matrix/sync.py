"""What Matrix tells, in its order: rooms, invitations and farewells, behind the last thing that was taken in."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.inbound import Conversation
from hermes_agent.gateway.channel import ChannelError, Kept, MessageGone, NeverHere
from hermes_agent.gateway.heard import Hear, Invited, Removed, Sender
from hermes_agent.gateway.matrix.client import Client, joined
from hermes_agent.gateway.matrix.crypto import Crypto
from hermes_agent.gateway.matrix.events import PLATFORM, Reader
from hermes_agent.gateway.matrix.rooms import Rooms, table

log = logging.getLogger(__name__)

PATIENCE_MILLISECONDS = 30_000
"""How long a homeserver holds an answer back until there is something to tell."""
FRESH_SECONDS = 600.0
"""How old a message may be that is taken in where the agent begins without a place to go on from."""
PAGE, PAGES = 100, 20
"""How much of what was missed is looked through: messages at a time, and how often, for each room."""
INVITATIONS = 200
"""So many invitations of strangers are looked at again when the agent begins the next time, the newest."""
STATE = ["m.room.create", "m.room.member", "m.room.encryption"]
TOLD = [*STATE, "m.room.message", "m.room.encrypted", "m.reaction", "m.room.redaction", "m.room.tombstone"]
NOTHING: dict[str, Any] = {"types": []}
FILTER = json.dumps(
    {
        "presence": NOTHING,
        "account_data": NOTHING,
        "room": {
            "account_data": NOTHING,
            "ephemeral": NOTHING,
            "state": {"types": STATE, "lazy_load_members": True},
            "timeline": {"types": TOLD, "limit": 50},
        },
    }
)
PLACE = "place"

Event = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Place:
    """How far the agent has come (empty: it has not begun), invitations that nobody it knows made, by room, and the
    rooms that were told that they cannot be read."""

    since: str = ""
    invitations: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def written(self) -> str:
        return json.dumps({"since": self.since, "invitations": self.invitations, "told": self.told})

    @classmethod
    def read(cls, text: str) -> Place:
        """What `written` gave; a place that has not begun where there is nothing to read."""
        try:
            found = json.loads(text)
            return cls(since=str(found["since"]), invitations=dict(found["invitations"]), told=list(found["told"]))
        except (ValueError, KeyError, TypeError):
            return Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Follows one account. `excuse` tells a room why nothing is read there."""

    client: Client
    rooms: Rooms
    crypto: Crypto
    reader: Reader
    kept: Kept
    now: Callable[[], float]
    excuse: Callable[[str], Awaitable[None]]

    async def follow(self, hear: Hear) -> None:
        """Tell what comes until cancelled. What was not taken in is told again by the next call. Raises `NotNow`,
        `TokenRefused`, and what `hear` raises."""
        where = f"channel:{PLATFORM}:{self.reader.own}"
        before = (await self.kept.of(where)).get(PLACE, "")
        place = Place.read(before)
        for room, user in list(place.invitations.items()):
            await self._invited(room, user, direct=False, place=place, hear=hear)
        while True:
            found = await self._next(place.since)
            await self._take(found, place, hear)
            place.since, matters = str(found.get("next_batch", "")), bool(found.get("rooms")) or not place.since
            if matters and (written := place.written()) != before:
                await self.kept.set(where, PLACE, written)
                before = written

    async def _next(self, since: str) -> dict[str, Any]:
        query = {"filter": FILTER, "timeout": str(PATIENCE_MILLISECONDS if since else 0)}
        if since:
            query["since"] = since
        return await self.client.call("GET", "sync", query=query, reads=True)

    async def _take(self, found: Event, place: Place, hear: Hear) -> None:
        await self.crypto.synced(found)
        rooms = found.get("rooms") or {}
        for room, each in (rooms.get("invite") or {}).items():
            await self._invitation(room, each, place, hear)
        for room, each in (rooms.get("join") or {}).items():
            for event in await self._events(room, each, place.since):
                await self._event(room, event, place, hear)
        for room, each in (rooms.get("leave") or {}).items():
            place.invitations.pop(room, None)
            self.rooms.forget(room)
            await self._left(room, each, hear)

    async def _invitation(self, room: str, found: Event, place: Place, hear: Hear) -> None:
        for event in (found.get("invite_state") or {}).get("events") or ():
            if event.get("type") == "m.room.member" and event.get("state_key") == self.reader.own:
                direct = bool(table(event.get("content")).get("is_direct"))
                await self._invited(room, str(event.get("sender", "")), direct=direct, place=place, hear=hear)

    async def _invited(self, room: str, user: str, *, direct: bool, place: Place, hear: Hear) -> None:
        """Go where somebody whom the agent knows asks it to; look at the others again when it begins the next time."""
        where = Conversation(platform=PLATFORM, chat_kind="dm" if direct else "group", chat=room)
        place.invitations[room] = user
        while len(place.invitations) > INVITATIONS:  # Anybody may invite, as often as they like.
            place.invitations.pop(next(iter(place.invitations)))
        if await hear(Invited(where=where, sender=Sender(user=user))):
            try:
                await self.client.call("POST", joined("join", room), {}, reads=True)
            except (NeverHere, MessageGone) as error:
                log.warning("matrix: the room %s cannot be entered: %s", room, error)
            self.rooms.forget(room)
            place.invitations.pop(room, None)

    async def _events(self, room: str, found: Event, since: str) -> Sequence[Event]:
        """What is new in a room, with what the answer left out; what was said before the agent came is not."""
        timeline = found.get("timeline") or {}
        events: list[Event] = list(timeline.get("events") or ())
        state = (found.get("state") or {}).get("events") or ()
        for event in state:
            self.rooms.changed(room, event)
        if timeline.get("limited"):
            self.rooms.forget(room)
        if not since:
            oldest = (self.now() - FRESH_SECONDS) * 1000
            return [event for event in events if float(event.get("origin_server_ts") or 0) >= oldest]
        if any(event.get("type") == "m.room.create" for event in (*state, *events)):
            return events[self._entry(events) :]
        if timeline.get("limited") and (before := timeline.get("prev_batch")):
            return [*await self._missed(room, str(before), since), *events]
        return events

    def _entry(self, events: Sequence[Event]) -> int:
        """Where the agent was asked into a room, or came into it."""
        own = {
            str(table(event.get("content")).get("membership")): index
            for index, event in enumerate(events)
            if event.get("type") == "m.room.member" and event.get("state_key") == self.reader.own
        }
        return own.get("invite", own.get("join", 0))

    async def _missed(self, room: str, before: str, since: str) -> list[Event]:
        """What happened in a room between two answers, oldest first."""
        missed: list[Event] = []
        end = before
        for _ in range(PAGES):
            query = {"dir": "b", "from": end, "to": since, "limit": str(PAGE), "filter": json.dumps({"types": TOLD})}
            page = await self.client.call("GET", joined("rooms", room, "messages"), query=query, reads=True)
            missed.extend(page.get("chunk") or ())
            end = str(page.get("end") or "")
            if not end or not page.get("chunk"):
                return missed[::-1]
        log.warning("matrix: more than %d messages of %s were missed; the oldest are passed over", PAGE * PAGES, room)
        return missed[::-1]

    async def _event(self, room: str, event: Event, place: Place, hear: Hear) -> None:
        if event.get("state_key") is not None:
            self.rooms.changed(room, event)
        if event.get("type") == "m.room.encrypted":
            if event.get("sender") == self.reader.own:
                return
            opened = await self.crypto.read(room, event)
            if opened is None:
                await self._excuse(room, place)
                return
            event = opened
            if room in place.told:
                place.told.remove(room)
        heard = await self.reader.heard(room, event)
        if heard is not None:
            await hear(heard)

    async def _excuse(self, room: str, place: Place) -> None:
        if room not in place.told:
            place.told.append(room)
            with suppress(ChannelError):
                await self.excuse(room)

    async def _left(self, room: str, found: Event, hear: Hear) -> None:
        events = (
            *((found.get("state") or {}).get("events") or ()),
            *((found.get("timeline") or {}).get("events") or ()),
        )
        for event in events:
            content = table(event.get("content"))
            mine = event.get("type") == "m.room.member" and event.get("state_key") == self.reader.own
            if mine and content.get("membership") in ("leave", "ban") and event.get("sender") != self.reader.own:
                why = f": {content['reason']}" if content.get("reason") else "."
                where = Conversation(platform=PLATFORM, chat_kind="group", chat=room)
                await hear(Removed(where=where, reason=f"{event.get('sender')} removed the agent from the room{why}"))
