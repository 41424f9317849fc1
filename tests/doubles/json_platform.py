"""A platform on loopback that answers calls with JSON: what every double of one has, and its troubles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from hermes_agent.testing.platform import Chats, Held, Trouble
from tests.doubles.serving import cut, given_out, served

REFUSED = {Trouble.BUSY: 429, Trouble.BROKEN: 502, Trouble.GONE: 404}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class JsonPlatform(Held):
    """Calls by `METHOD /path`; `named` gives some of them the name under which troubles are ordered. `token` is what
    every call shows (empty: nothing), `refused` the status with which all are refused, `slow` the seconds of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.chats = Chats()
        self.named: Mapping[str, str] = {}
        self.url = ""
        self.token = "secret"
        self.refused = 0
        self.slow = 0.0
        self.files: dict[str, bytes] = {}

    def routes(self) -> Mapping[str, Handler]:
        """The calls that there are, but those of files."""
        raise NotImplementedError

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Be there until the block ends."""
        application = web.Application(client_max_size=64_000_000)
        for call, handler in {**self.routes(), "GET /file/{name}": self._file}.items():
            method, _, path = call.partition(" ")
            application.router.add_route(method, path, self._troubled(self.named.get(call, call), handler))
        async with served(application) as self.url:
            yield

    def _troubled(self, name: str, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if self.refused:
                return web.json_response({"error": "refused"}, status=self.refused)
            trouble = self.chats.trouble(name)
            if trouble in REFUSED:
                headers = {"Retry-After": str(self.chats.retry_after)} if trouble is Trouble.BUSY else {}
                return web.json_response({"error": trouble}, status=REFUSED[trouble], headers=headers)
            answer = await handler(request) if trouble is not Trouble.CUT else web.Response()
            if trouble in (Trouble.DEAF, Trouble.CUT):
                return cut(request)
            return web.Response(body=b"?") if trouble is Trouble.GARBLED else answer

        return handle

    def knows(self, request: web.Request) -> bool:
        """Whether a call shows the token."""
        return not self.token or request.headers.get("Authorization") == f"Bearer {self.token}"

    async def _file(self, request: web.Request) -> web.StreamResponse:
        content: Any = self.files.get(request.match_info["name"])
        return web.Response(status=404) if content is None else await given_out(request, content, self.slow)
