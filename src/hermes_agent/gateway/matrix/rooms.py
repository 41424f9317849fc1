"""Cached facts about Matrix rooms and messages: members, encryption, titles, and the agent's own messages."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping

from hermes_agent.core.dataclass import dataclass
from hermes_agent.gateway.bounded_cache import BoundedCache
from hermes_agent.gateway.channel import MessageGone, NeverHere
from hermes_agent.gateway.matrix.client import SLOT, Client, Event, count, inside, joined, table, tables, text

SHUT = (
    "This room is encrypted, and I cannot read what is written here: use a room without encryption, or let my owner "
    "install `hermes-runtime[matrix-e2ee]` and set `gateway.channels.matrix.options.encryption` to `yes`."
)


Say = Callable[[str, Event], Awaitable[None]]
"""Sends type and content of an event where a message came from."""


class Crypto:
    """Interface for encrypted events; this default does none: encrypted rooms cannot be read, and nothing is sent to
    them.

    - `excuse`: the notice sent once to an unreadable room; `patience`: seconds to wait for a message's key;
    - `begin` is called before the first sync, `synced` with each sync answer before its rooms are processed;
    - `verify` handles a verification message in a room: returns at once and replies later through `say`, with type
      and content;
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

    def verify(self, event: Event, say: Say) -> None:
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
    """Facts about a message: its author, whether it is the agent's, the slot whose choices it shows (0: none), its
    thread."""

    user: str = ""
    mine: bool = False
    slot: int = 0
    thread: str = ""


class Rooms:
    """Cache of room and message facts: asks the homeserver once and follows state events. `crypto` decrypts
    messages."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.crypto = Crypto()
        self._people: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._steps: Counter[str] = Counter()
        self._encrypted: dict[str, bool] = {}
        self._titles = BoundedCache[str, str](ROOMS_KNOWN)
        self._messages = BoundedCache[str, Known](MESSAGES_KNOWN)
        self._signs = BoundedCache[str, tuple[str, ...]](MESSAGES_KNOWN)
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

    def met(self, user: str) -> bool:
        """Whether a user is a known member of any room."""
        return any(user in people for people in self._people.values())

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
        if (known := self._messages.get(id_)) is None:
            try:
                found = await self._client.call("GET", joined("rooms", room, "event", id_), reads=True)
            except (NeverHere, MessageGone):
                found = {}
            if found.get("type") == "m.room.encrypted":
                found = {**found, **table(await self.crypto.read(room, found))}
            known = self._messages.put(id_, self._read(found))
        return known

    def know(self, id_: str, known: Known) -> None:
        """Store the facts of a message."""
        self._messages.put(id_, known)

    def redacted(self, id_: str) -> None:
        """Mark a message as deleted."""
        self.gone.put(id_, True)

    async def signs(self, room: str, id_: str) -> tuple[str, ...]:
        """Event ids of the agent's own button reactions to a message."""
        if (known := self._signs.get(id_)) is None:
            path = joined("rooms", room, "relations", id_, "m.annotation")
            found = tables((await self._client.call("GET", path, reads=True, version="v1")).get("chunk"))
            own = tuple(text(each.get("event_id")) for each in found if each.get("sender") == self.own)
            known = self._signs.put(id_, own)
        return known

    def signed(self, id_: str, signs: tuple[str, ...]) -> None:
        """Store the agent's button reactions to a message."""
        self._signs.put(id_, signs)

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
