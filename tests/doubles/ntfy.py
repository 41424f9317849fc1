"""An ntfy server on loopback, written from docs.ntfy.sh: subscribing, publishing, access, files."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from aiohttp import web

from hermes_agent.testing.platform import Shown
from tests.doubles.json_platform import Handler, JsonPlatform


class NtfyPlatform(JsonPlatform):
    """Topics with people who write to them (a `Double`). `version` is the server's, `reserved`: nobody else may read or
    write; `since` is where the last stream began, `taken` where the next one will: no server is told before."""

    def __init__(self) -> None:
        super().__init__()
        self.version, self.reserved, self.since = "2.16.0", True, ""
        self.taken: Callable[[], str] = str
        self.named = {"POST /": "send", "PUT /{topic}/{id}": "send", "GET /{topic}/json": "listen"}
        self.told: list[dict[str, Any]] = []
        self.more = asyncio.Event()

    def routes(self) -> Mapping[str, Handler]:
        return {
            "GET /v1/version": self._version,
            "GET /{topic}/auth": self._auth,
            "GET /{topic}/json": self._stream,
            "POST /": self._publish,
            "PUT /{topic}/{id}": self._publish_file,
        }

    async def say(self, text: str, *, chat: str = "mine", **more: Any) -> str:  # noqa: ANN401  other fields of a line
        fields = {name: value for name, value in more.items() if name in ("title", "attachment", "sequence_id")}
        line = {"id": f"m{self.chats.next_id()}", "time": int(time.time()), "event": "message", "topic": chat}
        await self.tells(partial(self._tell, {**line, "message": text, **fields}))
        return str(line["id"])

    async def again(self, back: int = 0) -> None:
        self._tell(self.told[-1 - back])

    async def press(self, message: str, choice: int, *, user: str = "") -> None:
        shown = self.chats.messages[message]
        action = json.loads(shown.written)["actions"][choice]
        assert action["url"] == f"{self.url}/{shown.chat}"
        await self.say(action["body"], chat=shown.chat)

    def received(self) -> int:
        marks = [line["id"] for line in self.told]
        return marks.index(self.taken()) + 1 if self.taken() in marks else 0

    def _tell(self, line: dict[str, Any]) -> None:
        self.told.append(line)
        self.more.set()

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": self.version})

    async def _auth(self, request: web.Request) -> web.Response:
        status = 200 if self.knows(request) or not self.reserved else 403
        return web.json_response({"success": status == 200}, status=status)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        if not self.knows(request):
            return web.json_response({"code": 40301}, status=403)
        self.since = request.query["since"]
        marks = [line["id"] for line in self.told]
        at = marks.index(self.since) + 1 if self.since in marks else 0
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"event":"open"}\n')
        while True:
            for line in self.told[at:]:
                await response.write(json.dumps(line).encode() + b"\n")
            at = len(self.told)
            self.more.clear()
            await self.more.wait()

    async def _publish(self, request: web.Request) -> web.Response:
        return self._shown(request, await request.json(), "")

    async def _publish_file(self, request: web.Request) -> web.Response:
        name = request.query["filename"]
        self.files[name] = await request.read()
        content = {"topic": request.match_info["topic"], "sequence_id": request.match_info["id"]}
        return self._shown(request, {**content, "message": request.query["message"]}, name)

    def _shown(self, request: web.Request, content: dict[str, Any], file: str) -> web.Response:
        if not self.knows(request):
            return web.json_response({"code": 40301}, status=403)
        if len(content["message"].encode()) > 4096 or len(content.get("actions", ())) > 3:
            return web.json_response({"code": 40001}, status=400)
        id_, labels = content["sequence_id"], tuple(each["label"] for each in content.get("actions", ()))
        shown = Shown(
            id=id_,
            chat=content["topic"],
            text=content["message"],
            buttons=labels,
            file=file,
            key=id_,
            written=json.dumps(content),
        )
        self.chats.show(shown)
        line = {"id": f"m{self.chats.next_id()}", "event": "message", "topic": content["topic"], "sequence_id": id_}
        self.told.append({**line, "time": int(time.time()), "message": content["message"]})
        self.more.set()
        return web.json_response(line)


@asynccontextmanager
async def ntfy_platform() -> AsyncIterator[NtfyPlatform]:
    """The server, until the block ends."""
    platform = NtfyPlatform()
    async with platform.serving():
        yield platform
