"""What an account does on a Matrix homeserver's double: messages, edits, reactions, redactions, files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from aiohttp import web

from hermes_agent.core.dataclass import dataclass
from hermes_agent.testing.platform import Shown, Trouble
from tests.doubles.matrix import NAME, OWN, SERVER, MatrixPlatform, Room, Values
from tests.doubles.matrix_reading import refused
from tests.doubles.serving import cut


@dataclass(slots=True)
class Writing:
    """The part of the client-server API by which an account does something."""

    at: MatrixPlatform

    async def join(self, request: web.Request) -> web.StreamResponse:
        id_ = request.match_info["room"]
        return self._answer("join", request, lambda: self._joined(id_))

    def _joined(self, id_: str) -> web.Response:
        if id_ not in self.at.rooms:
            return refused(404, "M_NOT_FOUND")
        if self.at.rooms[id_].closed:
            return refused(403, "M_FORBIDDEN")
        self.at.joins.append(id_)
        self.at.rooms[id_].people[OWN] = NAME
        self.at.tell("join", id_, self.at.member("join", OWN))
        return web.json_response({"room_id": id_})

    async def leave(self, request: web.Request) -> web.Response:
        id_ = request.match_info["room"]
        self.at.leaves.append(id_)
        self.at.rooms[id_].people.pop(OWN, None)
        self.at.tell("leave", id_, self.at.member("leave", OWN))
        return web.json_response({})

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


def _label(text: str, key: str) -> str:
    """The choice that a sign stands for in a message."""
    return next((line.removeprefix(key).strip() for line in text.splitlines() if line.startswith(key)), "")
