"""What Matrix tells, in its order: rooms, invitations and farewells, behind the last thing that was taken in."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.access import harmless
from hermes_agent.gateway.channel import ChannelError, MessageGone, NeverHere, NotNow
from hermes_agent.gateway.inbound_events import Hear, Removed, Said
from hermes_agent.gateway.matrix.client import Client, joined
from hermes_agent.gateway.matrix.crypto import Crypto
from hermes_agent.gateway.matrix.events import Reader
from hermes_agent.gateway.matrix.membership import Membership
from hermes_agent.gateway.matrix.place import Place, Places
from hermes_agent.gateway.matrix.rooms import NAME, Rooms
from hermes_agent.gateway.matrix.shapes import Event, inside, number, table, tables, text
from hermes_agent.gateway.matrix.verifying import PREFIX, is_verification
from hermes_agent.host.tasks import spawn

log = logging.getLogger(__name__)

PATIENCE_MILLISECONDS = 30_000
"""How long a homeserver holds an answer back until there is something to tell."""
KEYS_MILLISECONDS = 3_000
"""The same while a message waits for its key."""
FRESH_SECONDS = 600.0
"""How old a message may be that is taken in where the agent begins without a place to go on from."""
PAGE, PAGES = 100, 20
"""How much of what was missed is looked through: messages at a time, and how often, for each room."""
STATE = ["m.room.create", "m.room.member", "m.room.encryption", NAME]
TOLD = [
    *STATE,
    "m.room.message",
    "m.room.encrypted",
    "m.reaction",
    "m.room.redaction",
    "m.room.tombstone",
    f"{PREFIX}*",
]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Follows one account. `excuse` tells a room why a message there was not read, `say` sends it an event."""

    client: Client
    rooms: Rooms
    crypto: Crypto
    reader: Reader
    entering: Membership
    places: Places
    now: Callable[[], float]
    excuse: Callable[[str, str], Awaitable[None]]
    say: Callable[[str, str, Event], Awaitable[None]]

    async def follow(self, hear: Hear) -> None:
        """Tell what comes until cancelled. What was not taken in is told again by the next call. Raises `NotNow`,
        `TokenRefused`, and what `hear` raises."""
        place = await self.places.begin()
        self.entering.looked = 0.0
        seen: dict[str, str] = {}
        reading: asyncio.Task[None] | None = None
        try:
            while True:
                matters = await self._on(place, seen, hear)
                if matters:
                    await self.places.keep(place)
                if seen and (reading is None or reading.done()):
                    reading = spawn(self._read(seen), name="read receipts")
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.wait((reading,))

    async def _on(self, place: Place, seen: dict[str, str], hear: Hear) -> bool:
        """Take in one answer, note in `seen` what was read; whether there was anything in it for the agent."""
        await self.entering.again(place, hear)
        found = await self._next(place)
        if not (since := text(found.get("next_batch"))):
            raise NotNow("The homeserver's answer cannot be read.")
        await self._take(found, place, seen, hear)
        late = await self._late(found, place, hear)
        matters = late or bool(found.get("rooms")) or not place.since
        place.since = since
        return matters

    async def _next(self, place: Place) -> Event:
        patience = KEYS_MILLISECONDS if place.unread else PATIENCE_MILLISECONDS
        query = {"filter": FILTER, "timeout": str(patience if place.since else 0)}
        if place.since:
            query["since"] = place.since
        return await self.client.call("GET", "sync", query=query, reads=True)

    async def _take(self, found: Event, place: Place, seen: dict[str, str], hear: Hear) -> None:
        """Take in what an answer holds; `seen` is the last message that was read, by room."""
        await self.crypto.synced(found)
        for room, each in inside(found, "rooms", "invite").items():
            await self._invitation(room, table(each), place, hear)
        for room, each in inside(found, "rooms", "join").items():
            for event in await self._events(room, table(each), place.since):
                if await self._event(room, event, place, hear):
                    seen[room] = text(event.get("event_id"))
        for room, each in inside(found, "rooms", "leave").items():
            place.forget(room)
            self.rooms.forget(room)
            await self._left(room, table(each), hear)

    async def _invitation(self, room: str, found: Event, place: Place, hear: Hear) -> None:
        for event in tables(inside(found, "invite_state").get("events")):
            if event.get("type") == "m.room.member" and event.get("state_key") == self.reader.own:
                direct = inside(event, "content").get("is_direct") is True
                await self.entering.invited(room, text(event.get("sender")), place, hear, direct=direct)

    async def _events(self, room: str, found: Event, since: str) -> Sequence[Event]:
        """What is new in a room, with what the answer left out; what was said before the agent came is not."""
        timeline = inside(found, "timeline")
        events = tables(timeline.get("events"))
        state = tables(inside(found, "state").get("events"))
        for event in state:
            self.rooms.changed(room, event)
        if timeline.get("limited"):
            self.rooms.forget(room)
        if not since:
            oldest = (self.now() - FRESH_SECONDS) * 1000
            return [event for event in events if number(event.get("origin_server_ts")) >= oldest]
        if any(event.get("type") == "m.room.create" for event in (*state, *events)):
            return events[self._entry(events) :]
        if timeline.get("limited") and (before := text(timeline.get("prev_batch"))):
            return [*await self._missed(room, before, since), *events]
        return events

    def _entry(self, events: Sequence[Event]) -> int:
        """Where the agent was asked into a room, or came into it."""
        own = {
            text(inside(event, "content").get("membership")): index
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
            chunk = tables(page.get("chunk"))
            missed.extend(chunk)
            end = text(page.get("end"))
            if not end or not chunk:
                return missed[::-1]
        log.warning("matrix: more than %d messages of %s were missed; the oldest are passed over", PAGE * PAGES, room)
        return missed[::-1]

    async def _event(self, room: str, event: Event, place: Place, hear: Hear) -> bool:
        """Tell what happened; whether it was a message that was read."""
        if event.get("state_key") is not None:
            self.rooms.changed(room, event)
            await self.entering.crowded(room, place)
        if event.get("type") == "m.room.tombstone" and await self.entering.replaced(room, event, hear):
            return False
        if event.get("type") == "m.room.encrypted" and event.get("sender") != self.reader.own:
            opened = await self.crypto.read(room, event)
            if opened is None:
                await self._unread(room, text(event.get("event_id")), place)
                return False
            event = opened
            if room in place.told:
                place.told.remove(room)
        return await self._handle(room, event, hear)

    async def _handle(self, room: str, event: Event, hear: Hear) -> bool:
        if is_verification(event, self.reader.own) and event.get("sender") != self.reader.own:
            self.crypto.verify(event, partial(self.say, room))
            return False
        heard = await self.reader.heard(room, event)
        if heard is not None:
            await hear(heard)
        return isinstance(heard, Said)

    async def _unread(self, room: str, id_: str, place: Place) -> None:
        """A message cannot be read: its key may be behind it, or never comes."""
        if self.crypto.patience:
            place.wait(id_, room, self.now())
        else:
            await self._excuse(room, id_, place)

    async def _late(self, found: Event, place: Place, hear: Hear) -> bool:
        """Read messages whose keys may have come since, and say it where one does not come; whether there was any."""
        settled, keys = False, bool(tables(inside(found, "to_device").get("events")))
        for id_, (room, at) in list(place.unread.items()):
            over = self.now() - at >= self.crypto.patience
            opened = await self._opened(room, id_) if keys or over else None
            if opened is not None:
                await self._handle(room, opened, hear)
            elif over:
                await self._excuse(room, id_, place)
            else:
                continue
            settled = True
            del place.unread[id_]
        return settled

    async def _opened(self, room: str, id_: str) -> Event | None:
        try:
            event = await self.client.call("GET", joined("rooms", room, "event", id_), reads=True)
        except (NeverHere, MessageGone):
            return None
        if event.get("type") != "m.room.encrypted" or not event.get("content"):
            return event  # Nothing is left of a message that was taken away.
        return await self.crypto.read(room, event)

    async def _excuse(self, room: str, id_: str, place: Place) -> None:
        if room not in place.told:
            place.told.append(room)
            with suppress(ChannelError):
                await self.excuse(room, id_)

    async def _read(self, seen: dict[str, str]) -> None:
        """Show people that what they wrote arrived."""
        while seen:
            room, id_ = seen.popitem()
            with suppress(ChannelError):
                path = joined("rooms", room, "receipt", "m.read", id_)
                await self.client.call("POST", path, {}, reads=True)

    async def _left(self, room: str, found: Event, hear: Hear) -> None:
        events = (
            *tables(inside(found, "state").get("events")),
            *tables(inside(found, "timeline").get("events")),
        )
        for event in events:
            content = inside(event, "content")
            mine = event.get("type") == "m.room.member" and event.get("state_key") == self.reader.own
            if mine and content.get("membership") in ("leave", "ban") and event.get("sender") != self.reader.own:
                where = await self.reader.where(room, "")
                # Told as theirs: the owner reads it in what the agent writes.
                words = text(content.get("reason"))
                why = f', saying "{harmless(words)}"' if words else ""
                await hear(Removed(where=where, reason=f"{event.get('sender')} removed the agent from the room{why}."))
