"""A Matrix homeserver on loopback with one account that logs in, written from the public client-server API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from typing import Any

from aiohttp import web

from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.testing.doubles.platform import Chats, Shown, Trouble
from hermes_agent.testing.doubles.slack import cut, served

SERVER = "hermes.test"
OWN = f"@hermes:{SERVER}"
NAME = "Hermes"
SIGNED = "m.annotation"

Values = dict[str, Any]


@dataclass(slots=True)
class Room:
    """A room: who is in it by id with their names, its timeline by event id, what the agent is to it."""

    people: dict[str, str] = field(default_factory=dict)
    events: dict[str, Values] = field(default_factory=dict)
    encrypted: bool = False


@dataclass(slots=True)
class MatrixPlatform:
    """Rooms and people (a `Double`). `refusal` is the error that every call gets. `limit` is how many events of a room
    one answer of a sync holds, `page` how many earlier ones are given at a time; `old`: it gives files out in the way
    of years ago; `stream` is all that happened, as section of a sync, room and event."""

    chats: Chats = field(default_factory=Chats)
    url: str = ""
    refusal: tuple[int, str] | None = None
    limit: int = 50
    page: int = 100
    old: bool = False
    clock: Clock = field(default_factory=SystemClock)
    rooms: dict[str, Room] = field(default_factory=dict)
    stream: list[tuple[str, str, Values]] = field(default_factory=list)
    people_did: list[int] = field(default_factory=list)
    reached: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    transactions: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, Values] = field(default_factory=dict)
    joins: list[str] = field(default_factory=list)
    more: asyncio.Event = field(default_factory=asyncio.Event)

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

    async def press(self, message: str, choice: int, *, user: str = "@ann:hermes.test") -> None:
        shown = self.chats.messages[message]
        own = [each for each in self.signs(shown.chat, message) if each["sender"] == OWN]
        key = own[choice]["content"]["m.relates_to"]["key"]
        relation = {"rel_type": SIGNED, "event_id": message, "key": key}
        self.happens(shown.chat, "m.reaction", {"m.relates_to": relation}, user)

    def told(self) -> int:
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


@dataclass(slots=True)
class Homeserver:
    """The client-server API of a platform."""

    at: MatrixPlatform

    async def sync(self, request: web.Request) -> web.Response:
        """What happened since."""
        since = request.query.get("since", "")
        start = int(since.removeprefix("s")) if since else 0
        self.at.reached = max(self.at.reached, start)
        with suppress(TimeoutError):
            async with asyncio.timeout(int(request.query.get("timeout", "0")) / 1000):
                while len(self.at.stream) <= start and since:
                    self.at.more.clear()
                    await self.at.more.wait()
        rooms: dict[str, dict[str, Values]] = {"join": {}, "invite": {}, "leave": {}}
        for section, room, event in self.at.stream[start:]:
            if section == "invite":
                rooms["invite"][room] = {"invite_state": {"events": [event]}}
                continue
            events = rooms[section].setdefault(room, _room(start))["timeline"]["events"]
            events.append(event)
        for found in rooms["join"].values():
            timeline = found["timeline"]
            timeline["limited"] = len(timeline["events"]) > self.at.limit
            timeline["prev_batch"] = f"p{timeline['events'][-self.at.limit :][0]['event_id']}"
            timeline["events"] = timeline["events"][-self.at.limit :]
        return web.json_response(
            {
                "next_batch": f"s{len(self.at.stream)}",
                "rooms": rooms,
                "to_device": {"events": []},
                "device_lists": {"changed": [], "left": []},
                "device_one_time_keys_count": {},
            }
        )

    async def whoami(self, _: web.Request) -> web.Response:
        return web.json_response({"user_id": OWN, "device_id": "DEVICE", "is_guest": False})

    async def profile(self, _: web.Request) -> web.Response:
        return web.json_response({"displayname": NAME})

    async def join(self, request: web.Request) -> web.Response:
        id_ = request.match_info["room"]
        if id_ not in self.at.rooms:
            return refused(404, "M_NOT_FOUND")
        self.at.joins.append(id_)
        self.at.rooms[id_].people[OWN] = NAME
        self.at.tell("join", id_, self.at.member("join", OWN))
        return web.json_response({"room_id": id_})

    async def members(self, request: web.Request) -> web.Response:
        people = self.at.rooms[request.match_info["room"]].people
        return web.json_response({"joined": {user: {"display_name": name} for user, name in people.items()}})

    async def encryption(self, request: web.Request) -> web.Response:
        room = self.at.rooms.get(request.match_info["room"])
        if room is None or not room.encrypted:
            return refused(404, "M_NOT_FOUND")
        return web.json_response({"algorithm": "m.megolm.v1.aes-sha2"})

    async def event(self, request: web.Request) -> web.Response:
        room = self.at.rooms.get(request.match_info["room"], Room())
        found = room.events.get(request.match_info["event"])
        return web.json_response(found) if found else refused(404, "M_NOT_FOUND")

    async def relations(self, request: web.Request) -> web.Response:
        return web.json_response({"chunk": self.at.signs(request.match_info["room"], request.match_info["event"])})

    async def messages(self, request: web.Request) -> web.Response:
        """Backwards from a place, a few at a time, to where the last sync had come."""
        room, limit = request.match_info["room"], min(self.at.page, int(request.query["limit"]))
        known = [(position, event) for position, (_, where, event) in enumerate(self.at.stream) if where == room]
        first = request.query["from"].removeprefix("p")
        least = int(request.query["to"].removeprefix("s"))
        upto = next(position for position, event in known if event["event_id"] == first)
        chunk = [event for position, event in known if least <= position < upto][::-1][:limit]
        more = {"end": f"p{chunk[-1]['event_id']}"} if chunk else {}
        return web.json_response({"chunk": chunk, **more})

    async def send(self, request: web.Request) -> web.StreamResponse:
        """An event of the agent."""
        room, kind, mark = (request.match_info[name] for name in ("room", "kind", "mark"))
        content: Values = await request.json()
        replaces = content.get("m.relates_to", {}).get("rel_type") == "m.replace"
        call = {"m.room.message": "edit" if replaces else "send", "m.reaction": "react"}.get(kind, "send")
        return self._answer(call, request, lambda: self._sent(room, kind, mark, content))

    def _sent(self, room: str, kind: str, mark: str, content: Values) -> web.Response:
        if mark not in self.at.transactions:
            relation = content.get("m.relates_to", {})
            if relation.get("rel_type") == "m.replace" and relation["event_id"] not in self.at.chats.messages:
                return refused(400, "M_UNKNOWN", "Can't send relation to unknown event")
            self.at.room(room, {})
            self.at.transactions[mark] = self.at.happens(room, kind, content, OWN)
            self._shown(self.at.transactions[mark], room, kind, content)
        return web.json_response({"event_id": self.at.transactions[mark]})

    def _shown(self, id_: str, room: str, kind: str, content: Values) -> None:
        self.at.bodies[id_] = content
        relation = content.get("m.relates_to", {})
        if kind == "m.reaction":
            message, key = self.at.chats.messages.get(relation["event_id"]), relation["key"]
            label = _label(message.text, key) if message else ""
            if message is None or not label:
                self.at.chats.reactions.append((relation["event_id"], key))
            else:
                self.at.chats.messages[message.id] = replace(message, buttons=(*message.buttons, label))
        elif relation.get("rel_type") == "m.replace":
            old, new = self.at.chats.messages[relation["event_id"]], content["m.new_content"]
            self.at.chats.change(old.id, new["body"], old.buttons, json.dumps(new))
        else:
            self._message(id_, room, content, relation)

    def _message(self, id_: str, room: str, content: Values, relation: Values) -> None:
        name, thread = content.get("filename", ""), relation.get("rel_type") == "m.thread"
        answered = relation.get("m.in_reply_to", {}).get("event_id", "")
        self.at.chats.show(
            Shown(
                id=id_,
                chat=room,
                text="" if content.get("body") == name else content.get("body", ""),
                thread=relation["event_id"] if thread else "",
                file=name,
                answers="" if relation.get("is_falling_back") else answered,
                written=json.dumps(content),
            )
        )

    async def redact(self, request: web.Request) -> web.StreamResponse:
        room, id_ = request.match_info["room"], request.match_info["event"]
        return self._answer("delete", request, lambda: self._redacted(room, id_))

    def _redacted(self, room: str, id_: str) -> web.Response:
        event = self.at.rooms.get(room, Room()).events.pop(id_, None)
        if event is None:
            return refused(404, "M_NOT_FOUND")
        self.at.chats.messages.pop(id_, None)
        relation = event["content"].get("m.relates_to", {})
        message = self.at.chats.messages.get(relation.get("event_id", ""))
        if event["type"] == "m.reaction" and message is not None:
            gone = _label(self.at.bodies[message.id]["body"], relation["key"])
            left = tuple(label for label in message.buttons if label != gone)
            self.at.chats.messages[message.id] = replace(message, buttons=left)
        return web.json_response(
            {"event_id": self.at.happens(room, "m.room.redaction", {"redacts": id_}, OWN, redacts=id_)}
        )

    async def typing(self, request: web.Request) -> web.StreamResponse:
        content = await request.json()

        def done() -> web.Response:
            if content["typing"]:
                self.at.chats.typing.append(request.match_info["room"])
            return web.json_response({})

        return self._answer("typing", request, done)

    async def upload(self, request: web.Request) -> web.Response:
        id_ = f"file{self.at.chats.next_id()}"
        self.at.files[id_] = await request.read()
        return web.json_response({"content_uri": f"mxc://{SERVER}/{id_}"})

    async def download(self, request: web.Request) -> web.Response:
        if self.at.old and "/client/" in request.path:
            return refused(404, "M_UNRECOGNIZED")
        content = self.at.files.get(request.match_info["id"])
        return refused(404, "M_NOT_FOUND") if content is None else web.Response(body=content)

    def _answer(self, call: str, request: web.Request, done: Any) -> web.StreamResponse:  # noqa: ANN401  what makes it
        trouble = self.at.chats.trouble(call)
        match trouble:
            case Trouble.BUSY:
                after = {"Retry-After": str(self.at.chats.retry_after)}
                return web.json_response({"errcode": "M_LIMIT_EXCEEDED", "error": "busy"}, status=429, headers=after)
            case Trouble.BROKEN:
                return web.Response(status=502)
            case Trouble.GONE:
                return refused(403, "M_FORBIDDEN") if call == "send" else refused(404, "M_NOT_FOUND")
            case Trouble.CUT:
                return cut(request)
        answer: web.Response = done()
        if trouble is Trouble.DEAF:
            return cut(request)
        return web.Response(body=b"?") if trouble is Trouble.GARBLED else answer

    @web.middleware
    async def guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:  # noqa: ANN401  aiohttp's
        if self.at.refusal is not None:
            return refused(*self.at.refusal)
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return refused(401, "M_MISSING_TOKEN")
        answer: web.StreamResponse = await handler(request)
        return answer


def refused(status: int, code: str, words: str = "") -> web.Response:
    """An error as Matrix says it."""
    return web.json_response({"errcode": code, "error": words or code}, status=status)


def _label(text: str, key: str) -> str:
    """The choice that a sign stands for in a message."""
    return next((line.removeprefix(key).strip() for line in text.splitlines() if line.startswith(key)), "")


def _room(start: int) -> Values:
    return {
        "timeline": {"events": [], "limited": False, "prev_batch": f"p{start}"},
        "state": {"events": []},
        "ephemeral": {"events": []},
        "account_data": {"events": []},
        "summary": {},
        "unread_notifications": {},
    }


@asynccontextmanager
async def matrix_platform() -> AsyncIterator[MatrixPlatform]:
    """The homeserver, served until the block ends."""
    platform = MatrixPlatform()
    server = Homeserver(platform)
    application = web.Application(client_max_size=64_000_000, middlewares=[server.guarded])
    base = "/_matrix/client/v3"
    application.add_routes(
        [
            web.get(f"{base}/account/whoami", server.whoami),
            web.get(f"{base}/profile/{{user}}/displayname", server.profile),
            web.get(f"{base}/sync", server.sync),
            web.post(f"{base}/join/{{room}}", server.join),
            web.get(f"{base}/rooms/{{room}}/joined_members", server.members),
            web.get(f"{base}/rooms/{{room}}/state/m.room.encryption/", server.encryption),
            web.get(f"{base}/rooms/{{room}}/event/{{event}}", server.event),
            web.get(f"{base}/rooms/{{room}}/messages", server.messages),
            web.get("/_matrix/client/v1/rooms/{room}/relations/{event}/m.annotation", server.relations),
            web.put(f"{base}/rooms/{{room}}/send/{{kind}}/{{mark}}", server.send),
            web.put(f"{base}/rooms/{{room}}/redact/{{event}}/{{mark}}", server.redact),
            web.put(f"{base}/rooms/{{room}}/typing/{{user}}", server.typing),
            web.post("/_matrix/media/v3/upload", server.upload),
            web.get("/_matrix/client/v1/media/download/{server}/{id}", server.download),
            web.get("/_matrix/media/v3/download/{server}/{id}", server.download),
        ]
    )
    async with served(application) as url:
        platform.url = url
        yield platform
