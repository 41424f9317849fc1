"""The address `/mcp` of the API server: our requests as the SDK's transport takes them (ASGI), and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, MutableMapping, Set
from typing import TYPE_CHECKING, Any

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from hermes_agent.app.operations.access import Access
from hermes_agent.core.chat import Principal
from hermes_agent.host.inbound.message import Request, Response, read, with_pauses
from hermes_agent.host.tasks import spawn
from hermes_agent.mcp_server.adapter import Offer, server_of
from hermes_agent.mcp_server.offer import HermesOffer

if TYPE_CHECKING:
    from hermes_agent.app.system import System

MOST_SESSIONS = 200
"""Sessions of the older protocol at a time, of one principal; then the one used least recently ends."""
SESSION = "mcp-session-id"


class McpEndpoint:
    """Answers requests of principals: each has a server and sessions of their own. `ending` closes open streams."""

    def __init__(self, offer: Callable[[Principal], Offer], ending: asyncio.Event) -> None:
        self._offer, self._ending = offer, ending
        self._open: dict[Principal, _Served] = {}

    def server(self, who: Principal) -> Server[Any]:
        """The server of a principal."""
        return server_of(self._offer(who))

    async def __call__(self, request: Request, who: Principal, largest: int) -> Response:
        """Answer one request; `largest` is in bytes. Raises `Refused`."""
        if who not in self._open:
            self._open[who] = _Served(self.server(who), self._ending, largest)
        return await self._open[who].answer(request, largest)

    def keep(self, these: Set[Principal]) -> None:
        """End the sessions of all others."""
        for gone in self._open.keys() - these:
            spawn(self._open.pop(gone).close(), name="end of MCP sessions")

    async def close(self) -> None:
        """End all sessions."""
        for each in self._open.values():
            await each.close()


def endpoint_of(system: System, ending: asyncio.Event) -> McpEndpoint:
    """The address of a system."""
    return McpEndpoint(lambda who: HermesOffer(Access(system=system, who=who)), ending)


class _Served:
    """The server of one principal, in a task of its own: the SDK wants to be left by the task that entered it."""

    def __init__(self, server: Server[Any], ending: asyncio.Event, largest: int) -> None:
        self._ending, self._over = ending, asyncio.Event()
        self._manager = StreamableHTTPSessionManager(server, max_sessions=MOST_SESSIONS, max_request_body_size=largest)
        self._ready = asyncio.Event()
        self._used, self._busy = dict[str, None](), dict[asyncio.Task[None], str]()
        self._task = spawn(self._run(), name="MCP over HTTP")

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._over.wait()

    async def close(self) -> None:
        """End the sessions."""
        self._over.set()
        await self._task

    async def answer(self, request: Request, largest: int) -> Response:
        """Answer one request. Raises `Refused`."""
        await self._ready.wait()
        exchange, session = _Exchange(request, await read(request, largest)), request.headers.get(SESSION, "")
        if not session:
            await self._make_room()
        task = self._handle(exchange)
        self._busy[task] = session
        task.add_done_callback(self._busy.pop)
        try:
            if not await exchange.started():
                await task  # It failed: its error says why.
        except asyncio.CancelledError:
            task.cancel()
            raise
        pieces, headers = exchange.pieces(task), exchange.headers
        self._used.pop(session, None)
        if request.method != "DELETE" and (session := headers.get(SESSION, "")):
            self._used[session] = None
        if headers.get("content-type", "").startswith("text/event-stream"):
            body: AsyncGenerator[bytes, None] | bytes = with_pauses(pieces, ended=self._ending)
        else:
            body = b"".join([piece async for piece in pieces])
        return Response(status=exchange.status, headers=headers, body=body)

    def _handle(self, exchange: _Exchange) -> asyncio.Task[None]:
        handling = self._manager.handle_request(exchange.scope, exchange.receive, exchange.send)
        task = spawn(handling, name="MCP request")
        task.add_done_callback(exchange.end)
        return task

    async def _make_room(self) -> None:
        """End sessions without a request under way where there are too many: their clients begin anew."""
        idle = [each for each in self._used if each not in self._busy.values()]
        for session in idle[: max(0, len(self._used) - MOST_SESSIONS + 1)]:
            del self._used[session]
            await self._handle(_Exchange(Request(method="DELETE", path="/mcp", headers={SESSION: session}), b""))


class _Exchange:
    """One request and its response in ASGI."""

    def __init__(self, request: Request, body: bytes) -> None:
        self._left, self._body = request.left, body
        self._is_read = False
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.status, self.headers = 500, dict[str, str]()
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": request.method,
            "path": request.path,
            "root_path": "",
            "query_string": request.query.encode(),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()],
            "client": None,
            "server": None,
        }

    async def receive(self) -> dict[str, Any]:
        """The request's body, then that the client left."""
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Take the head or a piece of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
            self.headers.pop("content-length", None)
        self._pieces.put_nowait(message.get("body", b""))

    def end(self, _: object) -> None:
        """Nothing more comes."""
        self._pieces.put_nowait(None)

    async def started(self) -> bool:
        """Wait for the head of the response; whether there is one."""
        return await self._pieces.get() is not None

    async def pieces(self, task: asyncio.Task[None]) -> AsyncGenerator[bytes, None]:
        """The pieces of the response; where nobody reads them any more, the SDK's work on them ends."""
        try:
            while (piece := await self._pieces.get()) is not None:
                if piece:
                    yield piece
        finally:
            task.cancel()
            await asyncio.wait((task,))
