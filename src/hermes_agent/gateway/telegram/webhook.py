"""Updates that Telegram brings: one address behind a proxy of this machine, open to whoever knows the secret."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.inbound.guard import read
from hermes_agent.host.inbound.listener import Routes
from hermes_agent.host.inbound.message import Request, Response
from hermes_agent.host.inbound.proof import same

LARGEST_UPDATE = 2_000_000
MOST_WAITING = 100
"""Updates that wait to be taken in; Telegram brings one at a time, and again what it is told to."""
HEADER = "x-telegram-bot-api-secret-token"

Plain = Mapping[str, Any]
Brought = tuple[Plain, asyncio.Future[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where Telegram brings updates, the port of this machine to which that leads, and what it shows with each."""

    url: str
    port: int
    secret: str


def secret_of(token: str) -> str:
    """What Telegram shows with each update of a bot: the same in every process, and nothing of the token."""
    return hmac.new(token.encode(), b"webhook", hashlib.sha256).hexdigest()


def acknowledge(brought: Iterable[Brought]) -> None:
    """These were taken in: whoever still waits to hear it is told."""
    for _, taken in brought:
        if not taken.cancelled():
            taken.set_result(None)


class Entrance:
    """Takes updates in at `path`. Telegram is told that one arrived when whoever takes it from here has said so; it
    brings again what was not."""

    def __init__(self, path: str, secret: str) -> None:
        self._secret = secret
        self._brought: asyncio.Queue[Brought] = asyncio.Queue(MOST_WAITING)
        self.routes = Routes()
        self.routes.mount(path or "/", "POST", self._take)

    async def _take(self, request: Request) -> Response:
        """One request, from whoever sent it."""
        if not same(request.headers.get(HEADER, ""), self._secret):
            return Response(status=403)
        try:
            update = msgspec.json.decode(await read(request, LARGEST_UPDATE), type=dict[str, Any])
        except msgspec.DecodeError:
            return Response(status=400)
        if not isinstance(update.get("update_id"), int):
            return Response(status=400)
        if self._brought.full():
            return Response(status=503)
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._brought.put_nowait((update, taken))
        await taken
        return Response(status=200)

    async def next(self) -> list[Brought]:
        """What was brought and not yet given out, in its order; at least one."""
        brought = [await self._brought.get()]
        while not self._brought.empty():
            brought.append(self._brought.get_nowait())
        return sorted(brought, key=lambda each: int(each[0]["update_id"]))
