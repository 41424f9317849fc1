"""Slack on loopback, written from the public description of its Web API and of Socket Mode."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from functools import partial
from typing import Any

from aiohttp import WSMsgType, web

from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.testing.platform import TITLE, Chats, Held, Shown, Trouble
from tests.doubles.serving import cut, given_out, served

OWN = "U0HERMES"
BOT = "B0HERMES"
CALLS = {
    "chat.postMessage": "send",
    "files.completeUploadExternal": "send",
    "chat.update": "edit",
    "chat.delete": "delete",
    "files.delete": "delete",
    "conversations.history": "find",
    "conversations.replies": "find",
    "reactions.add": "react",
}
"""Methods and the names under which troubles are ordered for them."""
FORM_ONLY = frozenset(
    {
        "users.info",
        "files.info",
        "conversations.info",
        "conversations.history",
        "conversations.replies",
        "files.getUploadURLExternal",
        "auth.revoke",
    }
)
"""Methods that take no JSON."""
STRUCTURED = frozenset({"blocks", "metadata", "files"})
"""Arguments that are JSON within a form."""
MISSING = {"send": "channel_not_found", "edit": "message_not_found", "delete": "message_not_found"}
LONGEST_POSTED, LONGEST_CHANGED, LONGEST_SECTION, MOST_BLOCKS = 40_000, 4_000, 3_000, 50

Values = dict[str, Any]


@dataclass(slots=True)
class SlackPlatform(Held):
    """A workspace with people in it (a `Double`). Ids of chats with one person begin with D. `refusal` is the error
    that every call gets; `unacknowledged` are the envelopes that are told again on the next connection. What
    people say while `holding` is kept back in `late`; `slow` is how many seconds a file takes."""

    chats: Chats = field(default_factory=Chats)
    url: str = ""
    refusal: str = ""
    names: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    stamps: dict[str, Values] = field(default_factory=dict)
    unacknowledged: dict[str, Values] = field(default_factory=dict)
    acknowledged: int = 0
    whispers: list[Values] = field(default_factory=list)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    clock: Clock = field(default_factory=SystemClock)
    slow: float = 0.0
    _told: list[Values] = field(default_factory=list)
    _count: int = 0

    def stamp(self) -> str:
        """A time that no other message has."""
        self._count += 1
        return f"{int(self.clock.now())}.{self._count:06d}"

    async def say(
        self,
        text: str,
        *,
        chat: str = "D1",
        user: str = "7",
        name: str = "Ann",
        group: bool = False,
        thread: str = "",
        **more: Any,  # noqa: ANN401  whatever JSON holds
    ) -> str:
        self.names[user] = name
        stamp = self.stamp()
        event: Values = {"type": "message", "channel": chat, "user": user, "text": text, "ts": stamp, **more}
        event["channel_type"] = "channel" if group else "im"
        if thread:
            event["thread_ts"] = thread
        payload = {"type": "event_callback", "event_id": f"Ev{stamp}", "event": event}
        await self.tells(partial(self.tell, "events_api", payload))
        return f"{chat}:{stamp}"

    async def again(self, back: int = 0) -> None:
        told = self._told[-1 - back]
        await self.tell(told["type"], told["payload"])

    async def change(self, text: str) -> None:
        event = self._told[-1]["payload"]["event"]
        before = event.get("message", event)
        edited = {"user": before["user"], "ts": self.stamp()}
        changed = {"subtype": "message_changed", "message": {**before, "text": text, "edited": edited}}
        event = {**event, **changed, "previous_message": before}
        await self.tell("events_api", {"type": "event_callback", "event_id": f"Ev{self.stamp()}", "event": event})

    async def press(self, message: str, choice: int, *, user: str = "7") -> None:
        shown = self.chats.messages[message]
        buttons = self.stamps[message]["blocks"][-1]["elements"]
        container = {"type": "message", "message_ts": message, "channel_id": shown.chat}
        action = {"action_id": buttons[choice]["action_id"], "type": "button", "action_ts": self.stamp()}
        await self.tell(
            "interactive",
            {"type": "block_actions", "user": {"id": user}, "container": container, "actions": [action]},
        )

    async def tell(self, kind: str, payload: Values) -> None:
        """Have Slack tell something, on the connection that is open or on the next one."""
        self._count += 1
        envelope = {
            "envelope_id": f"e{self._count}",
            "type": kind,
            "payload": payload,
            "accepts_response_payload": False,
        }
        self._told.append(envelope)
        self.unacknowledged[str(envelope["envelope_id"])] = envelope
        for socket in self.sockets[-1:]:
            with suppress(ConnectionError):  # The next connection is told.
                await socket.send_json(envelope)

    def received(self) -> int:
        return self.acknowledged

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        """One Socket Mode connection."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        told: set[str] = set()
        while new := [each for id_, each in self.unacknowledged.items() if id_ not in told]:
            for envelope in new:  # In their order: what comes meanwhile is told after these.
                told.add(envelope["envelope_id"])
                await socket.send_json(envelope)
        self.sockets.append(socket)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                answered = json.loads(message.data).get("envelope_id")
                self.acknowledged += self.unacknowledged.pop(answered, None) is not None
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket

    async def refresh(self, reason: str = "refresh_requested") -> None:
        """End the connection as Slack does from time to time."""
        socket = self.sockets.pop()
        with suppress(ConnectionError):
            await socket.send_json({"type": "disconnect", "reason": reason})

    async def method(self, request: web.Request) -> web.StreamResponse:
        """A call of the Web API."""
        name = request.match_info["method"]
        if "json" in request.content_type and name in FORM_ONLY:
            return _json_refused()
        values = await _values(request)
        call = CALLS.get(name, name)
        trouble = self.chats.trouble(call)
        if self.refusal:
            return web.json_response({"ok": False, "error": self.refusal})
        if (failed := self._failed(call, trouble, request)) is not None:
            return failed
        found = self._done(name, values)
        if trouble is Trouble.DEAF:
            return cut(request)
        return web.Response(body=b"?") if trouble is Trouble.GARBLED else web.json_response(found)

    def _failed(self, call: str, trouble: Trouble | None, request: web.Request) -> web.Response | None:
        match trouble:
            case Trouble.BUSY:
                return web.Response(status=429, headers={"Retry-After": str(self.chats.retry_after)})
            case Trouble.BROKEN:
                return web.Response(status=503)
            case Trouble.GONE:
                return web.json_response({"ok": False, "error": MISSING.get(call, "channel_not_found")})
            case Trouble.CUT:
                return cut(request)
        return None

    def _done(self, name: str, values: Values) -> Values:
        methods: dict[str, Callable[[Values], Values]] = {
            "auth.test": lambda _values: {"user_id": OWN, "bot_id": BOT, "team_id": "T1"},
            "apps.connections.open": lambda _: {"url": f"{self.url.replace('http', 'ws')}/socket"},
            "users.info": self._user,
            "files.info": self._about,
            "conversations.info": lambda values: {"channel": {"id": values["channel"], "name": TITLE}},
            "chat.postMessage": self._post,
            "chat.postEphemeral": self._whisper,
            "chat.update": self._update,
            "chat.delete": lambda values: self._remove(values.get("ts")),
            "files.delete": lambda values: self._remove(values.get("file")),
            "files.getUploadURLExternal": self._place,
            "files.completeUploadExternal": self._complete,
            "conversations.history": self._history,
            "conversations.replies": self._history,
            "reactions.add": self._react,
        }
        if name not in methods:
            return {"ok": False, "error": "unknown_method"}
        found = methods[name](values)
        return {"ok": "error" not in found, **found}

    def _about(self, values: Values) -> Values:
        """A file's facts, also of one that another organisation shares."""
        id_ = values["file"]
        if id_ not in self.files:
            return {"ok": False, "error": "file_not_found"}
        url = f"{self.url}/files/{id_}"
        return {"file": {"id": id_, "name": f"{id_}.png", "mimetype": "image/png", "size": 7, "url_private": url}}

    def _user(self, values: Values) -> Values:
        name = self.names.get(values["user"])
        if name is None:
            return {"error": "user_not_found"}
        return {"user": {"id": values["user"], "real_name": name, "profile": {"display_name": name}}}

    def _post(self, values: Values) -> Values:
        if refusal := _refusal(values, LONGEST_POSTED):
            return {"error": refusal}
        stamp = self.stamp()
        self.stamps[stamp] = values
        self._show(stamp, values, _seen(values))
        return {"ts": stamp, "channel": values["channel"]}

    def _show(self, id_: str, values: Values, text: str, file: str = "") -> None:
        channel, thread = str(values.get("channel") or values.get("channel_id")), str(values.get("thread_ts") or "")
        self.chats.show(
            Shown(
                id=id_,
                chat=channel,
                text=text,
                thread=thread,
                answers=f"{channel}:{thread}" if thread else "",
                buttons=_labels(values),
                file=file,
                written=text,
            )
        )

    def _update(self, values: Values) -> Values:
        if refusal := _refusal(values, LONGEST_CHANGED):
            return {"error": refusal}
        if not self.chats.change(values["ts"], _seen(values), _labels(values), values["text"]):
            return {"error": "message_not_found"}
        self.stamps[values["ts"]] = {**self.stamps[values["ts"]], **values}
        return {"ts": values["ts"]}

    def _remove(self, id_: str | None) -> Values:
        return {} if self.chats.messages.pop(id_ or "", None) else {"error": "message_not_found"}

    def _whisper(self, values: Values) -> Values:
        self.whispers.append(values)
        return {}

    def _place(self, _: Values) -> Values:
        id_ = f"F{self.chats.next_id()}"
        return {"upload_url": f"{self.url}/upload/{id_}", "file_id": id_}

    def _complete(self, values: Values) -> Values:
        (file,) = values["files"]
        if file["id"] not in self.files:
            return {"error": "file_not_found"}
        self._show(file["id"], values, values.get("initial_comment", ""), file["title"])
        return {"files": [{"id": file["id"], "title": file["title"]}]}

    def _history(self, values: Values) -> Values:
        messages = []
        for shown in self.chats.of(values["channel"]):
            files = [{"id": shown.id, "title": shown.file}] if shown.file else []
            metadata = self.stamps.get(shown.id, {}).get("metadata", {})
            messages.append({"ts": shown.id, "user": OWN, "text": shown.text, "files": files, "metadata": metadata})
        return {"messages": messages[::-1], "response_metadata": {"next_cursor": ""}}

    def _react(self, values: Values) -> Values:
        self.chats.reactions.append((f"{values['channel']}:{values['timestamp']}", values["name"]))
        return {}

    async def upload(self, request: web.Request) -> web.Response:
        self.files[request.match_info["id"]] = await request.read()
        return web.Response(body=b"OK")

    async def download(self, request: web.Request) -> web.StreamResponse:
        content = self.files.get(request.match_info["id"])
        if content is None or not request.headers.get("Authorization", "").startswith("Bearer "):
            return web.Response(text="<html>log in</html>", content_type="text/html")
        return await given_out(request, content, self.slow)


