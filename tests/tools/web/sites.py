"""A site on loopback whose every path is a case."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from hermes_agent.host.inbound.listener import Listening as Server, serve
from hermes_agent.host.inbound.message import Cut, Request, Response


@dataclass
class Site:
    """Answers by path; `moved` tells where `/moved` leads, `asked` holds the requests."""

    server: Server
    asked: list[Request] = field(default_factory=list)
    moved: str = ""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"


FIXED = {
    "/": Response(headers={"Content-Type": "text/html; charset=utf-8"}, body="<p>Grüße".encode()),
    "/loop": Response(status=301, headers={"Location": "/loop"}),
    "/png": Response(headers={"Content-Type": "image/png"}, body=b"\x89PNG"),
    "/big": Response(headers={"Content-Type": "text/plain"}, body=b"x" * (3 << 20)),
    "/bomb": Response(
        headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"}, body=gzip.compress(bytes(30 << 20))
    ),
}


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    found: list[Site] = []

    async def answer(request: Request) -> Response:
        here = found[0]
        here.asked.append(request)
        match request.path:
            case "/moved":
                return Response(status=302, headers={"Location": here.moved})
            case "/slow":
                await asyncio.Event().wait()
            case "/cut":
                raise Cut(reset=True)
        return FIXED.get(request.path, Response(status=404, body=b"nothing here"))

    async with serve(answer) as server:
        found.append(Site(server=server))
        yield found[0]
