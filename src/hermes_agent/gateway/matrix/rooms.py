"""What is known of rooms and their messages: who is in them, whether they are encrypted, which messages are ours."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.channel import MessageGone, NeverHere
from hermes_agent.gateway.matrix.client import Client, joined
from hermes_agent.gateway.matrix.crypto import Crypto, Shut
from hermes_agent.gateway.matrix.writing import SLOT

ROOMS_KNOWN = 500
MESSAGES_KNOWN = 5000
ALONE = 2
"""People in a room that is a chat with one person: that one and the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A message: whether the agent wrote it, the slot whose choices it shows (0: none), its thread."""

    mine: bool = False
    slot: int = 0
    thread: str = ""


class Rooms:
    """Asks the homeserver once about each room and message, and keeps up with what it tells. `crypto` reads encrypted
    ones."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.crypto: Crypto = Shut()
        self._people: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._encrypted: dict[str, bool] = {}
        self._messages: OrderedDict[str, Known] = OrderedDict()
        self._signs: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self.gone: OrderedDict[str, None] = OrderedDict()
        self.own = ""

    async def people(self, room: str) -> Mapping[str, str]:
        """Who is in a room, with the names that are shown; nobody where the agent is not in it."""
        if room not in self._people:
            try:
                found = await self._client.call("GET", f"{joined('rooms', room)}/joined_members", reads=True)
            except (NeverHere, MessageGone):
                found = {}
            members = found.get("joined") or {}
            self._people[room] = {user: str(each.get("display_name") or "") for user, each in members.items()}
            _bound(self._people, ROOMS_KNOWN)
        return self._people[room]

    async def alone(self, room: str) -> bool:
        """Whether a room is a chat with one person; one of which nothing is known is none."""
        return 0 < len(await self.people(room)) <= ALONE

    async def encrypted(self, room: str) -> bool:
        """Whether what is sent there is to be encrypted. Raises `ChannelError` where nobody says: nothing is sent then
        that should have been."""
        if room not in self._encrypted:
            try:
                path = f"{joined('rooms', room, 'state', 'm.room.encryption')}/"
                self._encrypted[room] = bool(await self._client.call("GET", path, reads=True))
            except MessageGone:
                self._encrypted[room] = False
        return self._encrypted[room]

    def changed(self, room: str, event: Mapping[str, Any]) -> None:
        """A room's state changed."""
        content = table(event.get("content"))
        if event.get("type") == "m.room.encryption":
            self._encrypted[room] = True
        elif event.get("type") == "m.room.member" and room in self._people:
            if content.get("membership") == "join":
                self._people[room][str(event.get("state_key"))] = str(content.get("displayname") or "")
            else:
                self._people[room].pop(str(event.get("state_key")), None)

    def forget(self, room: str) -> None:
        """What is known of a room may hold no longer."""
        self._people.pop(room, None)

    async def message(self, room: str, id_: str) -> Known:
        """What a message is."""
        if id_ not in self._messages:
            try:
                found = await self._client.call("GET", joined("rooms", room, "event", id_), reads=True)
            except (NeverHere, MessageGone):
                found = {}
            if found.get("type") == "m.room.encrypted":
                found = {**found, **(await self.crypto.read(room, found) or {})}
            self.know(id_, self._read(found))
        return self._messages[id_]

    def know(self, id_: str, known: Known) -> None:
        """What a message is, from whoever wrote it."""
        self._messages[id_] = known
        _bound(self._messages, MESSAGES_KNOWN)

    def redacted(self, id_: str) -> None:
        """A message was taken away."""
        self.gone[id_] = None
        _bound(self.gone, MESSAGES_KNOWN)

    async def signs(self, room: str, id_: str) -> tuple[str, ...]:
        """The agent's own reactions under a message of it, for its choices."""
        if id_ not in self._signs:
            path = joined("rooms", room, "relations", id_, "m.annotation")
            found = (await self._client.call("GET", path, reads=True, version="v1")).get("chunk") or ()
            self.signed(id_, tuple(str(each["event_id"]) for each in found if each.get("sender") == self.own))
        return self._signs[id_]

    def signed(self, id_: str, signs: tuple[str, ...]) -> None:
        """These are the agent's reactions under a message now."""
        self._signs[id_] = signs
        _bound(self._signs, MESSAGES_KNOWN)

    def _read(self, event: Mapping[str, Any]) -> Known:
        content = table(event.get("content"))
        latest = table(table(table(event.get("unsigned")).get("m.relations")).get("m.replace"))
        newest = table(table(latest.get("content")).get("m.new_content")) or content
        slot = newest.get(SLOT)
        relation = table(content.get("m.relates_to"))
        return Known(
            mine=event.get("sender") == self.own,
            slot=slot if isinstance(slot, int) else 0,
            thread=str(relation.get("event_id", "")) if relation.get("rel_type") == "m.thread" else "",
        )


def table(value: object) -> Mapping[str, Any]:
    """What stands in an event where an object belongs; empty where somebody wrote anything else there."""
    return value if isinstance(value, dict) else {}


def _bound(kept: OrderedDict[str, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
