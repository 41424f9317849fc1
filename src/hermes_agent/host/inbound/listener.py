"""The inbound HTTP listener: an address, and a router from paths to handlers."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from urllib.parse import unquote, urlsplit

from hermes_agent.core.dataclass import dataclass
from hermes_agent.host.inbound.connection import Connection
from hermes_agent.host.inbound.message import Handler, Policy, Refused, Request, Response
from hermes_agent.host.tasks import spawn

LOOPBACK = "127.0.0.1"
BACKLOG = 2048
LARGEST_BODY = 64 * 1024 * 1024
ACCEPTING = 5
"""Rounds of the event loop until a connection that was accepted has its handler."""
SLOT = re.compile(r"\{(\w+)(:path)?\}")


class Routes:
    """Router of handlers by path and method; `{name}` in a path stands for a segment, `{name:path}` for the whole
    rest."""

    def __init__(self) -> None:
        self._mounted: dict[str, tuple[re.Pattern[str], dict[str, Handler]]] = {}

    def mount(self, path: str, method: str, handler: Handler) -> None:
        """Register a handler; HEAD is answered as GET."""
        if path not in self._mounted:
            pattern = SLOT.sub(lambda slot: f"(?P<{slot[1]}>{'.*' if slot[2] else '[^/]+'})", path)
            self._mounted[path] = re.compile(pattern), {}
        self._mounted[path][1][method] = handler

    async def __call__(self, request: Request) -> Response:
        """Answer one request. Raises `Refused` where nothing is mounted there."""
        path = request.path if request.path.startswith("/") else urlsplit(request.path).path
        path, method = unquote(path), "GET" if request.method == "HEAD" else request.method
        for route, (pattern, methods) in self._mounted.items():
            if (found := pattern.fullmatch(path)) is None:
                continue
            if method not in methods:
                allowed = ", ".join([*methods, *["HEAD"] * ("GET" in methods)])
                raise Refused(405, "This address takes another method.", headers={"allow": allowed})
            request.route, request.slots = route, found.groupdict()
            return await methods[method](request)
        raise Refused(404, "There is nothing at this address.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Address of a running listener. `cut` ends each connection whose request, which is being answered, is one of
    those; its handler is cancelled."""

    host: str = LOOPBACK
    port: int
    cut: Callable[[Callable[[Request], bool]], None]

    @property
    def url(self) -> str:
        """The URL without a trailing slash."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@contextlib.asynccontextmanager
async def listen(
    handler: Handler, host: str = LOOPBACK, port: int = 0, policy: Policy | None = None
) -> AsyncIterator[Listening]:
    """Serve until the block ends; port 0 takes a free one. A handler continues when its client leaves. Raises
    `OSError` where the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small pieces at once only on what says that it is TCP.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    policy, connections = policy or Policy(), set[Connection]()
    loop = asyncio.get_running_loop()

    def cut(ends: Callable[[Request], bool]) -> None:
        for each in tuple(connections):
            if each.answering is not None and ends(each.answering.request):
                each.abort()

    server = await loop.create_server(lambda: Connection(handler, policy, connections), sock=bound, backlog=BACKLOG)
    try:
        yield Listening(host=host, port=bound.getsockname()[1], cut=cut)
    finally:
        await accept_no_more(server)
        for connection in tuple(connections):
            connection.finish()
        if busy := {each.task for each in connections if each.task is not None}:
            await asyncio.wait(busy, timeout=policy.drain_seconds)
        for connection in tuple(connections):
            connection.abort()
        if busy:
            await asyncio.wait(busy)
        await server.wait_closed()
        await asyncio.sleep(0)  # The sockets of aborted connections are closed in the next round.


async def accept_no_more(listener: asyncio.Server) -> None:
    """Close a listener once each accepted connection has its handler; Python 3.11 would lose the others."""
    for accepting in listener.sockets:
        asyncio.get_running_loop().remove_reader(accepting)
    for _ in range(ACCEPTING):
        await asyncio.sleep(0)
    listener.close()


@contextlib.asynccontextmanager
async def serve(handler: Handler, port: int = 0, *, largest: int = LARGEST_BODY) -> AsyncIterator[Listening]:
    """Serve on loopback a handler that gets whole bodies of at most `largest` bytes and is cancelled when its client
    leaves. Open connections are cut when the block ends. Raises `OSError` where the port is taken."""

    async def whole(request: Request) -> Response:
        body = bytearray()
        assert request.pieces is not None
        async for piece in request.pieces:
            body += piece
            if len(body) > largest:
                return Response(status=413)
        request.body = bytes(body)
        answering, leaving = spawn(_answer(handler, request), name="answer"), spawn(request.left.wait(), name="client")
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            return await answering if answering.done() else Response()
        finally:
            answering.cancel()
            leaving.cancel()

    async with listen(whole, port=port) as listening:
        yield listening


async def _answer(handler: Handler, request: Request) -> Response:
    return await handler(request)


@contextlib.contextmanager
def serve_in_thread(handler: Handler, port: int = 0) -> Iterator[Listening]:
    """The same on a loop and thread of its own, for callers that are not async."""
    ready: Future[tuple[Listening, Callable[[], object]]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        try:
            async with serve(handler, port) as listening:
                ready.set_result((listening, lambda: loop.call_soon_threadsafe(stop.set)))
                await stop.wait()
        except OSError as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="loopback-server", daemon=True)
    thread.start()
    try:
        listening, stop = ready.result()
        try:
            yield listening
        finally:
            stop()
    finally:
        thread.join()
