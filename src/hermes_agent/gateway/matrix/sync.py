"""Matrix sync loop: follows rooms, invitations and removals in order, from the saved sync token."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.access_control import harmless
from hermes_agent.gateway.channel import ChannelError, Hear, MessageGone, NeverHere, NotNow, Removed
from hermes_agent.gateway.dispatcher import Cursor, Dispatcher, dispatching, is_control
from hermes_agent.gateway.matrix.client import Client, Event, inside, joined, number, table, tables, text
from hermes_agent.gateway.matrix.membership import Membership, Place, Places
from hermes_agent.gateway.matrix.rooms import NAME, Crypto, Reader, Rooms

log = logging.getLogger(__name__)

PATIENCE_MILLISECONDS = 30_000
"""How long a homeserver holds an answer back until there is something to tell."""
KEYS_MILLISECONDS = 3_000
"""The same while a message waits for its key."""
SOON_MILLISECONDS = 1_000
"""The same while something is still being taken in."""
FRESH_SECONDS = 600.0
"""How old a message may be that is taken in where the agent begins without a place to go on from."""
PAGE, PAGES = 100, 20
"""How much of what was missed is looked through: messages at a time, and how often, for each room."""
STATE = ["m.room.create", "m.room.member", "m.room.encryption", NAME]
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


@dataclass(slots=True, kw_only=True)
class Progress:
    """Position of the Matrix sync loop: `since` is the next request's token, everything before `place.since` is
    processed. `matters`: there is state to save."""

    place: Place
    hear: Hear
    dispatcher: Dispatcher
    cursor: Cursor[str]
    since: str
    matters: bool = False
    is_late: bool = False

    async def put(self, room: str, job: Callable[[], Awaitable[object]], *, control: bool = False) -> None:
        """Process part of the current answer, in its room's order."""
        done = self.cursor.begin(self.since)

        async def taken() -> None:
            await job()
            done()

        await self.dispatcher.put(room, taken, control=control)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Sync loop of one Matrix account. `excuse` tells a room that a message was not read."""

    client: Client
    rooms: Rooms
    crypto: Crypto
    reader: Reader
    entering: Membership
    places: Places
    now: Callable[[], float]
    excuse: Callable[[str, str], Awaitable[None]]

    async def follow(self, hear: Hear) -> None:
        """Process events until cancelled; unprocessed ones are repeated by the next call. Raises `NotNow`,
        `TokenRefused`, and errors of `hear`."""
        place = await self.places.begin()
        self.entering.looked = 0.0
        async with dispatching() as dispatcher:
            cursor = Cursor(place.since)
            at = Progress(place=place, hear=hear, dispatcher=dispatcher, cursor=cursor, since=place.since)
            while True:
                await self._on(at)

    async def _on(self, at: Progress) -> None:
        """Process one sync answer and save the position."""
        await at.put("", partial(self.entering.again, at.place, at.hear))
        found = await self._next(at)
        if not (since := text(found.get("next_batch"))):
            raise NotNow("The homeserver's answer cannot be read.")
        at.matters |= bool(found.get("rooms")) or not at.since
        await self._take(found, at)
        at.cursor.begin(since)()
        at.since = since
        settled = await at.dispatcher.settled()
        if at.place.unread and not at.is_late:
            at.is_late = True
            keys = bool(tables(inside(found, "to_device").get("events")))
            await at.put("late", partial(self._late, at, keys=keys))
            settled = await at.dispatcher.settled()
        at.place.since = at.cursor.mark  # What is still being taken in is told again to the next process.
        if at.matters:
            await self.places.keep(at.place)
            at.matters = not settled

    async def _next(self, at: Progress) -> Event:
        patience = KEYS_MILLISECONDS if at.place.unread else PATIENCE_MILLISECONDS
        if at.matters:
            patience = SOON_MILLISECONDS
        query = {"filter": FILTER, "timeout": str(patience if at.since else 0)}
        if at.since:
            query["since"] = at.since
        return await self.client.call("GET", "sync", query=query, reads=True)

    async def _take(self, found: Event, at: Progress) -> None:
        """Process an answer's rooms, each in order."""
        await self.crypto.synced(found)
        for room, each in inside(found, "rooms", "invite").items():
            await at.put(room, partial(self._invitation, room, table(each), at))
        for room, each in inside(found, "rooms", "join").items():
            await self._joined(room, table(each), at)
        for room, each in inside(found, "rooms", "leave").items():
            await at.put(room, partial(self._left, room, table(each), at))

    async def _invitation(self, room: str, found: Event, at: Progress) -> None:
        for event in tables(inside(found, "invite_state").get("events")):
            if event.get("type") == "m.room.member" and event.get("state_key") == self.reader.own:
                direct = inside(event, "content").get("is_direct") is True
                await self.entering.invited(room, text(event.get("sender")), at.place, at.hear, direct=direct)

    async def _joined(self, room: str, found: Event, at: Progress) -> None:
        """Process a joined room's new events, including those missing from a limited answer, but none from before
        the agent joined."""
        timeline = inside(found, "timeline")
        events = tables(timeline.get("events"))
        state = tables(inside(found, "state").get("events"))
        for event in state:
            self.rooms.changed(room, event)
        if timeline.get("limited"):
            self.rooms.forget(room)
        if not at.since:
            oldest = (self.now() - FRESH_SECONDS) * 1000
            events = [event for event in events if number(event.get("origin_server_ts")) >= oldest]
        elif any(event.get("type") == "m.room.create" for event in (*state, *events)):
            events = events[self._entry(events) :]
        elif timeline.get("limited") and (before := text(timeline.get("prev_batch"))):
            await at.put(room, partial(self._missing, room, before, at.since, at))
        for event in events:
            words = text(inside(event, "content").get("body"))
            control = event.get("type") == "m.reaction" or is_control(words)
            await at.put(room, partial(self._event, room, event, at), control=control)

    def _entry(self, events: Sequence[Event]) -> int:
        """Index of the event by which the agent was invited or joined."""
        own = {
            text(inside(event, "content").get("membership")): index
            for index, event in enumerate(events)
            if event.get("type") == "m.room.member" and event.get("state_key") == self.reader.own
        }
        return own.get("invite", own.get("join", 0))

    async def _missing(self, room: str, before: str, since: str, at: Progress) -> None:
        for event in await self._missed(room, before, since):
            await self._event(room, event, at)

    async def _missed(self, room: str, before: str, since: str) -> list[Event]:
        """A room's events between two sync answers, oldest first."""
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

    async def _event(self, room: str, event: Event, at: Progress) -> None:
        """Process one room event."""
        if event.get("state_key") is not None:
            self.rooms.changed(room, event)
            await self.entering.crowded(room, at.place)
        if event.get("type") == "m.room.tombstone" and await self.entering.replaced(room, event, at.hear):
            return
        if event.get("type") == "m.room.encrypted" and event.get("sender") != self.reader.own:
            opened = await self.crypto.read(room, event)
            if opened is None:
                await self._unread(room, text(event.get("event_id")), at.place)
                return
            event = opened
            if room in at.place.told:
                at.place.told.remove(room)
        await self._handle(room, event, at.hear)

    async def _handle(self, room: str, event: Event, hear: Hear) -> None:
        """Pass an event to the gateway."""
        heard = await self.reader.heard(room, event)
        if heard is not None:
            await hear(heard)

    async def _unread(self, room: str, id_: str, place: Place) -> None:
        """Handle an undecryptable message: wait for its key, or tell the room."""
        if self.crypto.patience:
            place.wait(id_, room, self.now())
        else:
            await self._excuse(room, id_, place)

    async def _late(self, at: Progress, *, keys: bool) -> None:
        """Retry messages that wait for keys; tell the room when one times out."""
        for id_, (room, since) in list(at.place.unread.items()):
            over = self.now() - since >= self.crypto.patience
            opened = await self._opened(room, id_) if keys or over else None
            if opened is not None:
                await self._handle(room, opened, at.hear)
            elif over:
                await self._excuse(room, id_, at.place)
            else:
                continue
            at.matters = True
            at.place.unread.pop(id_, None)
        at.is_late = False

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

    async def _left(self, room: str, found: Event, at: Progress) -> None:
        at.place.forget(room)
        self.rooms.forget(room)
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
                await at.hear(
                    Removed(where=where, reason=f"{event.get('sender')} removed the agent from the room{why}.")
                )
