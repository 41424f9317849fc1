"""Rooms and people on a Matrix homeserver's double: what happens there, and what was told to the one account."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.testing.platform import TITLE, Chats

SERVER = "hermes.test"
OWN = f"@hermes:{SERVER}"
NAME = "Hermes"
SIGNED = "m.annotation"

Values = dict[str, Any]


@dataclass(slots=True)
class Room:
    """A room: who is in it by id with their names, its timeline by event id, its state by type. `closed`: whoever is
    not invited cannot come in."""

    people: dict[str, str] = field(default_factory=dict)
    events: dict[str, Values] = field(default_factory=dict)
    state: dict[str, Values] = field(default_factory=dict)
    encrypted: bool = False
    closed: bool = False


@dataclass(slots=True)
class MatrixPlatform:
    """Rooms and people (a `Double`). `refusal` is the error that every call gets. `limit` is how many events of a room
    one answer of a sync holds, `page` how many earlier ones are given at a time; `stream` is all that happened, as
    section of a sync, room and event; `odd` are answers that a sync gives instead, each once; `keys` are
    the sections of a key query by user, `direct` what went to devices; `guarded`: keys want a password; `asked` is
    about how many people each query was, `one_time` keys of people's devices, `changed` people whose devices are others
    since the last sync. What is asked about somebody `silent` waits until `spoken`; of servers in `failing` nothing is
    known. `slow` is how many seconds a file takes."""

    chats: Chats = field(default_factory=Chats)
    url: str = ""
    refusal: tuple[int, str] | None = None
    limit: int = 50
    page: int = 100
    clock: Clock = field(default_factory=SystemClock)
    rooms: dict[str, Room] = field(default_factory=dict)
    stream: list[tuple[str, str, Values]] = field(default_factory=list)
    people_did: list[int] = field(default_factory=list)
    reached: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    transactions: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, Values] = field(default_factory=dict)
    joins: list[str] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)
    odd: list[Any] = field(default_factory=list)
    keys: dict[str, Values] = field(default_factory=dict)
    direct: list[tuple[str, Values]] = field(default_factory=list)
    to_device: list[Values] = field(default_factory=list)
    guarded: bool = False
    asked: list[int] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)
    spoken: asyncio.Event = field(default_factory=asyncio.Event)
    failing: set[str] = field(default_factory=set)
    changed: list[str] = field(default_factory=list)
    one_time: dict[str, Values] = field(default_factory=dict)
    more: asyncio.Event = field(default_factory=asyncio.Event)
    slow: float = 0.0

    async def say(
        self,
        text: str,
        *,
        chat: str = "!1:hermes.test",
        user: str = "@ann:hermes.test",
        name: str = "Ann",
        group: bool = False,
        thread: str = "",
        **more: Any,  # noqa: ANN401  whatever JSON holds
    ) -> str:
        room = self.room(chat, {user: name, **({"@other:hermes.test": "Other"} if group else {})})
        room.people[user] = name
        if group:
            room.state.setdefault("m.room.name", {"name": TITLE})
        content = {"msgtype": "m.text", "body": text, **more}
        if thread:
            content["m.relates_to"] = {
                "rel_type": "m.thread",
                "event_id": thread,
                "is_falling_back": True,
                "m.in_reply_to": {"event_id": thread},
            }
        return self.happens(chat, "m.room.message", content, user)

    async def again(self) -> None:
        self.tell(*self.stream[self.people_did[-1]])

    async def change(self, text: str) -> None:
        _, room, event = self.stream[self.people_did[-1]]
        relation = event["content"].get("m.relates_to", {})
        replaced = relation["event_id"] if relation.get("rel_type") == "m.replace" else event["event_id"]
        content = {
            "msgtype": "m.text",
            "body": f"* {text}",
            "m.new_content": {"msgtype": "m.text", "body": text},
            "m.relates_to": {"rel_type": "m.replace", "event_id": replaced},
        }
        self.happens(room, "m.room.message", content, event["sender"])

    async def press(self, message: str, choice: int, *, user: str = "@ann:hermes.test") -> None:
        shown = self.chats.messages[message]
        own = [each for each in self.signs(shown.chat, message) if each["sender"] == OWN]
        key = own[choice]["content"]["m.relates_to"]["key"]
        relation = {"rel_type": SIGNED, "event_id": message, "key": key}
        self.happens(shown.chat, "m.reaction", {"m.relates_to": relation}, user)

    def received(self) -> int:
        return sum(position < self.reached for position in self.people_did)

    def room(self, id_: str, people: Mapping[str, str]) -> Room:
        """A room with the agent in it."""
        return self.rooms.setdefault(id_, Room(people={OWN: NAME, **people}))

    def happens(self, room: str, kind: str, content: Values, sender: str, **more: Any) -> str:  # noqa: ANN401  whatever JSON holds
        """Have something happen in a room; its event id."""
        id_ = f"${self.chats.next_id()}"
        event = {
            "event_id": id_,
            "type": kind,
            "sender": sender,
            "origin_server_ts": int(self.clock.now() * 1000),
            "content": content,
            "unsigned": {},
            **more,
        }
        self.rooms[room].events[id_] = event
        self.tell("join", room, event)
        return id_

    def invite(self, room: str, user: str, *, direct: bool = True) -> None:
        """Have somebody ask the agent into a room of theirs."""
        self.rooms[room] = Room(people={user: ""})
        self.tell("invite", room, self.member("invite", user, is_direct=direct))

    def kick(self, room: str, user: str, reason: str = "") -> None:
        """Have somebody remove the agent from a room."""
        self.rooms[room].people.pop(OWN, None)
        self.tell("leave", room, self.member("leave", user, reason=reason))

    def replace(self, room: str, other: str, user: str, *, closed: bool = False) -> None:
        """Have somebody replace a room by another one, into which the agent may come, or only when it is invited."""
        people = {each: name for each, name in self.rooms[room].people.items() if each != OWN}
        self.rooms[other] = Room(people=people, closed=closed)
        self.rooms[other].state["m.room.create"] = {"predecessor": {"room_id": room}}
        self.rooms[room].state["m.room.tombstone"] = content = {"body": "moved", "replacement_room": other}
        self.happens(room, "m.room.tombstone", content, user, state_key="")

    def member(self, membership: str, by: str, **more: Any) -> Values:  # noqa: ANN401  whatever JSON holds
        """An event of what the agent is to a room."""
        return {
            "event_id": f"${self.chats.next_id()}",
            "type": "m.room.member",
            "state_key": OWN,
            "sender": by,
            "origin_server_ts": int(self.clock.now() * 1000),
            "content": {"membership": membership, **more},
        }

    def tell(self, section: str, room: str, event: Values) -> None:
        """Put something into what a sync tells."""
        if event["sender"] != OWN:
            self.people_did.append(len(self.stream))
        self.stream.append((section, room, event))
        self.more.set()

    def signs(self, room: str, message: str) -> list[Values]:
        """The reactions under a message."""
        return [
            event
            for event in self.rooms[room].events.values()
            if event["type"] == "m.reaction" and event["content"]["m.relates_to"]["event_id"] == message
        ]
