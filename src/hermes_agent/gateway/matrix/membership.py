"""Matrix room membership: joins on invitation, leaves rooms, and follows room upgrades."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import field

import msgspec

from hermes_agent.core.chat import Conversation
from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import (
    STRANGER,
    ChannelError,
    Hear,
    Invited,
    Kept,
    MessageGone,
    NeverHere,
    Sender,
    TokenRefused,
)
from hermes_agent.gateway.chat_migration import ChatMigration
from hermes_agent.gateway.matrix.client import Client, Event, joined, table, text
from hermes_agent.gateway.matrix.rooms import PLATFORM, Rooms

log = logging.getLogger(__name__)

LOOK_SECONDS = 600.0
"""After so long invitations that were not taken, and rooms of strangers, are looked at again."""
ENTER_SECONDS = 15.0
"""How long a room may take to be entered; nothing is heard meanwhile."""
STRANGER_SECONDS = 2 * 3600.0
"""How long the agent stays with a stranger whom nobody lets in: a code holds for an hour."""


@dataclass(slots=True, kw_only=True)
class Membership:
    """Joins and leaves Matrix rooms for one account. Lasting state is in the `Place` passed to each call, and saved in
    `places` before a room is joined."""

    client: Client
    rooms: Rooms
    moves: ChatMigration
    places: Places
    now: Callable[[], float]
    looked: float = 0.0

    async def invited(self, room: str, user: str, place: Place, hear: Hear, *, direct: bool) -> None:
        """Accept an invitation from a known user, or from a stranger who may request a code if nobody else is there.
        Others are reconsidered later."""
        place.invite(room, user, direct=direct)
        word = await self._word(room, user, hear, direct=direct)
        if not word:
            return
        place.strangers.pop(room, None)
        if word == STRANGER:
            place.strangers[room] = (user, self.now())  # Who else is there is looked at when its own coming is told.
        await self.places.keep(place)  # Whoever goes on after a death on the way in must know whose room it is.
        if not await self._enter(room, place):
            if room not in place.invitations:
                place.strangers.pop(room, None)
        elif word != STRANGER:
            await self._succeeds(room)

    async def again(self, place: Place, hear: Hear) -> None:
        """Reconsider open invitations and strangers' rooms if it is time; at once on the first call."""
        if self.looked and self.now() - self.looked < LOOK_SECONDS:
            return
        self.looked = self.now()
        for room, (user, direct) in list(place.invitations.items()):
            await self.invited(room, user, place, hear, direct=direct)
        for room, (user, at) in list(place.strangers.items()):
            if await self._word(room, user, hear, direct=True) not in ("", STRANGER):
                del place.strangers[room]
            elif room in place.invitations:
                continue  # Whether it was entered after all nobody knows: it is tried again.
            elif self.now() - at > STRANGER_SECONDS or not await self.rooms.alone(room):
                await self._leave(room, place)

    async def crowded(self, room: str, place: Place) -> None:
        """Leave a stranger's room once somebody else is in it."""
        if room in place.strangers and not await self.rooms.alone(room):
            await self._leave(room, place)

    async def replaced(self, room: str, event: Event, hear: Hear) -> bool:
        """Follow a room upgrade announced by a known user, if the new room can be joined. Returns whether it was."""
        other, user = text(table(event.get("content")).get("replacement_room")), text(event.get("sender"))
        if not other or await self._word(other, user, hear, direct=False) in ("", STRANGER):
            return False
        if not await self._enter(other, Place(), via=user.partition(":")[2]):
            return False
        if not await self._succeeds(other):
            await self._leave(other, Place())
            return False
        await self._leave(room, Place())
        return True

    async def _word(self, room: str, user: str, hear: Hear, *, direct: bool) -> str:
        where = Conversation(platform=PLATFORM, chat_kind="dm" if direct else "group", chat=room)
        return await hear(Invited(where=where, sender=Sender(user=user)))

    async def _enter(self, room: str, place: Place, via: str = "") -> bool:
        """Join a room. Returns whether that succeeded; unreachable ones are tried again later."""
        query = {"via": via, "server_name": via} if via else None
        try:
            async with asyncio.timeout(ENTER_SECONDS):
                await self.client.call("POST", joined("join", room), {}, query=query, reads=True)
        except TokenRefused:
            raise
        except (ChannelError, TimeoutError) as error:
            log.warning("matrix: the room %s cannot be entered: %s", room, str(error) or "no answer")
            if isinstance(error, NeverHere | MessageGone):
                place.invitations.pop(room, None)
            return False
        place.invitations.pop(room, None)
        self.rooms.forget(room)
        return True

    async def _leave(self, room: str, place: Place) -> None:
        try:
            await self.client.call("POST", joined("rooms", room, "leave"), {}, reads=True)
        except ChannelError as error:
            log.warning("matrix: the room %s cannot be left: %s", room, error)
            if not isinstance(error, NeverHere | MessageGone):
                return  # A stranger's room is left when they are looked at again.
        place.forget(room)
        self.rooms.forget(room)

    async def _succeeds(self, room: str) -> bool:
        """Treat a room as the successor of the one it names, if that one confirms it: anybody can claim it of their
        own room."""
        before = text(table((await self.rooms.state(room, "m.room.create")).get("predecessor")).get("room_id"))
        if not before or (await self.rooms.state(before, "m.room.tombstone")).get("replacement_room") != room:
            return False
        await self.moves.moved(before, room)
        return True


PLACE = "place"
INVITATIONS = 200
"""So many invitations of strangers are looked at again, the newest."""
UNREAD = 100
"""So many messages wait for their keys, the newest."""


@dataclass(slots=True, kw_only=True)
class Place:
    """Persistent sync state of one Matrix account.

    - `since`: sync token (empty: not started);
    - `invitations`: rooms not joined, with the inviter and whether it is a private chat;
    - `strangers`: private rooms with someone not admitted, with their start;
    - `unread`: undecryptable messages by id, with room and time;
    - `told`: rooms that were told that they cannot be read.
    """

    since: str = ""
    invitations: dict[str, tuple[str, bool]] = field(default_factory=dict)
    strangers: dict[str, tuple[str, float]] = field(default_factory=dict)
    unread: dict[str, tuple[str, float]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def invite(self, room: str, user: str, *, direct: bool) -> None:
        """Record an invitation, up to a limit."""
        self.invitations[room] = (user, direct)
        while len(self.invitations) > INVITATIONS:
            self.invitations.pop(next(iter(self.invitations)))

    def wait(self, event: str, room: str, now: float) -> None:
        """Record a message that waits for its key."""
        self.unread[event] = (room, now)
        while len(self.unread) > UNREAD:
            self.unread.pop(next(iter(self.unread)))

    def forget(self, room: str) -> None:
        """Drop the state of a room that the agent left."""
        self.invitations.pop(room, None)
        self.strangers.pop(room, None)

    def written(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, written: str) -> Place:
        """Decode `written`; an empty place if it is invalid."""
        try:
            return msgspec.json.decode(written, type=cls)
        except msgspec.DecodeError:
            return cls()


class Places:
    """Loads and saves one account's `Place` under `name`; unchanged state is not written again."""

    def __init__(self, kept: Kept, name: str) -> None:
        self._kept = kept
        self._name = name
        self._before = ""

    async def begin(self) -> Place:
        """Load the saved place."""
        self._before = (await self._kept.of(self._name)).get(PLACE, "")
        return Place.read(self._before)

    async def keep(self, place: Place) -> None:
        if (written := place.written()) != self._before:
            await self._kept.set(self._name, PLACE, written)
            self._before = written
