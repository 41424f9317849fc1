"""MCP servers of a process: what is known of each, and connections that open when a call needs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from hermes_agent.core.clock import Clock
from hermes_agent.core.dataclass import dataclass
from hermes_agent.core.errors import HermesError, ToolError
from hermes_agent.host.tasks import spawn
from hermes_agent.store.mcp.catalogue import McpCatalogue, McpLink, McpTool
from hermes_agent.tools.mcp.listing import FIRST_PAUSE, LONGEST_PAUSE, Fits, Listing, hidden, judged
from hermes_agent.tools.mcp.settings import Server

if TYPE_CHECKING:
    from hermes_agent.tools.mcp.connection import Connection

    Connect: TypeAlias = Callable[[Server, str, Callable[[str], None]], Awaitable[Connection]]

NEW_SECONDS = 3.0
"""Seconds that a search for tools waits for servers which nobody has asked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the rows say of a server."""

    link: McpLink
    tools: tuple[McpTool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """A server that could not be reached: since when, why, how often it was tried, and when it is tried again."""

    since: float
    why: str
    tries: int
    next_try: float

    def words(self, server: str, clock: Clock) -> str:
        """What a call of the server says."""
        pause, since = max(0.0, self.next_try - clock.monotonic()), clock.now() - self.since
        away = f"has been away for {since:.0f} s" if since >= 1 else "cannot be reached"
        return (
            f"The MCP server {server} {away} ({self.why}). It is tried again in "
            f"{pause:.0f} s; `hermes mcp test {server}` tries it now."
        )


def away_again(before: Away | None, why: str, clock: Clock) -> Away:
    """The state after one more failure: each pause is twice the one before."""
    tries = before.tries + 1 if before else 1
    pause = min(2.0 ** (tries - 1), LONGEST_PAUSE)
    since = before.since if before else clock.now()
    return Away(since=since, why=why, tries=tries, next_try=clock.monotonic() + pause)


@dataclass(slots=True)
class Place:
    """The connection to one server for one workspace, if there is one; `users` counts who needs it now, and `watched`
    the changes of each resource that is watched over it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: Connection | None = None
    away: Away | None = None
    users: int = 0
    idle: asyncio.TimerHandle | None = None
    watched: dict[str, int] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether there is a connection over which calls can be made."""
        return self.connection is not None and self.connection.is_open

    def is_needed(self, now: float) -> bool:
        """Whether it holds what a later call, or the end of the process, needs."""
        rests = self.away is not None and now < self.away.next_try + LONGEST_PAUSE
        return bool(self.users or self.watched or rests or (self.connection and not self.connection.is_over))

    def end_idle(self) -> None:
        """Have the connection, and what is watched over it, end once nobody used it for a while."""
        if (connection := self.connection) is None:
            return

        def end() -> None:
            if not self.users:
                self.watched.clear()
                connection.end("nobody used it")  # At once: a call that comes now opens another one.
                spawn(connection.close(), name="end of an idle MCP server")

        if self.idle is not None:
            self.idle.cancel()
        self.idle = asyncio.get_running_loop().call_later(connection.setup.server.settings.idle, end)


class McpServers:
    """Reaches servers, and keeps the rows of what they offer. `connect` opens a connection to a server for a workspace;
    it is told what to call when the server's lists, or a resource, changed. `redact` takes secrets out of what is kept
    of a server's words."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        catalogue: Callable[[], McpCatalogue],
        connect: Connect,
        clock: Clock,
        fits: Fits,
        redact: Callable[[str], str],
    ) -> None:
        self.servers = {server.name: server for server in servers}
        self.known: dict[str, Known] = {}
        self.listeners: list[Callable[[], None]] = []
        self._catalogue, self._connect, self._clock = catalogue, connect, clock
        self._fits, self._redact = fits, redact
        self._places: dict[tuple[str, str, str], Place] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._again: dict[str, bool] = {}

    async def load(self) -> None:
        """Read the rows that changed."""
        links, changed = await self._catalogue().links(), False
        for name, server in self.servers.items():
            link, known = links.get(server.row), self.known.get(name)
            if link is None or link.config != server.config or (known and known.link == link):
                continue
            self.known[name], changed = Known(link=link, tools=await self._catalogue().tools(server.row)), True
        if changed:
            self._notify()

    async def ask_new(self, workspace: str = "") -> None:
        """Ask the servers that never answered what they offer; for those that nobody tried wait a few seconds."""
        new = [each for each in self.servers.values() if self._is_new(each, workspace)]
        untried = {each.name for each in new} - self.known.keys()
        tasks = {each.name: self._spawn(self._try(each, workspace), f"MCP server {each.name}") for each in new}
        if untried:
            await asyncio.wait([tasks[name] for name in untried], timeout=NEW_SECONDS)

    def _is_new(self, server: Server, workspace: str) -> bool:
        known, away = self.known.get(server.name), self.place(server, workspace).away
        rests = away is not None and away.next_try > self._clock.monotonic()
        return not rests and (known is None or not known.link.seen)

    async def _try(self, server: Server, workspace: str) -> None:
        with suppress(HermesError):
            await self.refresh(server, workspace)

    async def refresh(self, server: Server, workspace: str, session: str = "") -> McpLink:
        """Ask a server what it offers, now. Raises `ToolError`."""
        try:
            async with self.using(server, workspace, session, lists=False) as connection:
                await self._list(server, connection)
        except TimeoutError as error:
            raise ToolError(f"The MCP server {server.name} did not say in time what it offers.") from error
        return self.known[server.name].link

    async def retry(self, server: Server, workspace: str) -> McpLink:
        """The same at once, also where it would be tried again later."""
        for (name, *_), place in self._places.items():
            if name == server.name:
                place.away = None
        return await self.refresh(server, workspace)

    @asynccontextmanager
    async def using(
        self, server: Server, workspace: str, session: str = "", *, lists: bool = True
    ) -> AsyncIterator[Connection]:
        """Context manager: the open connection to a server; a new one asks what it offers (`lists`), in the background.
        Raises `ToolError` for one that cannot be reached now."""
        place = self.place(server, workspace, session)
        place.users += 1
        try:
            yield await self._connected(server, workspace, place, lists)
        finally:
            place.users -= 1
            place.end_idle()

    async def _connected(self, server: Server, workspace: str, place: Place, lists: bool) -> Connection:
        async with place.lock:
            if place.connection is not None and place.connection.is_open:
                return place.connection
            if place.away is not None and self._clock.monotonic() < place.away.next_try:
                raise ToolError(place.away.words(server.name, self._clock))
            try:
                connection = place.connection = await self._open(server, workspace, place)
            except HermesError as error:
                place.away = away_again(place.away, self._redact(str(error)), self._clock)
                await self._note(server, place.away.why)
                raise ToolError(place.away.words(server.name, self._clock)) from error
            place.away = None
        if lists:
            self._relist(server, connection)
        for uri in place.watched:  # Nobody knows whether it changed meanwhile.
            place.watched[uri] += 1
            self._spawn(self._watch_again(place, connection, uri), f"watching at {server.name}")
        return connection

    async def _watch_again(self, place: Place, connection: Connection, uri: str) -> None:
        try:
            await connection.ask("watch", uri)
        except HermesError:
            place.watched.pop(uri, None)  # Who watches it is told.

    async def _open(self, server: Server, workspace: str, place: Place) -> Connection:
        seconds = server.settings.connect_timeout
        connection: Connection | None = None
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connect(server, workspace, lambda uri: self._changed(server, place, uri))
                await connection.opened()
        except BaseException as error:
            if connection is not None:
                await connection.close()
            if isinstance(error, TimeoutError):
                raise HermesError(f"it did not answer within {seconds:g} s") from error
            raise
        return connection

    def place(self, server: Server, workspace: str, session: str = "") -> Place:
        """The place of a server's connection for a workspace and session."""
        own = server.settings
        where = workspace if own.command or own.roots else ""
        key = server.name, where, session if own.per_session else ""
        if key not in self._places:
            now = self._clock.monotonic()
            self._places = {each: place for each, place in self._places.items() if place.is_needed(now)}
            self._places[key] = Place()
        return self._places[key]

    async def _note(self, server: Server, why: str) -> None:
        """Write down why a server cannot be used, for people."""
        await self.load()  # Another process may have listed it meanwhile.
        known = self.known.get(server.name, Known(link=McpLink(server=server.row, config=server.config)))
        if known.link.why != why:
            link = replace(known.link, why=why)
            self.known[server.name] = replace(known, link=link)
            await self._catalogue().put(link)

    def _changed(self, server: Server, place: Place, uri: str) -> None:
        if uri in place.watched:
            place.watched[uri] += 1
        elif not uri and place.connection is not None and place.connection.is_open:
            self._relist(server, place.connection)

    def _relist(self, server: Server, connection: Connection) -> None:
        """Ask for the tools in the background: once, and once more if they change meanwhile."""
        self._again[server.name] = is_asked = server.name in self._again
        if not is_asked:
            self._spawn(self._relisted(server, connection), f"tools of {server.name}")

    async def _relisted(self, server: Server, connection: Connection) -> None:
        pause = FIRST_PAUSE
        try:
            while True:
                self._again[server.name] = False
                with suppress(HermesError, TimeoutError):
                    await self._list(server, connection)
                if not self._again[server.name]:
                    return
                await self._clock.sleep(pause)  # A server may say all the time that something changed.
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            del self._again[server.name]

    async def _list(self, server: Server, connection: Connection) -> None:
        async with asyncio.timeout(server.settings.timeout):
            found = await asyncio.to_thread(self._judged, server, await connection.listing())
        link = McpLink(
            server=server.row,
            config=server.config,
            version=found.version,
            title=found.title,
            seen=self._clock.now(),
            prompts=found.prompts,
        )
        await self._catalogue().put(link, found.tools)
        self.known[server.name] = Known(link=link, tools=found.tools)
        self._notify()

    def _judged(self, server: Server, found: Listing) -> Listing:
        found = hidden(found, self._redact)
        return replace(found, tools=judged(server, found.tools, self._fits))

    def _notify(self) -> None:
        for listener in self.listeners:
            listener()

    async def close(self) -> None:
        """End all connections, also those that are being opened."""
        for task in (under_way := list(self._tasks)):
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)
        async with asyncio.TaskGroup() as group:
            for place in self._places.values():
                place.watched.clear()
                if place.idle is not None:
                    place.idle.cancel()
                if place.connection is not None:
                    group.create_task(place.connection.close())

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Do it in the background, until these servers are closed."""
        task = spawn(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
