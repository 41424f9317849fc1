"""Discord on loopback, written from the public description of its REST interface and its gateway."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from aiohttp import BodyPartReader, web

from hermes_agent.core.clock import Clock, SystemClock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.testing.platform import TITLE, Chats, Held, Shown, Trouble
from tests.doubles.discord_gateway import OWN, Gateway
from tests.doubles.serving import cut, given_out, served

GUILD = "77"
EPOCH = 1_420_070_400.0
LONGEST, LARGEST = 2000, 10_485_760

Values = dict[str, Any]


@dataclass(slots=True)
class DiscordPlatform(Held):
    """Servers and people (a `Double`). `unauthorized`: the token is not known; `threads` are the threads by id with
    the channel of each, `unread` the channels whose history the agent may not read; `slow`: seconds of a file."""

    chats: Chats = field(default_factory=Chats)
    url: str = ""
    unauthorized: bool = False
    clock: Clock = field(default_factory=SystemClock)
    gateway: Gateway = field(default_factory=Gateway)
    threads: dict[str, str] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    bodies: dict[str, Values] = field(default_factory=dict)
    callbacks: list[Values] = field(default_factory=list)
    slow: float = 0.0
    _count: int = 0

    def snowflake(self) -> str:
        """An id that holds the time."""
        self._count += 1
        return str((int((self.clock.now() - EPOCH) * 1000) << 22) | self._count)

    async def say(
        self,
        text: str,
        *,
        chat: str = "1",
        user: str = "7",
        name: str = "Ann",
        group: bool = False,
        thread: str = "",
        **more: Any,  # noqa: ANN401  whatever JSON holds
    ) -> str:
        if thread:
            self.threads[thread] = chat
        id_ = self.snowflake()
        author = {"id": user, "username": name.lower(), "global_name": name, "discriminator": "0", "avatar": None}
        message = {**_message(id_, thread or chat, author, text), **more}
        if group:
            message |= {"guild_id": GUILD, "member": {"roles": ["5"], "nick": None}}
        await self.tells(partial(self.gateway.tell, "MESSAGE_CREATE", message))
        return id_

    async def again(self, back: int = 0) -> None:
        told = self.gateway.events[-1 - back]
        await self.gateway.tell(told["t"], told["d"])

    async def change(self, text: str) -> None:
        said = self.gateway.events[-1]["d"]
        stamp = f"2026-11-22T10:00:00.{int(self.snowflake()) % 1_000_000:06d}+00:00"
        await self.gateway.tell("MESSAGE_UPDATE", {**said, "content": text, "edited_timestamp": stamp})

    async def press(self, message: str, choice: int, *, user: str = "7") -> None:
        rows = self.bodies[message]["components"]
        buttons = [button for row in rows for button in row["components"]]
        await self.gateway.tell(
            "INTERACTION_CREATE",
            {
                "id": self.snowflake(),
                "token": "t",
                "type": 3,
                "channel_id": self.chats.messages[message].chat,
                "user": {"id": user, "username": "ann"},
                "data": {"custom_id": buttons[choice]["custom_id"]},
            },
        )

    def received(self) -> int:
        return max(0, self.gateway.reached - 1)

    async def call(self, request: web.Request) -> web.StreamResponse:
        """A call of the REST interface."""
        path, method = request.match_info["path"].split("/"), request.method
        values = await _values(request, self.files)
        call = _name(method, path)
        trouble = self.chats.trouble(call)
        if (failed := self._failed(call, trouble, request)) is not None:
            return failed
        answer = self._done(method, path, values)
        if trouble is Trouble.DEAF:
            return cut(request)
        return web.Response(body=b"?") if trouble is Trouble.GARBLED else answer

    def _failed(self, call: str, trouble: Trouble | None, request: web.Request) -> web.Response | None:
        after = self.chats.retry_after
        if self.unauthorized:
            return _json({"message": "401: Unauthorized", "code": 0}, status=401)
        match trouble:
            case Trouble.BUSY:
                limits = {"Retry-After": str(after), "X-RateLimit-Scope": "user"}
                found = {"message": "You are being rate limited.", "retry_after": after, "global": False}
                return _json(found, status=429, headers=limits)
            case Trouble.BROKEN:
                return web.Response(status=502)
            case Trouble.GONE:
                return _unknown("Message" if call in ("edit", "delete") else "Channel")
            case Trouble.CUT:
                return cut(request)
        return None

    def _done(self, method: str, path: list[str], values: Values) -> web.Response:
        answer = web.Response(status=204)
        match method, path:
            case "GET", ["users", "@me"] | ["oauth2", "applications", "@me"]:
                answer = _json(_agent())
            case "GET", ["gateway", "bot"]:
                limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
                answer = _json({"url": self.gateway.url, "shards": 1, "session_start_limit": limit})
            case "GET", ["guilds", guild] if guild == GUILD:
                roles = [{"id": GUILD, "name": "@everyone"}, {"id": "6", "name": "hermes", "tags": {"bot_id": OWN}}]
                answer = _json({"id": guild, "name": "All", "roles": roles})
            case "GET", ["channels", channel]:
                answer = self._channel(channel)
            case _, ["channels", channel, "messages", *id_]:
                answer = self._message(method, channel, "".join(id_[:1]), values, id_[1:])
            case "POST", ["channels", channel, "typing"]:
                self.chats.typing.append(channel)
            case "POST", ["interactions", _, _, "callback"]:
                self.callbacks.append(values)
            case _:
                answer = _json({"message": "404: Not Found", "code": 0}, status=404)
        return answer

    def _message(self, method: str, channel: str, id_: str, values: Values, rest: list[str]) -> web.Response:
        """Something that is done with a message, or with a sign (in `rest`) below it."""
        if rest:
            self.chats.reactions.append((id_, rest[1]))
            return web.Response(status=204)
        if channel in self.unread and "message_reference" in values:
            words = "Cannot reply without permission to read message history"
            return _json({"message": words, "code": 160002}, status=403)
        if method in ("POST", "PATCH") and (refused := _refused(method, values)) is not None:
            return refused
        if method == "POST":
            return _json(self._post(channel, values))
        if method == "PATCH":
            return self._patch(channel, id_, values)
        gone = self.chats.messages.pop(id_, None) is None
        return _unknown("Message") if gone else web.Response(status=204)

    def _channel(self, channel: str) -> web.Response:
        if channel in self.threads:
            return _json({"id": channel, "type": 11, "name": TITLE, "parent_id": self.threads[channel]})
        return _json({"id": channel, "type": 0, "name": TITLE, "parent_id": "3"})

    def _post(self, channel: str, values: Values) -> Values:
        nonce = f"{channel}:{values['nonce']}" if values.get("enforce_nonce") else ""
        thread = channel if channel in self.threads else ""
        id_ = self.snowflake()
        shown = self.chats.show(
            Shown(
                id=id_,
                chat=self.threads.get(channel, channel),
                text=values.get("content") or "",
                thread=thread,
                buttons=_labels(values),
                file=values.get("file", ""),
                answers=str((values.get("message_reference") or {}).get("message_id", "")),
                key=nonce,
                written=json.dumps(values),
            )
        )
        self.bodies.setdefault(shown.id, values)
        return _message(shown.id, channel, _agent(), shown.text)

    def _patch(self, channel: str, id_: str, values: Values) -> web.Response:
        if not self.chats.change(id_, values.get("content") or "", _labels(values), json.dumps(values)):
            return _unknown("Message")
        self.bodies[id_] = values
        return _json(_message(id_, channel, _agent(), values.get("content") or ""))

    async def attachment(self, request: web.Request) -> web.StreamResponse:
        content = self.files.get(request.match_info["name"])
        return web.Response(status=404) if content is None else await given_out(request, content, self.slow)


async def _values(request: web.Request, files: dict[str, bytes]) -> Values:
    """The body: JSON, or a form with `payload_json` and a file, which is kept."""
    if not request.content_type.startswith("multipart/"):
        found: Values = await request.json() if request.can_read_body else {}
        return found
    values: Values = {}
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        if part.name == "payload_json":
            values |= await part.json() or {}
        else:
            values["file"] = part.filename or ""
            files[values["file"]] = content = bytes(await part.read())
            values |= {"size": len(content), "type": part.headers.get("Content-Type", "")}
    return values


def _agent() -> Values:
    user = {"id": OWN, "username": "hermes", "discriminator": "0", "avatar": None, "bot": True}
    application = {"name": "hermes", "icon": None, "description": "", "verify_key": "", "flags": 0}
    rights = {"bot_public": False, "bot_require_code_grant": False}
    owner = {"id": "7", "username": "ann", "discriminator": "0", "avatar": None}
    return {**user, **application, **rights, "owner": owner}


def _message(id_: str, channel: str, author: Values, text: str) -> Values:
    at = datetime.fromtimestamp((int(id_) >> 22) / 1000 + EPOCH, UTC).isoformat()
    lists: Values = {name: [] for name in ("mentions", "mention_roles", "attachments", "embeds", "components")}
    facts = {"edited_timestamp": None, "tts": False, "mention_everyone": False, "pinned": False, "type": 0}
    return {"id": id_, "channel_id": channel, "author": author, "content": text, "timestamp": at, **facts, **lists}


def _name(method: str, path: list[str]) -> str:
    """The name under which troubles are ordered for a call."""
    match method, path:
        case "POST", ["channels", _, "messages"]:
            return "send"
        case "PATCH", _:
            return "edit"
        case "DELETE", _:
            return "delete"
        case "POST", [*_, "typing"]:
            return "typing"
        case "PUT", _:
            return "react"
    return "/".join(path)


def _labels(values: Values) -> tuple[str, ...]:
    return tuple(each["label"] for row in values.get("components") or () for each in row["components"])


def _refused(method: str, values: Values) -> web.Response | None:
    """What Discord answers to a message that it does not take."""
    if len(values.get("content") or "") > LONGEST:
        return _json({"message": "Invalid Form Body", "code": 50035}, status=400)
    if values.get("size", 0) > LARGEST:
        return _json({"message": "Request entity too large", "code": 40005}, status=413)
    if method == "POST" and not (values.get("content") or values.get("file")):
        return _json({"message": "Cannot send an empty message", "code": 50006}, status=400)
    return None


def _unknown(what: str) -> web.Response:
    code = 10008 if what == "Message" else 10003
    return _json({"message": f"Unknown {what}", "code": code}, status=404)


def _json(value: Values, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """JSON under the very type that Discord names: discord.py reads no other."""
    return web.Response(
        body=json.dumps(value).encode(), status=status, headers=headers, content_type="application/json"
    )


@asynccontextmanager
async def discord_platform() -> AsyncIterator[DiscordPlatform]:
    """The platform, served until the block ends."""
    platform = DiscordPlatform()
    application = web.Application(client_max_size=64_000_000)
    application.add_routes(
        [
            web.route("*", "/api/v10/{path:.+}", platform.call),
            web.get("/gateway/", platform.gateway.socket),
            web.get("/gateway", platform.gateway.socket),
            web.get("/files/{name}", platform.attachment),
        ]
    )
    async with served(application) as url:
        platform.url, platform.gateway.url = url, f"{url.replace('http', 'ws')}/gateway"
        yield platform
        for link in list(platform.gateway.links):
            await link.socket.close()
