"""Discord's gateway on loopback: connections that are told events, begin a session, or go on with one."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from dataclasses import field
from typing import Any

from aiohttp import WSMsgType, web

from hermes_agent.core.dataclass import dataclass

OWN = "4242"
BEAT_MILLISECONDS = 200
"""Short, so that it is known soon how far the agent has come. Discord's is about 41 seconds."""
SYNC = zlib.Z_SYNC_FLUSH
FAREWELL = (1000, 1001)
"""Codes of a client's close after which Discord forgets its session."""

Values = dict[str, Any]


@dataclass(slots=True)
class Link:
    """One connection of the gateway; `packer` where the client wanted its messages compressed. `begun`: it is in a
    session."""

    socket: web.WebSocketResponse
    packer: Any
    begun: bool = False

    async def send(self, value: Values) -> None:
        """Send, where somebody is still there."""
        text = json.dumps(value)
        with suppress(ConnectionError):
            if self.packer is None:
                await self.socket.send_str(text)
            else:
                await self.socket.send_bytes(self.packer.compress(text.encode()) + self.packer.flush(SYNC))


@dataclass(slots=True)
class Gateway:
    """What happened, in order, and who is told of it. `closing` is the code with which the next identification is
    refused; `forgetful`: no session can be resumed; `reached` is how far a client said that it had come."""

    url: str = ""
    closing: int = 0
    forgetful: bool = False
    events: list[Values] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    identified: int = 0
    resumed: int = 0
    reached: int = 0

    async def tell(self, name: str, data: Values) -> None:
        """Have Discord tell something: now, and to whoever resumes from before it."""
        event = {"op": 0, "t": name, "s": len(self.events) + 2, "d": data}
        self.events.append(event)
        for link in self.links:
            if link.begun:
                await link.send(event)

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        """One connection of the gateway."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        packed = request.query.get("compress") == "zlib-stream"
        link = Link(socket, zlib.compressobj() if packed else None)
        self.links.append(link)
        await link.send({"op": 10, "d": {"heartbeat_interval": BEAT_MILLISECONDS}})
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await self._answer(link, json.loads(message.data))
        self.links.remove(link)
        if link.begun and socket.close_code in FAREWELL:
            self.forgetful = True
        return socket

    async def _answer(self, link: Link, message: Values) -> None:
        match message["op"]:
            case 1:
                self.reached = max(self.reached, message["d"] or 0)
                await link.send({"op": 11})
            case 2 if self.closing:
                code, self.closing = self.closing, 0
                await link.socket.close(code=code)
            case 2:
                await self._begin(link)
            case 6 if self.forgetful:
                self.forgetful = False
                await link.send({"op": 9, "d": False})
            case 6:
                self.resumed += 1
                await self._catch_up(link, message["d"]["seq"] - 1)
                await link.send({"op": 0, "t": "RESUMED", "s": len(self.events) + 1, "d": {}})

    async def _begin(self, link: Link) -> None:
        """A new session; the first one is told what was said before it."""
        me = {"id": OWN, "username": "hermes", "discriminator": "0", "avatar": None, "bot": True}
        ready = {
            "v": 10,
            "user": me,
            "guilds": [],
            "session_id": f"s{self.identified}",
            "resume_gateway_url": self.url,
            "application": {"id": OWN, "flags": 0},
        }
        await link.send({"op": 0, "t": "READY", "s": 1 if not self.identified else len(self.events) + 1, "d": ready})
        self.identified += 1
        await self._catch_up(link, 0 if self.identified == 1 else len(self.events))

    async def _catch_up(self, link: Link, reached: int) -> None:
        """Tell what came after so many events, in order, also what comes meanwhile."""
        while reached < len(self.events):
            await link.send(self.events[reached])
            reached += 1
        link.begun = True

    async def reconnect(self) -> None:
        """Ask for another connection, as Discord does from time to time."""
        await self.links[-1].send({"op": 7, "d": None})
