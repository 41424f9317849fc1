"""Discord gateway client: a resumable WebSocket stream of numbered events, whose position survives restarts."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HomeError
from hermes_agent.gateway.channel import NotNow, TokenRefused
from hermes_agent.gateway.dispatcher import Cursor, Dispatcher, dispatching, is_control
from hermes_agent.host.http import Http
from hermes_agent.host.paths import write_private
from hermes_agent.host.tasks import spawn
from hermes_agent.host.websocket import Socket, SocketClosed, websocket

log = logging.getLogger(__name__)

INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
"""Guilds, messages in them, direct messages, and what is in those."""
DISPATCH, BEAT, IDENTIFY, RESUME, RECONNECT, INVALID, HELLO = 0, 1, 2, 6, 7, 9, 10
FORGOTTEN = frozenset({4003, 4007, 4009})
"""Codes of a closed connection after which a session is not resumed."""
REFUSED = {
    4004: "Discord does not know the token any more: see DISCORD_BOT_TOKEN.",
    4013: "Discord does not know what the agent wants to hear (intents).",
    4014: "Discord does not let the agent read messages: switch on the Message Content Intent at the bot's page "
    "(https://discord.com/developers/applications).",
}
OPENING_SECONDS = 30.0
RESUMABLE = 4000
"""How a connection is left: after 1000 and 1001 Discord forgets the session, and what comes until the next is lost."""

Take = Callable[[str, Mapping[str, Any]], Awaitable[bool]]
"""Takes in an event by its name; durable when it returns. Whether it was anything to us."""
Dispatch = Callable[[Mapping[str, Any]], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Place:
    """Position in a Discord gateway session from which the stream can resume; empty `session`: none."""

    session: str = ""
    url: str = ""
    number: int | None = None

    def forget(self) -> None:
        self.session, self.url, self.number = "", "", None


class Stream:
    """Event stream of one Discord bot. The position is saved in `file`, so that a new process resumes; Discord keeps
    missed events for a few minutes."""

    def __init__(self, http: Http, token: str, file: Path) -> None:
        self._http = http
        self._token = token
        self._file = file
        self._place: Place | None = None

    async def follow(self, url: str, take: Take) -> None:
        """Follow one connection until Discord asks to reconnect. `url` starts a new session. Raises `NotNow`,
        `TokenRefused`, and errors of `take`, whose event is delivered again."""
        if self._place is None:
            self._place = await asyncio.to_thread(_read, self._file)
        place = self._place
        base = (place.url if place.session else "") or url
        opened = False
        try:
            address = f"{base.rstrip('/')}/?v=10&encoding=json"
            async with (
                websocket(self._http, address, leaves=RESUMABLE) as socket,
                dispatching() as dispatcher,
            ):
                opened = True
                await self._converse(
                    socket, place, partial(self._dispatch, dispatcher, Cursor(place.number), place, take)
                )
        except SocketClosed as closed:
            if closed.code in REFUSED:
                raise TokenRefused(REFUSED[closed.code]) from closed
            if closed.code in FORGOTTEN:
                place.forget()
            raise NotNow(str(closed)) from closed
        finally:
            if not opened:
                place.url = ""  # That host may be gone for good: a session can be resumed by every other.

    async def _converse(self, socket: Socket, place: Place, dispatch: Dispatch) -> None:
        hello = await socket.receive(OPENING_SECONDS)
        if hello.get("op") != HELLO:
            raise NotNow("Discord opened a connection and did not greet.")
        interval = float(hello["d"]["heartbeat_interval"]) / 1000
        await socket.send(self._resume(place) if place.session else self._identify())
        beating = spawn(_beat(socket, place, interval), name="discord heartbeat")
        try:
            # Each beat is answered: a connection that is silent for two of them is dead.
            while await self._one(await socket.receive(2 * interval + 10), socket, place, dispatch):
                pass
        finally:
            beating.cancel()

    async def _one(self, message: Mapping[str, Any], socket: Socket, place: Place, dispatch: Dispatch) -> bool:
        """Handle one message; False if Discord asks to reconnect."""
        match message.get("op"):
            case n if n == DISPATCH:
                await dispatch(message)
            case n if n == BEAT:
                await socket.send({"op": BEAT, "d": place.number})
            case n if n == RECONNECT:
                return False
            case n if n == INVALID:
                if not message.get("d"):
                    place.forget()
                raise NotNow("Discord ended the session.")  # It wants a pause before the next one.
        return True

    async def _dispatch(
        self, dispatcher: Dispatcher, cursor: Cursor[int | None], place: Place, take: Take, message: Mapping[str, Any]
    ) -> None:
        """Process an event in its chat's order; the position advances past all processed without a gap."""
        name, data = str(message.get("t")), message.get("d") or {}
        if name == "READY":
            place.session, place.url = str(data["session_id"]), str(data.get("resume_gateway_url", ""))
        done = cursor.begin(message.get("s") or cursor.mark)

        async def job() -> None:
            matters = await take(name, data)
            done()
            place.number = cursor.mark
            await self._keep(place, matters=matters or name in ("READY", "RESUMED"))

        control = name == "INTERACTION_CREATE" or is_control(str(data.get("content", "")))
        await dispatcher.put(str(data.get("channel_id") or data.get("id") or ""), job, control=control)

    async def _keep(self, place: Place, *, matters: bool) -> None:
        if matters:
            with suppress(HomeError):  # Without it a new process begins a new session.
                await asyncio.to_thread(_write, self._file, place)

    def _identify(self) -> dict[str, Any]:
        properties = {"os": "linux", "browser": "hermes", "device": "hermes"}
        return {"op": IDENTIFY, "d": {"token": self._token, "intents": INTENTS, "properties": properties}}

    def _resume(self, place: Place) -> dict[str, Any]:
        return {"op": RESUME, "d": {"token": self._token, "session_id": place.session, "seq": place.number}}


async def _beat(socket: Socket, place: Place, interval: float) -> None:
    with suppress(SocketClosed):  # Whoever receives finds out too.
        while True:
            await asyncio.sleep(interval)
            await socket.send({"op": BEAT, "d": place.number})


def _read(file: Path) -> Place:
    try:
        found = json.loads(file.read_bytes())
        return Place(session=str(found["session"]), url=str(found["url"]), number=int(found["number"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Place()


def _write(file: Path, place: Place) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = {"session": place.session, "url": place.url, "number": place.number}
    write_private(file, json.dumps(kept).encode(), durable=False)