def _seen(values: Values) -> str:
    """What people see of a message: its sections, or its text where it has none."""
    sections = [block["text"]["text"] for block in values.get("blocks") or () if block["type"] == "section"]
    return "\n".join(sections) or str(values.get("text", ""))


def _refusal(values: Values, longest: int) -> str:
    """Why Slack does not take a message (docs.slack.dev, chat.postMessage, chat.update, section block)."""
    blocks = values.get("blocks") or []
    sections = [block["text"]["text"] for block in blocks if block["type"] == "section"]
    if not (values.get("text") or blocks):
        return "no_text"
    if len(values.get("text", "")) > longest:
        return "msg_too_long"
    wrong = len(blocks) > MOST_BLOCKS or any(not 0 < len(text) <= LONGEST_SECTION for text in sections)
    return "invalid_blocks" if wrong else ""


async def _values(request: web.Request) -> Values:
    """The arguments of a call: JSON, or a form whose lists and objects are JSON."""
    if "json" in request.content_type:
        found: Values = await request.json()
        return found
    given = {**request.query, **await request.post()}
    return {
        name: json.loads(value) if name in STRUCTURED and isinstance(value, str) else value
        for name, value in given.items()
    }


def _json_refused() -> web.Response:
    return web.json_response({"ok": False, "error": "invalid_arguments"})


def _labels(values: Values) -> tuple[str, ...]:
    blocks = values.get("blocks") or []
    return tuple(each["text"]["text"] for block in blocks for each in block.get("elements", ()))


@asynccontextmanager
async def slack_platform() -> AsyncIterator[SlackPlatform]:
    """The workspace, served until the block ends."""
    platform = SlackPlatform()
    application = web.Application(client_max_size=64_000_000)
    application.add_routes(
        [
            web.route("*", "/api/{method}", platform.method),
            web.get("/socket", platform.socket),
            web.post("/upload/{id}", platform.upload),
            web.get("/files/{id}", platform.download),
        ]
    )
    async with served(application) as url:
        platform.url = url
        yield platform
        for socket in list(platform.sockets):
            await socket.close()
